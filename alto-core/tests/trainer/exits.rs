//! How policies end jobs.

use std::collections::BTreeMap;

use alto_core::trainer::{Ended, EventKind, Trainer};
use alto_exit::{Curve, ExitPolicy, Never, Overfitting, Reason, Underperforming, Verdict};

use super::follow::follow;
use super::setup::{job, line, recorded, run, trained_steps};

/// Ends a job once its progress passes `after`.
#[derive(Debug)]
struct Curfew {
    after: f64,
}

impl ExitPolicy for Curfew {
    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        match cohort[job].evaluations.last() {
            Some(latest) if latest.progress > self.after => Verdict::Exit(Reason::Custom {
                policy: "curfew".into(),
                numbers: BTreeMap::from([("progress".into(), latest.progress)]),
            }),
            _ => Verdict::Keep,
        }
    }
}

#[test]
fn a_policy_of_ones_own_ends_jobs_with_its_own_reason() {
    let jobs = [(job("a", 20), line(20, 1.0)), (job("b", 10), line(10, 1.5))];
    let (outcome, events) = run(&Trainer { interval: 0.1, ..Trainer::default() }, &jobs, &Curfew { after: 0.45 });
    follow(&events, 2, None);
    for job in &outcome.report.jobs {
        let Ended::Exited(Reason::Custom { policy, numbers }) = &job.ended else { panic!("{}", job.ended) };
        assert_eq!((policy.as_str(), numbers["progress"]), ("curfew", 0.5));
        assert_eq!(job.ended.to_string(), "curfew: progress = 0.5000");
        assert_eq!((job.share, job.steps), (0.5, job.job.steps / 2));
        assert_eq!(
            job.curve.end,
            Some(alto_exit::End::Exited(Reason::Custom { policy: policy.clone(), numbers: numbers.clone() }))
        );
    }
}

#[test]
fn an_overfitting_job_leaves_its_adapter_from_before_that() {
    let train = (1..=10).map(|step| 2.0 - 0.15 * step as f64).collect();
    let jobs = [(job("a", 10), recorded(train, &[(0, 2.0), (3, 1.5), (10, 2.2)]))];
    let (outcome, _) = run(&Trainer { interval: 0.1, ..Trainer::default() }, &jobs, &Overfitting::default());
    let report = &outcome.report.jobs[0];
    assert!(matches!(report.ended, Ended::Exited(Reason::Overfitting { .. })), "{}", report.ended);
    assert_eq!(report.best.map(|best| (best.step, best.loss)), Some((3, 1.5)));
    assert!(report.steps > 3 && report.steps < 10);
    assert_eq!(trained_steps(outcome.adapters[0].as_ref().unwrap()), 3.0);
}

#[test]
fn an_adapter_before_the_first_step_is_never_what_a_job_leaves() {
    let jobs = [(job("harmed", 4), recorded(vec![2.0; 4], &[(0, 1.0), (1, 3.0), (4, 2.5)]))];
    let (outcome, _) = run(&Trainer { interval: 0.25, ..Trainer::default() }, &jobs, &Never);
    let report = &outcome.report.jobs[0];
    assert_eq!(report.curve.evaluations[0].loss, 1.0);
    assert_eq!(report.best.map(|best| (best.step, best.loss)), Some((4, 2.5)));
    assert_eq!(trained_steps(outcome.adapters[0].as_ref().unwrap()), 4.0);
    assert_eq!(outcome.report.winner, Some(0));
    // It is the best there is, and yet no good.
    assert!(!outcome.report.learned());
    let warning = "the best validation loss, 2.5000 of job harmed, is not below 1.0000, that before training";
    assert_eq!(outcome.report.warnings, [warning]);
    assert!(outcome.report.table().to_string().contains(warning));
}

#[test]
fn a_job_that_gets_better_has_learned() {
    let (outcome, _) = run(&Trainer::default(), &[(job("a", 4), line(4, 1.9))], &Never);
    assert!(outcome.report.learned() && outcome.report.warnings.is_empty());
    let (outcome, _) = run(&Trainer::default(), &[(job("a", 4), line(4, 2.0))], &Never);
    assert!(!outcome.report.learned(), "as good as before is not better");
    let nothing = recorded(vec![1.0; 4], &[(0, f64::NAN)]);
    assert!(!run(&Trainer::default(), &[(job("a", 4), nothing)], &Never).0.report.learned(), "there is no winner");
}

