//! What is refused before anything trains.

use alto_core::job::Job;
use alto_core::simulated::RecordedRun;
use alto_core::trainer::{TrainError, Trainer};
use alto_exit::{Curve, Diverging, ExitPolicy, Never, Verdict};

use super::setup::{backend, job, line, run_on};
use super::watched::Watched;

/// The error of a run that must not have touched its backend.
fn refused(trainer: &Trainer, jobs: &[(Job, RecordedRun)], policy: &dyn ExitPolicy) -> TrainError {
    let known = [(job("a", 10), line(10, 1.0)), (job("b", 10), line(10, 1.0))];
    let mut backend = Watched::new(backend(&known));
    let (outcome, events) = run_on(trainer, &mut backend, jobs, policy);
    assert!(backend.attaches == 0 && backend.steps.is_empty() && events.is_empty());
    outcome.expect_err("the run is refused")
}

fn pair() -> Vec<(Job, RecordedRun)> {
    vec![(job("a", 10), line(10, 1.0)), (job("b", 10), line(10, 1.0))]
}

/// Spoils a job.
type Change = fn(&mut Job);
/// Gives one of a job's settings this value.
type Setting = fn(&mut Job, f64);

#[test]
fn an_empty_grid() {
    assert!(matches!(refused(&Trainer::default(), &[], &Never), TrainError::NoJobs));
}

#[test]
fn two_jobs_of_one_name() {
    let mut jobs = pair();
    jobs.push(jobs[0].clone());
    let error = refused(&Trainer::default(), &jobs, &Never);
    assert_eq!(error.to_string(), "jobs 0 and 2 are both named a, give each its own name");
}

#[test]
fn a_job_that_is_out_of_range() {
    let mut jobs = pair();
    jobs[1].0.optimizer.learning_rate = f64::NAN;
    let error = refused(&Trainer::default(), &jobs, &Never);
    assert_eq!(error.to_string(), "job b: learning rate is NaN, but must be a finite positive number within f32");
}

#[test]
fn sizes_that_no_machine_has() {
    let cases: [(Change, &str); 6] = [
        (|job| job.adapter.rank = 1_000_000_000, "rank is 1000000000, but must be at most 65536"),
        (|job| job.adapter.rank = 1 << 61, "rank is 2305843009213694"),
        (|job| job.accumulation = 1 << 21, "batch times accumulation is 2097152, but must be at most 1048576 rows"),
        (|job| (job.batch, job.accumulation) = (1 << 40, 1 << 40), "batch times accumulation is 12089258196146"),
        (|job| job.steps = (1 << 53) + 1, "samples over all steps is 9007199254740992, but must be at most 2^53"),
        (|job| (job.steps, job.accumulation) = (1 << 60, 32), "samples over all steps is 3689348814741910"),
    ];
    for (edit, expected) in cases {
        let mut jobs = pair();
        edit(&mut jobs[1].0);
        let error = refused(&Trainer::default(), &jobs, &Never).to_string();
        assert!(error.starts_with(&format!("job b: {expected}")), "{error}");
    }
    let mut largest = job("a", (1 << 53) / 32);
    (largest.adapter.rank, largest.batch, largest.accumulation) = (65_536, 8, 4);
    assert_eq!(largest.check(), Ok(()));
}

#[test]
fn numbers_that_are_0_or_infinite_in_f32() {
    let settings: [(&str, Setting); 5] = [
        ("learning rate", |job, value| job.optimizer.learning_rate = value),
        ("alpha", |job, value| job.adapter.alpha = value),
        ("weight decay", |job, value| job.optimizer.weight_decay = value),
        ("clip norm", |job, value| job.optimizer.clip = Some(value)),
        ("epsilon", |job, value| job.optimizer.epsilon = value),
    ];
    for (setting, set) in settings {
        for value in [1e-46, 1e39, -1.0, f64::NAN, f64::INFINITY] {
            let mut jobs = pair();
            set(&mut jobs[0].0, value);
            let error = refused(&Trainer::default(), &jobs, &Never).to_string();
            let (start, end) =
                (format!("job a: {setting} is {value}, but must be "), "finite positive number within f32");
            assert!(error.starts_with(&start) && error.ends_with(end), "{error}");
        }
    }
    let mut vanishing = job("a", 10);
    (vanishing.adapter.alpha, vanishing.adapter.rank) = (1e-44, 1000);
    assert!(vanishing.check().unwrap_err().to_string().starts_with("job a: scale is "));
}

#[test]
fn a_batch_larger_than_the_training_set() {
    let mut jobs = pair();
    jobs[1].0.batch = 9;
    let error = refused(&Trainer::default(), &jobs, &Never);
    assert!(matches!(&error, TrainError::BatchTooLarge { job, batch: 9, rows: 8 } if job == "b"), "{error}");
    jobs[1].0.batch = 8;
    assert!(run_on(&Trainer::default(), &mut backend(&jobs), &jobs, &Never).0.is_ok());
}

#[test]
fn a_job_that_the_backend_does_not_know() {
    let mut jobs = pair();
    jobs[1].0.name = "stranger".into();
    assert!(matches!(refused(&Trainer::default(), &jobs, &Never), TrainError::Backend(_)));
}

#[test]
fn settings_that_are_out_of_range() {
    let default = Trainer::default;
    for (trainer, setting) in [
        (Trainer { interval: 0.0, ..default() }, "interval"),
        (Trainer { interval: f64::NAN, ..default() }, "interval"),
        (Trainer { interval: 1.01, ..default() }, "interval"),
        (Trainer { slots: Some(0), ..default() }, "slots"),
        (Trainer { skips: 0, ..default() }, "skips"),
        (Trainer { evaluation_rows: 0, ..default() }, "evaluation_rows"),
    ] {
        let error = refused(&trainer, &pair(), &Never);
        assert!(error.to_string().starts_with(&format!("trainer: {setting} is ")), "{error}");
    }
}

#[test]
fn a_policy_that_is_out_of_range() {
    let error = refused(&Trainer::default(), &pair(), &Diverging { patience: 0, ..Diverging::default() });
    assert!(matches!(error, TrainError::Policy(_)), "{error}");
}

/// Puts a rung where nobody gets to.
#[derive(Debug)]
struct OutOfReach;

impl ExitPolicy for OutOfReach {
    fn rungs(&self, _: usize) -> Vec<f64> {
        vec![5.0]
    }

    fn judge(&self, _: usize, _: &[Curve]) -> Verdict {
        Verdict::Keep
    }
}

#[test]
fn a_rung_that_nobody_reaches() {
    let error = refused(&Trainer::default(), &pair(), &OutOfReach);
    assert_eq!(error.to_string(), "job a: the policy puts a rung at progress 5, but marks are from 0 to 1");
}
