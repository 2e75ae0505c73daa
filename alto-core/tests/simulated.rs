//! The simulated backend: losses as recorded, time and memory as the cost model says.

mod recorded;

use std::time::Duration;

use alto_core::backend::{Backend, BackendError, Slot};
use alto_core::batch::{Batch, Example, Lane, Objective};
use alto_core::simulated::{
    CostModel, ReadError, RecordedRun, SimulatedBackend, SimulationError, read_corpus, read_run,
};
use alto_exit::replay::{CORPUS_VERSION, Corpus};
use alto_sched::{Load, MemoryModel, MemorySample};

use recorded::{backend, examples, job, runs};

fn lane(slot: Option<Slot>, rows: usize, last: bool) -> Lane {
    Lane { slot, rows, objective: Objective::NegativeLogLikelihood, divisor: 1.0, last }
}

/// One lane with all examples: 25 tokens, of which 14 count.
fn batch(slot: Option<Slot>, last: bool) -> Batch {
    let mut batch = Batch::default();
    let rows = examples();
    batch.push(lane(slot, rows.len(), last), &rows);
    batch
}

/// Three steps with losses 4, 2, 3; validated at 0, 1 and 3 with 5, 3, 1.
fn small_run() -> RecordedRun {
    let text = r#"{"rank": 2, "alpha": 4, "lr": 0.1, "batch": 1, "steps": 3,
        "train_loss": [4, 2, 3], "eval_step": [0, 1, 3], "val_loss": [5, 3, 1]}"#;
    serde_json::from_str(text).expect("a recorded run")
}

fn small_backend(cost: CostModel) -> SimulatedBackend {
    SimulatedBackend::new([("small".to_owned(), small_run())], cost).expect("a run that can be replayed")
}

fn validation_loss(backend: &mut SimulatedBackend, slot: Option<Slot>) -> f64 {
    let evaluations = backend.evaluate(&batch(slot, false)).expect("an evaluation");
    assert_eq!((evaluations.len(), evaluations[0].lane, evaluations[0].count), (1, 0, 14));
    assert_eq!(evaluations[0].metric, "loss");
    evaluations[0].sum / evaluations[0].count as f64
}

fn simulation_error(error: BackendError) -> SimulationError {
    let BackendError::Own(source) = error else { panic!("not the simulation's: {error}") };
    *source.downcast().expect("a simulation error")
}

#[test]
fn every_recorded_run_is_replayed_as_it_was() {
    for (name, run) in runs() {
        let mut backend = backend();
        let job = job(&name, &run);
        let slot = backend.attach(&job, None).unwrap();
        let mut evaluated = Vec::new();
        for step in 0..=run.steps {
            if run.eval_step.contains(&step) {
                evaluated.push(validation_loss(&mut backend, Some(slot)));
            }
            if step < run.steps {
                backend.step(&batch(Some(slot), true)).unwrap();
            }
        }
        let reports = backend.read().unwrap();
        assert_eq!(reports.iter().map(|report| report.loss).collect::<Vec<_>>(), run.train_loss, "{name}");
        assert_eq!(reports.iter().map(|report| report.grad_norm).collect::<Vec<_>>(), run.grad_norm, "{name}");
        for (report, recorded) in reports.iter().zip(&run.lr_at) {
            assert!((report.learning_rate - recorded).abs() <= 1e-12, "{name}: {report:?}, recorded {recorded}");
        }
        for (found, recorded) in evaluated.iter().zip(&run.val_loss) {
            assert!((found - recorded).abs() <= 1e-12 * recorded, "{name}: {found}, recorded {recorded}");
        }
        assert_eq!(evaluated.len(), run.val_loss.len(), "{name}");
    }
}

#[test]
fn validation_losses_lie_in_a_line_between_evaluations() {
    let mut backend = small_backend(CostModel::default());
    let slot = backend.attach(&job("small", &small_run()), None).unwrap();
    let mut losses = vec![validation_loss(&mut backend, Some(slot))];
    for _ in 0..4 {
        backend.step(&batch(Some(slot), true)).unwrap();
        losses.push(validation_loss(&mut backend, Some(slot)));
    }
    assert_eq!(losses, [5.0, 3.0, 2.0, 1.0, 1.0]);
}

#[test]
fn a_job_of_twice_the_budget_goes_through_the_course_at_half_the_speed() {
    let mut backend = small_backend(CostModel::default());
    let mut job = job("small", &small_run());
    job.steps = 6;
    let slot = backend.attach(&job, None).unwrap();
    let mut losses = vec![];
    for _ in 0..6 {
        backend.step(&batch(Some(slot), true)).unwrap();
        losses.push(validation_loss(&mut backend, Some(slot)));
    }
    assert_eq!(losses, [4.0, 3.0, 2.5, 2.0, 1.5, 1.0]);
    let reports = backend.read().unwrap();
    assert_eq!(reports.iter().map(|report| report.loss).collect::<Vec<_>>(), [4.0, 4.0, 3.0, 2.0, 2.5, 3.0]);
}

