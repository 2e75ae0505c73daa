//! What fits into memory together.

use alto_core::job::Job;
use alto_core::simulated::{CostModel, RecordedRun};
use alto_core::trainer::{Admission, EventKind, TrainError, Trainer};
use alto_exit::{LossAware, Never};

use super::exits::EvenOnly;
use super::follow::follow;
use super::setup::{candidates, job, line, priced, rows, run_on};
use super::watched::Watched;

/// The base takes 1000 bytes, an adapter 40, a token 10; the longest of the eight rows has 9 tokens.
fn cost(budget: u64) -> CostModel {
    CostModel {
        fixed_bytes: 1000,
        adapter_bytes_per_rank: 10,
        bytes_per_token: 10,
        budget: Some(budget),
        ..CostModel::default()
    }
}

/// Jobs of these batch sizes, ten steps each.
fn jobs(batches: &[usize]) -> Vec<(Job, RecordedRun)> {
    let job = |(index, &batch): (usize, &usize)| {
        let job = Job { batch, ..job(&format!("job {index}"), 10) };
        (job, line(10, 1.0))
    };
    batches.iter().enumerate().map(job).collect()
}

fn started(events: &[EventKind]) -> Vec<usize> {
    let started = events.iter().filter_map(|event| match event {
        EventKind::Started { job, .. } => Some(*job),
        _ => None,
    });
    started.collect()
}

#[test]
fn only_what_fits_is_admitted_by_what_was_measured() {
    // One job takes 1000 + 40 + 90; each more 40 + 90. For best adapters 50 are set aside. The simulated device refuses whatever is over the budget.
    let jobs = jobs(&[1, 1, 1, 1, 1]);
    let mut backend = Watched::new(priced(&jobs, cost(1000 + 4 * 130 + 49)));
    let (outcome, events) = run_on(&Trainer::default(), &mut backend, &jobs, &Never);
    let report = outcome.unwrap().report;
    assert_eq!(follow(&events, 5, None), 3);
    assert_eq!(backend.most_attached, 3);
    let profile = report.memory.as_ref().unwrap();
    let numbers = profile.model.coefficients();
    assert!((numbers.fixed - 1000.0).abs() < 1e-6 && (numbers.per_token - 10.0).abs() < 1e-6, "{numbers:?}");
    assert!(matches!(&events[0], EventKind::Profiled(told) if told == profile));
    assert_eq!(report.totals.profile_seconds, profile.seconds);
    assert!(report.totals.profile_share() < 1.0);
}

#[test]
fn a_known_model_decides_as_its_measurement_did() {
    let jobs = jobs(&[1, 2, 1, 4, 1]);
    let measured = run_on(&Trainer::default(), &mut priced(&jobs, cost(1500)), &jobs, &Never);
    let model = measured.0.unwrap().report.memory.unwrap().model;
    let mut backend = Watched::new(priced(&jobs, cost(1500)));
    let trainer = Trainer { admission: Admission::Known(model), ..Trainer::default() };
    let (outcome, events) = run_on(&trainer, &mut backend, &jobs, &Never);
    assert_eq!(outcome.unwrap().report.memory, None, "nothing was measured");
    assert_eq!(events[..], measured.1[1..], "the same but for the measurement");
    assert_eq!(backend.attaches, 5);
}

#[test]
fn the_largest_batch_is_first() {
    let mut jobs = jobs(&[1, 4, 1, 2, 4, 1]);
    jobs[0].0.steps = 100;
    let trainer = Trainer { slots: Some(2), admission: Admission::Unlimited, ..Trainer::default() };
    let (_, events) = run_on(&trainer, &mut priced(&jobs, CostModel::default()), &jobs, &Never);
    // Both of batch 4 end at once and no other has their size: the largest of the rest, then by index.
    assert_eq!(started(&events), [1, 4, 3, 0, 2, 5]);
}

#[test]
fn a_freed_place_goes_to_a_job_of_the_same_batch_before_a_larger_one() {
    let jobs = jobs(&[4, 1, 1]);
    let trainer = Trainer { slots: Some(1), ..Trainer::default() };
    let (_, events) = run_on(&trainer, &mut priced(&jobs, CostModel::default()), &jobs, &EvenOnly);
    assert_eq!(started(&events), [0, 1, 2]);
    let resumed = events.iter().filter_map(|event| match event {
        EventKind::Resumed { job, .. } => Some(*job),
        _ => None,
    });
    // Job 2 gives its place free as the rung closes on 0 and 2.
    assert_eq!(resumed.collect::<Vec<_>>(), [2, 0]);
}

