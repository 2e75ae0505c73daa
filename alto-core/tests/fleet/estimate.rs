//! When a training will end.

use alto_core::exit::{EvaluationPoint, Reason};
use alto_core::fleet::Estimate;
use alto_core::trainer::{Ended, EventKind};

use super::training::jobs;

fn evaluated(job: usize, step: u64) -> EventKind {
    let validation = EvaluationPoint { step, progress: step as f64 / 100.0, loss: 1.0 };
    EventKind::Evaluated { job, validation, training: None }
}

fn started(job: usize) -> EventKind {
    EventKind::Started { job, name: job.to_string(), steps: 100 }
}

fn exited(job: usize, step: u64) -> EventKind {
    let how = Ended::Exited(Reason::Custom { policy: "test".into(), numbers: Default::default() });
    EventKind::Ended { job, step, how }
}

#[test]
fn it_is_what_is_left_over_the_rate_so_far() {
    let mut estimate = Estimate::new(&jobs(2, 100));
    assert_eq!(estimate.observe(5.0, &started(0)), None);
    assert_eq!(estimate.observe(5.0, &evaluated(0, 0)), None);
    assert_eq!(estimate.observe(15.0, &evaluated(0, 10)), None);
    // 10 of 200 samples in 10 s, as is known by now.
    assert_eq!(estimate.observe(25.0, &evaluated(1, 20)), Some(15.0 + 190.0));
    // Twice as fast: 30 in 20 s.
    assert_eq!(estimate.observe(26.0, &evaluated(1, 21)), Some(25.0 + 170.0 * 20.0 / 30.0));
}

#[test]
fn what_comes_together_is_told_together() {
    let mut estimate = Estimate::new(&jobs(2, 100));
    estimate.observe(0.0, &started(0));
    estimate.observe(0.0, &started(1));
    estimate.observe(10.0, &evaluated(0, 5));
    assert_eq!(estimate.observe(10.001, &evaluated(1, 5)), None);
    assert_eq!(estimate.observe(10.002, &exited(0, 5)), None);
    assert_eq!(estimate.observe(20.0, &evaluated(1, 15)), Some(10.002 + 95.0 * 10.002 / 10.0));
}

#[test]
fn what_comes_before_the_first_step_says_nothing_of_the_rate_and_neither_do_a_few_samples() {
    let mut estimate = Estimate::new(&jobs(2, 100));
    estimate.observe(0.0, &started(0));
    estimate.observe(0.0, &started(1));
    assert_eq!(estimate.observe(20.0, &evaluated(0, 0)), None);
    assert_eq!(estimate.observe(40.0, &evaluated(1, 0)), None);
    // 3 of 200 samples in 3 s, then 6 in 6.
    assert_eq!(estimate.observe(43.0, &evaluated(0, 3)), None);
    assert_eq!(estimate.observe(46.0, &evaluated(1, 3)), None);
    assert_eq!(estimate.observe(50.0, &evaluated(0, 7)), Some(46.0 + 194.0));
}

#[test]
fn a_job_that_exits_takes_its_samples_with_it() {
    let mut estimate = Estimate::new(&jobs(2, 100));
    estimate.observe(0.0, &started(0));
    estimate.observe(0.0, &started(1));
    estimate.observe(10.0, &evaluated(0, 5));
    estimate.observe(10.0, &evaluated(1, 5));
    estimate.observe(10.0, &exited(0, 5));
    assert_eq!(estimate.observe(11.0, &evaluated(1, 6)), Some(10.0 + 95.0));
    assert_eq!(estimate.observe(105.0, &EventKind::Ended { job: 1, step: 100, how: Ended::Finished }), None);
}

#[test]
fn of_jobs_of_a_search_alone_nothing_is_told() {
    let mut estimate = Estimate::new(&[]);
    estimate.observe(0.0, &started(0));
    assert_eq!(estimate.observe(10.0, &evaluated(0, 50)), None);
}

#[test]
fn jobs_of_a_search_that_go_on_after_all_others_are_not_told_to_end_at_once() {
    let mut estimate = Estimate::new(&jobs(1, 100));
    estimate.observe(0.0, &started(0));
    estimate.observe(10.0, &evaluated(0, 50));
    estimate.observe(10.0, &started(1));
    assert_eq!(estimate.observe(15.0, &evaluated(0, 75)), Some(20.0));
    assert_eq!(estimate.observe(20.0, &EventKind::Ended { job: 0, step: 100, how: Ended::Finished }), None);
    for (now, step) in [(25.0, 25), (30.0, 50), (35.0, 75)] {
        assert_eq!(estimate.observe(now, &evaluated(1, step)), None);
    }
}

#[test]
fn what_hardly_moves_is_not_told() {
    let mut estimate = Estimate::new(&jobs(1, 100));
    estimate.observe(0.0, &started(0));
    estimate.observe(10.0, &evaluated(0, 10));
    assert_eq!(estimate.observe(20.0, &evaluated(0, 20)), Some(100.0));
    assert_eq!(estimate.observe(30.2, &evaluated(0, 30)), None);
    // 1% of what was left, then 3%.
    assert_eq!(estimate.observe(41.0, &evaluated(0, 40)), None);
    assert!(estimate.observe(50.0, &evaluated(0, 50)).is_some_and(|end| (end - 102.5).abs() < 1e-9));
}