#[test]
fn rows_without_a_slot_have_the_untrained_loss_or_none() {
    let mut known = backend();
    assert_eq!(validation_loss(&mut known, None), 1.3875728781896692);
    let mut other = small_run();
    other.val_loss[0] = 6.0;
    let runs = [("small".to_owned(), small_run()), ("other".to_owned(), other)];
    let mut disagree = SimulatedBackend::new(runs, CostModel::default()).unwrap();
    let error = simulation_error(disagree.evaluate(&batch(None, false)).unwrap_err());
    assert!(matches!(error, SimulationError::NoUntrainedLoss { lane: 0 }), "{error}");
}

#[test]
fn the_clock_runs_by_launches_and_tokens() {
    let cost = CostModel {
        launch_seconds: 0.5,
        seconds_per_token: 0.25,
        seconds_per_evaluated_token: 0.125,
        ..CostModel::default()
    };
    let mut backend = small_backend(cost);
    let slot = backend.attach(&job("small", &small_run()), None).unwrap();
    assert_eq!(backend.elapsed(), Duration::ZERO);
    backend.step(&batch(Some(slot), false)).unwrap();
    assert_eq!(backend.elapsed(), Duration::from_millis(6750));
    backend.evaluate(&batch(Some(slot), false)).unwrap();
    assert_eq!(backend.elapsed(), Duration::from_millis(6750 + 3625));
    backend.step(&batch(Some(Slot(99)), true)).unwrap_err();
    assert_eq!(backend.elapsed(), Duration::from_millis(6750 + 3625));
}

const COST: CostModel = CostModel {
    launch_seconds: 0.0,
    evaluation_launch_seconds: None,
    seconds_per_token: 0.0,
    seconds_per_evaluated_token: 0.0,
    fixed_bytes: 1000,
    bytes_per_token: 10,
    adapter_bytes_per_rank: 3,
    budget: Some(1300),
};

#[test]
fn memory_is_fixed_bytes_and_adapters_and_tokens_while_they_run() {
    let mut backend = small_backend(COST);
    let job = job("small", &small_run());
    assert_eq!(backend.adapter_bytes(&job), 12);
    let slot = backend.attach(&job, None).unwrap();
    backend.step(&batch(Some(slot), true)).unwrap();
    let memory = backend.memory();
    assert_eq!((memory.in_use, memory.peak, memory.budget), (1012, 1262, Some(1300)));
    let memory = backend.memory();
    assert_eq!((memory.in_use, memory.peak), (1012, 1012));
    backend.detach(slot).unwrap();
    assert_eq!(backend.memory().in_use, 1000);
}

#[test]
fn what_goes_over_the_budget_is_refused_and_leaves_everything_as_it_was() {
    let mut backend = small_backend(COST);
    let job = job("small", &small_run());
    let slots: Vec<_> = (0..4).map(|_| backend.attach(&job, None).unwrap()).collect();
    backend.step(&batch(Some(slots[0]), true)).unwrap();
    let _one_more = backend.attach(&job, None).unwrap();
    let error = simulation_error(backend.step(&batch(Some(slots[0]), true)).unwrap_err());
    assert_eq!(error.to_string(), "1310 bytes are needed, but the budget is 1300");
    assert_eq!(backend.read().unwrap().len(), 1);
    assert_eq!(backend.snapshot(slots[0]).unwrap().step, 1);
    for _ in 5..25 {
        backend.attach(&job, None).unwrap();
    }
    let error = simulation_error(backend.attach(&job, None).unwrap_err());
    assert!(matches!(error, SimulationError::OutOfMemory { needed: 1312, budget: 1300 }), "{error}");
    assert_eq!(backend.memory().in_use, 1300);
}

#[test]
fn a_memory_model_fitted_to_its_peaks_predicts_them() {
    let mut backend = small_backend(CostModel { budget: None, ..COST });
    let job = job("small", &small_run());
    let slot = backend.attach(&job, None).unwrap();
    let row = Example { tokens: vec![0; 7], targets: vec![Some(0); 7] };
    let mut sample = |rows: usize| {
        let mut batch = Batch::default();
        batch.push(lane(Some(slot), rows, true), vec![&row; rows]);
        backend.memory();
        backend.step(&batch).unwrap();
        let load = Load { adapter_bytes: backend.adapter_bytes(&job), tokens: 7 * rows as u64, squared_tokens: 0 };
        MemorySample { load, peak: backend.memory().peak }
    };
    let model = MemoryModel::fit(&[sample(1), sample(2), sample(4)], false).unwrap();
    let large = sample(100);
    assert_eq!(model.predict(&large.load), large.peak);
    assert!(model.margin() <= 1, "{model:?}");
}