#[test]
fn a_job_that_never_fits_is_named_before_anything_trains() {
    let jobs = jobs(&[1, 8]);
    let mut backend = Watched::new(priced(&jobs, cost(1300)));
    let (outcome, events) = run_on(&Trainer::default(), &mut backend, &jobs, &Never);
    match outcome.unwrap_err() {
        TrainError::NeverFits { job, needed, tokens: 44, kept: 20, budget: 1300 } => {
            assert_eq!(job, "job 1");
            assert!((1480..1490).contains(&needed), "{needed}");
        }
        other => panic!("{other}"),
    }
    assert_eq!(events, []);
    assert_eq!(backend.attached, [], "what was measured with is gone");
}

#[test]
fn an_adapter_that_never_fits_is_named_before_anything_is_measured() {
    let mut jobs = jobs(&[1, 1]);
    jobs[1].0.adapter.rank = 500;
    let mut backend = Watched::new(priced(&jobs, cost(4000)));
    let (outcome, _) = run_on(&Trainer::default(), &mut backend, &jobs, &Never);
    let error = outcome.unwrap_err();
    assert!(matches!(&error, TrainError::NeverFits { job, needed: 5000, .. } if job == "job 1"), "{error}");
    assert_eq!(backend.attaches, 0);
}

#[test]
fn what_jobs_keep_on_the_host_is_set_aside() {
    let jobs = jobs(&[1; 60]);
    let mut backend = Watched::new(priced(&jobs, cost(2400)));
    // Best adapters, a quarter of 40 bytes each.
    let (outcome, events) = run_on(&Trainer::default(), &mut backend, &jobs, &Never);
    assert_eq!(outcome.unwrap().report.memory.map(|profile| (profile.budget, profile.kept)), Some((2400, 600)));
    assert_eq!(follow(&events, 60, None), (2400 - 600 - 1000) / 130);
    // With a rung each may have to wait, with weights and two moments.
    let mut backend = Watched::new(priced(&jobs, cost(2400)));
    let (outcome, _) = run_on(&Trainer::default(), &mut backend, &jobs, &LossAware::default());
    let error = outcome.unwrap_err();
    assert!(matches!(error, TrainError::NeverFits { kept: 2400, budget: 2400, .. }), "{error}");
    assert_eq!(backend.attaches, 0);
}

#[test]
fn a_budget_of_steps_without_end_is_not_walked_through() {
    let mut jobs = jobs(&[2]);
    jobs[0].0.steps = 1 << 50;
    let (outcome, _) = run_on(&Trainer::default(), &mut priced(&jobs, cost(1200)), &jobs, &Never);
    // Eight rows of up to 9 tokens: two of them have 17 at most, but nobody looked.
    let error = outcome.unwrap_err();
    assert!(matches!(error, TrainError::NeverFits { tokens: 18, .. }), "{error}");
}

#[test]
fn validation_rows_are_divided_where_memory_asks_for_it() {
    let jobs = jobs(&[1, 1]);
    // Beside the two adapters, attached and kept, there is room for 24 tokens; the 16 rows have 2 to 17.
    let mut backend = Watched::new(priced(&jobs, cost(1000 + 2 * (40 + 10) + 240)));
    let run = Trainer::default().run(&mut backend, &rows(8), &rows(16), candidates(&jobs), &Never, &mut |_| ());
    assert_eq!(run.unwrap().report.jobs[1].curve.evaluations.len(), 11);
    assert_eq!(backend.evaluated_rows.iter().sum::<usize>(), 2 * 16 * 11);
    assert!(backend.evaluated_rows.iter().all(|&rows| (1..=4).contains(&rows)), "{:?}", backend.evaluated_rows);
}

#[test]
fn a_budget_may_be_left_to_the_slots() {
    let jobs = jobs(&[1, 1, 1]);
    let trainer = Trainer { slots: Some(1), admission: Admission::Unlimited, ..Trainer::default() };
    let mut backend = Watched::new(priced(&jobs, cost(1400)));
    let (outcome, _) = run_on(&trainer, &mut backend, &jobs, &Never);
    assert_eq!(outcome.unwrap().report.memory, None);
    assert_eq!((backend.attaches, backend.most_attached), (3, 1));
}
