//! Jobs, rows and recorded runs that the tests are made of.

use std::path::Path;

use alto_core::batch::Example;
use alto_core::data::Dataset;
use alto_core::job::{AccumulationMode, AdamW, AdapterConfig, Decay, Job, Schedule};
use alto_core::simulated::{CostModel, RecordedRun, SimulatedBackend, read_run};
use alto_core::trainer::{Candidate, Event, EventKind, Outcome, TrainError, Trainer};
use alto_exit::ExitPolicy;

/// A job of batch size 1 and rank 4.
pub(crate) fn job(name: &str, steps: u64) -> Job {
    Job {
        name: name.into(),
        adapter: AdapterConfig { rank: 4, alpha: 8.0, rank_stabilized: false, targets: ["q_proj".into()].into() },
        optimizer: AdamW::new(1e-3),
        schedule: Schedule { decay: Decay::Constant, warmup_steps: 0 },
        batch: 1,
        accumulation: 1,
        accumulation_mode: AccumulationMode::TokenMean,
        steps,
        seed: 7,
    }
}

/// Rows of 2, 3, 4, ... tokens, all labelled.
pub(crate) fn rows(count: usize) -> Dataset {
    let row = |index: usize| {
        let tokens: Vec<u32> = (0..index as u32 + 2).collect();
        Example { targets: tokens.iter().map(|&token| Some(token)).collect(), tokens }
    };
    Dataset::from_examples((0..count).map(row).collect()).expect("rows with labels")
}

/// A run of these training losses that was evaluated after these steps.
pub(crate) fn recorded(train_loss: Vec<f64>, validation: &[(u64, f64)]) -> RecordedRun {
    RecordedRun {
        name: None,
        seed: None,
        rank: 4,
        alpha: 8.0,
        lr: 1e-3,
        batch: 1,
        steps: train_loss.len() as u64,
        train_loss,
        grad_norm: vec![],
        lr_at: vec![],
        eval_step: validation.iter().map(|point| point.0).collect(),
        val_loss: validation.iter().map(|point| point.1).collect(),
        seconds: 0.0,
    }
}

/// A run of this many steps whose losses go in a line from 2.0 to `last`.
pub(crate) fn line(steps: u64, last: f64) -> RecordedRun {
    let loss = |step: u64| 2.0 + (last - 2.0) * step as f64 / steps as f64;
    recorded((1..=steps).map(loss).collect(), &[(0, 2.0), (steps, last)])
}

/// The recorded sweep in `testdata`: by name, with the job that replays each.
pub(crate) fn recorded_sweep() -> Vec<(Job, RecordedRun)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/curves");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("testdata").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let run = read_run(path).expect("a recorded run");
        let mut job = job(path.file_stem().and_then(|stem| stem.to_str()).expect("a name"), run.steps);
        (job.adapter.rank, job.adapter.alpha) = (run.rank, run.alpha);
        (job.optimizer.learning_rate, job.batch) = (run.lr, run.batch);
        (job, run)
    };
    files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "json")).map(read).collect()
}

/// A backend that replays these, at no cost.
pub(crate) fn backend(jobs: &[(Job, RecordedRun)]) -> SimulatedBackend {
    priced(jobs, CostModel::default())
}

/// A backend that replays these.
pub(crate) fn priced(jobs: &[(Job, RecordedRun)], cost: CostModel) -> SimulatedBackend {
    SimulatedBackend::new(jobs.iter().map(|(job, run)| (job.name.clone(), run.clone())), cost).expect("runs to replay")
}

/// The jobs as candidates.
pub(crate) fn candidates(jobs: &[(Job, RecordedRun)]) -> Vec<Candidate> {
    jobs.iter().map(|(job, _)| Candidate::from(job.clone())).collect()
}

/// Runs them on a backend of their own.
pub(crate) fn run(
    trainer: &Trainer,
    jobs: &[(Job, RecordedRun)],
    policy: &dyn ExitPolicy,
) -> (Outcome, Vec<EventKind>) {
    let (outcome, events) = run_on(trainer, &mut backend(jobs), jobs, policy);
    (outcome.expect("a run without faults"), events)
}

/// Runs them on this backend, over eight training and three validation rows.
pub(crate) fn run_on(
    trainer: &Trainer,
    backend: &mut dyn alto_core::backend::Backend,
    jobs: &[(Job, RecordedRun)],
    policy: &dyn ExitPolicy,
) -> (Result<Outcome, TrainError>, Vec<EventKind>) {
    let mut events = vec![];
    let mut observe = |event: &Event| events.push(event.kind.clone());
    let outcome = trainer.run(backend, &rows(8), &rows(3), candidates(jobs), policy, &mut observe);
    (outcome, events)
}

/// How many steps the simulated backend has trained an adapter: the entries of `b` count them.
pub(crate) fn trained_steps(adapter: &alto_core::adapter::Adapter) -> f32 {
    adapter.modules["simulated.q_proj"].b.data()[0]
}