#[test]
fn a_loss_that_is_not_finite_is_reported_and_leaves_the_adapter() {
    let mut run = small_run();
    run.train_loss[1] = f64::NAN;
    let mut backend = SimulatedBackend::new([("small".to_owned(), run)], CostModel::default()).unwrap();
    let slot = backend.attach(&job("small", &small_run()), None).unwrap();
    let mut adapters = vec![];
    for _ in 0..3 {
        backend.step(&batch(Some(slot), true)).unwrap();
        adapters.push(backend.snapshot(slot).unwrap().adapter);
    }
    let reports = backend.read().unwrap();
    assert_eq!(reports.iter().map(|r| r.not_finite.as_deref()).collect::<Vec<_>>(), [None, Some("loss"), None]);
    assert_eq!(reports.iter().map(|r| r.step).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((reports[0].loss, reports[2].loss), (4.0, 3.0));
    assert_eq!(adapters[0], adapters[1]);
    assert_ne!(adapters[1], adapters[2]);
}

#[test]
fn a_job_without_a_record_is_refused_by_name() {
    let error = simulation_error(small_backend(CostModel::default()).check(&job("large", &small_run())).unwrap_err());
    assert_eq!(error.to_string(), "job large has no recorded run; there are 1, the first are small");
}

#[test]
fn runs_and_costs_that_contradict_themselves_are_refused() {
    let refused = |runs: Vec<(String, RecordedRun)>, cost| SimulatedBackend::new(runs, cost).unwrap_err();
    let named = |run| vec![("small".to_owned(), run)];
    assert!(matches!(refused(vec![], CostModel::default()), SimulationError::NoRuns));
    let twice = [named(small_run()), named(small_run())].concat();
    assert!(matches!(refused(twice, CostModel::default()), SimulationError::DuplicateRun { .. }));
    let cost = CostModel { seconds_per_token: f64::NAN, ..CostModel::default() };
    let error = refused(named(small_run()), cost);
    assert!(matches!(error, SimulationError::BadCost { setting: "seconds_per_token", .. }), "{error}");
    let cost = CostModel { budget: Some(999), ..COST };
    let error = refused(named(small_run()), cost);
    assert!(matches!(error, SimulationError::OutOfMemory { needed: 1000, budget: 999 }), "{error}");

    let changed = |change: fn(&mut RecordedRun)| {
        let mut run = small_run();
        change(&mut run);
        run.check().expect_err("a run that contradicts itself").to_string()
    };
    let short = changed(|run| run.steps = 4);
    assert_eq!(short, "the recorded run has 3 entries in train_loss, expected 4");
    let unevaluated = changed(|run| run.eval_step.clear());
    assert_eq!(unevaluated, "the recorded run has no evaluations, expected at least one");
    let unordered = changed(|run| run.eval_step[1] = 0);
    assert_eq!(unordered, "evaluation 1 of the recorded run is at step 0, expected one behind 0");
}

#[test]
fn a_file_that_is_no_record_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    assert!(matches!(read_run(&path), Err(ReadError::Open { path: named, .. }) if named == path));
    std::fs::write(&path, "{\"rank\": 1, \"colour\": 2}").unwrap();
    let error = read_run(&path).unwrap_err();
    assert!(
        matches!(&error, ReadError::Parse { path: named, source, .. } if *named == path && source.to_string().contains("colour"))
    );
    let mut run = small_run();
    run.steps = 9;
    std::fs::write(&path, serde_json::to_string(&run).unwrap()).unwrap();
    assert!(matches!(read_run(&path), Err(ReadError::Run { path: named, .. }) if named == path));
}

#[test]
fn a_corpus_that_cannot_be_replayed_is_named_with_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("task.json");
    let write = |runs: Vec<RecordedRun>| {
        let corpus = Corpus { version: CORPUS_VERSION, task: "small".to_owned(), model: None, runs };
        std::fs::write(&path, serde_json::to_string(&corpus).unwrap()).unwrap();
        read_corpus(&path)
    };
    assert_eq!(write(vec![small_run()]).unwrap().runs, [small_run()]);
    assert!(matches!(write(vec![]), Err(ReadError::Corpus { path: named, .. }) if named == path));
    let mut broken = small_run();
    broken.eval_step[2] = 1;
    let error = write(vec![small_run(), broken]).unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "run 1 (#1) can't be replayed");
    let expected = "evaluation 2 of the recorded run is at step 1, expected one behind 1";
    assert_eq!(source.source().unwrap().to_string(), expected);
    std::fs::write(&path, "").unwrap();
    assert!(matches!(read_corpus(&path), Err(ReadError::Parse { .. })));
    assert!(matches!(read_corpus(folder.path()), Err(ReadError::Open { .. })));
}