#[test]
fn an_adapter_that_no_step_has_changed_is_never_what_a_job_leaves() {
    let skips = recorded([[f64::NAN; 2], [2.0; 2]].concat(), &[(0, 1.0), (2, 1.0), (3, 3.0)]);
    let mut jobs =
        [(job("warms up", 4), recorded(vec![2.0; 4], &[(0, 1.0), (1, 1.0), (2, 3.0)])), (job("skips", 4), skips)];
    // The first step of a warm-up runs at rate 0.
    jobs[0].0.schedule.warmup_steps = 1;
    let (outcome, _) = run(&Trainer { interval: 0.25, ..Trainer::default() }, &jobs, &Never);
    let best: Vec<_> = outcome.report.jobs.iter().map(|job| job.best.map(|best| (best.step, best.loss))).collect();
    assert_eq!(best, [Some((2, 3.0)), Some((3, 3.0))]);
}

/// The first step of a warm-up changes nothing, so that all jobs still have the loss of the untrained model after it.
#[test]
fn with_a_warm_up_the_rung_keeps_by_loss_and_not_by_index() {
    let warming = |name: &str, last: f64| {
        let mut job = job(name, 20);
        job.schedule.warmup_steps = 4;
        (job, recorded(vec![2.0; 20], &[(0, 2.0), (1, 2.0), (20, last)]))
    };
    let jobs = [warming("worst", 1.9), warming("best", 1.0), warming("middle", 1.5)];
    for interval in [0.01, 1.0] {
        let policy = Underperforming { mark: 0.05, keep: 0.3 };
        let (outcome, events) = run(&Trainer { interval, ..Trainer::default() }, &jobs, &policy);
        follow(&events, 3, None);
        let report = &outcome.report;
        assert_eq!(report.winner, Some(1));
        for lags in [0, 2] {
            let ended = &report.jobs[lags].ended;
            assert!(matches!(ended, Ended::Exited(Reason::Underperforming { step: 2, .. })), "{ended}");
        }
        let steps = |job: usize| report.jobs[job].curve.evaluations.iter().map(|point| point.step);
        assert!(steps(1).eq([0].into_iter().chain(2..=20).filter(|step| interval < 1.0 || [0, 2, 20].contains(step))));
        assert!(steps(0).eq([0, 2]));
    }
}

/// Has a rung for the jobs of even index only, and ends nobody.
#[derive(Debug)]
pub(crate) struct EvenOnly;

impl ExitPolicy for EvenOnly {
    fn rungs(&self, job: usize) -> Vec<f64> {
        if job.is_multiple_of(2) { vec![0.5] } else { vec![] }
    }

    fn judge(&self, _: usize, _: &[Curve]) -> Verdict {
        Verdict::Keep
    }
}

#[test]
fn a_job_without_a_rung_is_neither_held_nor_waited_for() {
    let jobs = [(job("a", 4), line(4, 1.0)), (job("b", 40), line(40, 1.0)), (job("c", 8), line(8, 1.0))];
    let (outcome, events) = run(&Trainer::default(), &jobs, &EvenOnly);
    follow(&events, 3, None);
    assert!(outcome.report.jobs.iter().all(|job| job.ended == Ended::Finished));
    let at = |wanted: fn(&EventKind) -> bool| events.iter().position(wanted).unwrap();
    let closed =
        at(|event| matches!(event, EventKind::RungClosed { kept, record, .. } if *kept == [0, 2] && record.len() == 2));
    assert!(closed < at(|event| matches!(event, EventKind::Ended { job: 1, .. })), "it closes long before job 1 ends");
    assert!(!events.iter().any(|event| matches!(event, EventKind::Parked { job: 1, .. })));
}

#[test]
fn at_its_end_a_job_is_finished_and_no_more_judged() {
    let jobs = [(job("a", 3), line(3, 1.0))];
    let (outcome, _) = run(&Trainer { interval: 1.0, ..Trainer::default() }, &jobs, &Curfew { after: 0.0 });
    assert_eq!(outcome.report.jobs[0].ended, Ended::Finished);
}
