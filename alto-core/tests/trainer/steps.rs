//! What the backend is asked to do, and how often.

use std::collections::BTreeMap;

use alto_core::backend::JobState;
use alto_core::batch::Lane;
use alto_core::job::{AccumulationMode, Job};
use alto_core::trainer::{Candidate, Ended, EventKind, Fault, TrainError, Trainer};
use alto_exit::Never;

use super::setup::{backend, candidates, job, line, recorded_sweep, rows, run, run_on, trained_steps};
use super::watched::Watched;

#[test]
fn losses_are_read_once_for_all_that_are_evaluated_together() {
    let jobs = recorded_sweep();
    let mut backend = Watched::new(backend(&jobs));
    let trainer = Trainer { interval: 0.25, evaluation_rows: 10, ..Trainer::default() };
    let (outcome, _) = run_on(&trainer, &mut backend, &jobs, &Never);
    let report = outcome.unwrap().report;
    assert_eq!(backend.reads, 5, "before the first step and at each quarter");
    assert_eq!(backend.steps.len(), 32);
    assert!(report.jobs.iter().all(|job| job.curve.evaluations.len() == 5));
    // 12 jobs times 3 rows, at most ten at a time; no job's rows are divided without need.
    assert_eq!(backend.evaluated_rows, [9; 4 * 5]);
    // The last evaluation's adapter comes with the job as it leaves.
    let improved = |job: &alto_core::trainer::JobReport| {
        let losses: Vec<f64> = job.curve.evaluations[1..4].iter().map(|point| point.loss).collect();
        (0..3).filter(|&at| losses[..at].iter().all(|&earlier| losses[at] < earlier)).count()
    };
    assert_eq!(backend.snapshots, report.jobs.iter().map(improved).sum::<usize>());
}

#[test]
fn no_job_is_evaluated_between_its_start_and_the_step_that_first_moves_its_adapter() {
    let cases: [(u64, u64, f64, Vec<u64>); 7] = [
        (0, 20, 0.01, (0..=20).collect()),
        (1, 20, 0.01, [0].into_iter().chain(2..=20).collect()),
        (5, 20, 0.01, [0].into_iter().chain(2..=20).collect()),
        (50, 1000, 0.1, (0..=10).map(|mark| 100 * mark).collect()),
        (1, 2, 0.01, vec![0, 2]),
        (1, 1, 0.01, vec![0, 1]),
        (0, 1, 0.01, vec![0, 1]),
    ];
    for (warmup_steps, steps, interval, expected) in cases {
        let mut jobs = [(job("a", steps), line(steps, 1.0))];
        jobs[0].0.schedule.warmup_steps = warmup_steps;
        let (outcome, _) = run(&Trainer { interval, ..Trainer::default() }, &jobs, &Never);
        let report = &outcome.report.jobs[0];
        let found: Vec<u64> = report.curve.evaluations.iter().map(|point| point.step).collect();
        assert_eq!(found, expected, "warm-up of {warmup_steps} in {steps}");
        let moved = (0..steps).find(|&step| report.job.learning_rate(step) > 0.0).map(|step| step + 1);
        assert!(moved.is_none_or(|moved| moved == report.job.steps_to_move() && found[1] >= moved));
    }
}

#[test]
fn validation_rows_are_cut_alike_whoever_is_evaluated_beside() {
    let jobs = [(job("a", 4), line(4, 1.0)), (job("b", 4), line(4, 1.0)), (job("c", 4), line(4, 1.0))];
    let calls = |jobs: &[_], evaluation_rows, validation| {
        let mut backend = Watched::new(backend(jobs));
        let trainer = Trainer { interval: 1.0, evaluation_rows, ..Trainer::default() };
        let validation = rows(validation);
        trainer.run(&mut backend, &rows(8), &validation, candidates(jobs), &Never, &mut |_| ()).unwrap();
        backend.evaluated_rows[..backend.evaluated_rows.len() / 2].to_vec()
    };
    assert_eq!(calls(&jobs[..1], 4, 9), [3, 3, 3], "not 4, 4, 1");
    assert_eq!(calls(&jobs, 4, 9), [3; 9]);
    assert_eq!(calls(&jobs, 8, 3), [6, 3]);
    assert_eq!(calls(&jobs, 1, 2), [1; 6]);
}

