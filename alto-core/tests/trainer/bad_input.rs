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
    assert_eq!(error.to_string(), "job b: learning rate is NaN, but must be a finite positive number");
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