#[test]
fn jobs_of_different_accumulation_share_steps() {
    let accumulating = |name, accumulation, accumulation_mode| {
        let job = Job { accumulation, accumulation_mode, batch: 2, ..job(name, 4) };
        (job, line(4, 1.0))
    };
    let jobs = [
        accumulating("one", 1, AccumulationMode::TokenMean),
        accumulating("three", 3, AccumulationMode::TokenMean),
        accumulating("means", 2, AccumulationMode::MeanOfMeans),
    ];
    let mut backend = Watched::new(backend(&jobs));
    let (outcome, _) = run_on(&Trainer::default(), &mut backend, &jobs, &Never);
    let report = outcome.unwrap().report;
    let last = |lanes: &[Lane]| lanes.iter().map(|lane| lane.last).collect::<Vec<_>>();
    assert_eq!(backend.steps.len(), 4 * 3);
    let train = rows(8);
    for (step, calls) in backend.steps.chunks(3).enumerate() {
        assert_eq!(last(&calls[0]), [true, false, false]);
        assert_eq!(last(&calls[1]), [false, true]);
        assert_eq!(last(&calls[2]), [true]);
        for (micro, lane) in [(0, &calls[0][1]), (1, &calls[1][0]), (2, &calls[2][0])] {
            assert_eq!(lane.divisor, train.divisor(&jobs[1].0, step as u64, micro));
            assert_eq!(lane.rows, 2);
        }
    }
    for (job, samples) in report.jobs.iter().zip([8, 24, 16]) {
        assert_eq!((job.steps, job.samples, job.curve.train.len()), (4, samples, 4));
    }
    assert_eq!(report.totals.tokens, report.jobs.iter().map(|job| job.tokens).sum::<u64>());
    assert!(report.jobs[1].tokens > report.jobs[2].tokens && report.jobs[2].tokens > report.jobs[0].tokens);
}

#[test]
fn a_job_starts_from_the_adapter_that_it_is_given() {
    let jobs = [(job("a", 4), line(4, 1.0))];
    let (first, _) = run(&Trainer::default(), &jobs, &Never);
    let adapter = first.adapters[0].clone().unwrap();
    let start = vec![Candidate { job: jobs[0].0.clone(), start: Some(adapter) }];
    let again = Trainer::default().run(&mut backend(&jobs), &rows(8), &rows(3), start, &Never, &mut |_| ());
    assert_eq!(trained_steps(again.unwrap().adapters[0].as_ref().unwrap()), 8.0);
}

#[test]
fn a_starting_adapter_of_the_wrong_shape_is_found_before_anything_trains() {
    let jobs = [(job("a", 4), line(4, 1.0)), (job("b", 4), line(4, 1.0))];
    let (first, _) = run(&Trainer::default(), &jobs, &Never);
    let mut adapter = first.adapters[0].clone().unwrap();
    adapter.modules = BTreeMap::new();
    let mut start = candidates(&jobs);
    start[1].start = Some(JobState::starting_from(adapter).adapter);
    let mut backend = Watched::new(backend(&jobs));
    let error = Trainer::default().run(&mut backend, &rows(8), &rows(3), start, &Never, &mut |_| ()).unwrap_err();
    assert!(matches!(error, TrainError::Backend(_)) && error.to_string().contains("job b"), "{error}");
    assert!(backend.steps.is_empty() && backend.attached.is_empty());
}

#[test]
fn when_the_backend_fails_the_error_has_all_that_was_trained() {
    let jobs = [(job("short", 4), line(4, 1.0)), (job("long", 20), line(20, 1.0))];
    let mut backend = Watched::new(backend(&jobs));
    backend.fail_at = Some(9);
    let trainer = Trainer { interval: 0.1, ..Trainer::default() };
    let (outcome, events) = run_on(&trainer, &mut backend, &jobs, &Never);
    let error = outcome.unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert!(std::error::Error::source(source).is_some_and(|root| root.to_string() == "pulled the plug"));
    let TrainError::Interrupted { outcome, .. } = &error else { panic!("{error}") };
    let [short, long] = &outcome.report.jobs[..] else { panic!("two jobs") };
    assert_eq!((&short.ended, &long.ended), (&Ended::Finished, &Ended::Unfinished));
    assert_eq!((long.steps, long.curve.train.len(), long.best.unwrap().step), (8, 8, 8));
    assert_eq!(outcome.adapters.iter().flatten().map(trained_steps).collect::<Vec<_>>(), [4.0, 8.0]);
    assert!(events.iter().any(|event| matches!(event, EventKind::Ended { job: 0, .. })));
    assert_eq!(backend.attached, [], "the backend is as it was");
}

#[test]
fn a_backend_that_loses_a_report_is_found_out() {
    let jobs = [(job("a", 10), line(10, 1.0))];
    let mut backend = Watched::new(backend(&jobs));
    backend.lose_report_at = Some(3);
    let (outcome, _) = run_on(&Trainer { interval: 0.2, ..Trainer::default() }, &mut backend, &jobs, &Never);
    let TrainError::Interrupted { source, .. } = outcome.unwrap_err() else { panic!("interrupted") };
    assert!(matches!(*source, Fault::StepReport { found: 0, expected: 4, .. }), "{source}");
}
