//! One task, trained from its first step to its last on a virtual clock.

use crate::batch::Example;
use crate::data::Dataset;
use crate::exit::ExitPolicy;
use crate::exit::replay::RecordedRun;
use crate::fleet::Timeline;
use crate::job::{RANK_LIMIT, SAMPLES_LIMIT, STEP_ROWS_LIMIT};
use crate::simulated::SimulatedBackend;
use crate::simulated::systems::Setup;
use crate::simulated::workload::{TaskJob, TuningTask, WorkloadError};
use crate::trainer::{Admission, Candidate, Trainer};

use super::error::StudyError;

/// What became of a task whose jobs were trained by a [`Trainer`].
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// Whether activations were recomputed.
    pub recompute: bool,
    /// When it was expected to end, and when it did, in seconds from its start.
    pub timeline: Timeline,
    /// Rows that its jobs saw.
    pub samples: u64,
    /// Rows that they would see if none exited.
    pub samples_budgeted: u64,
}

impl Trained {
    /// How long it takes, in seconds.
    pub fn seconds(&self) -> f64 {
        self.timeline.end
    }

    /// Share of the samples that exits save, 0 to 1.
    pub fn saved(&self) -> f64 {
        1.0 - self.samples as f64 / self.samples_budgeted as f64
    }
}

/// The most tokens of a row: those of the largest batch then fit in a number.
const ROW_TOKENS_LIMIT: u64 = 1 << 32;

/// The most rows in a call that evaluates: where a model is gathered for each call, few large ones are much faster, and
/// memory has room for rows of which nothing is kept.
const EVALUATED_TOGETHER: usize = 256;

/// Trains the task's jobs, of which job `i` replays `runs[i % runs.len()]`, as this setup would, with so many rows of
/// validation.
///
/// It is the [`Trainer`] that a device has, on a [`SimulatedBackend`] that takes the setup's time: jobs of the largest
/// batch begin as far as memory allows, all that have a place step together and are evaluated every hundredth of their
/// budget, who waits at a rung gives its place to the next, and so does who ends. Systems that train one adapter after
/// another have one place, or one on each device.
///
/// # Errors
/// No jobs or runs, a size of 0 or too large to count, a job that doesn't fit alone, a setup that lacks a parameter, or a run or policy that
/// the trainer refuses.
pub fn train(
    task: &TuningTask,
    setup: &Setup,
    runs: &[RecordedRun],
    policy: &dyn ExitPolicy,
    validation_rows: usize,
) -> Result<Trained, StudyError> {
    check(task, setup, runs, validation_rows)?;
    let jobs: Vec<_> = task.jobs.iter().enumerate().map(|(index, job)| job.to_job(&index.to_string(), 0)).collect();
    let loads: Vec<_> = task.jobs.iter().map(|job| job.load(task.row_tokens)).collect();
    let mut cost = setup.cost_model(&loads[..1])?;
    // The budget is for the device and for what jobs keep on the host, of which there is enough.
    let kept = |(index, job): (usize, &TaskJob)| {
        let bytes = cost.adapter_bytes_per_rank * 7 * job.rank as u64;
        if policy.rungs(index).is_empty() { bytes / 4 } else { bytes }
    };
    let kept: u64 = task.jobs.iter().enumerate().map(kept).sum();
    cost.budget = cost.budget.map(|budget| budget.saturating_add(kept));
    let slots = setup.system.slots(setup.devices);
    let admission = match slots {
        Some(_) => Admission::Unlimited,
        None => Admission::Known(setup.memory_model(&loads)?),
    };
    if slots.is_some() {
        cost.budget = None;
    }
    let named = jobs.iter().zip(runs.iter().cycle()).map(|(job, run)| (job.name.clone(), run.clone()));
    let mut backend = SimulatedBackend::new(named, cost)?.timed_by(setup.clone())?;
    let clock = backend.clock();
    let trainer = Trainer { slots, admission, evaluation_rows: EVALUATED_TOGETHER, ..Trainer::default() };
    let most = task.jobs.iter().map(|job| job.batch).max().unwrap_or(1);
    let (train, validation) = (rows(most, task.row_tokens), rows(validation_rows, task.row_tokens));
    let candidates: Vec<Candidate> = jobs.into_iter().map(Candidate::from).collect();
    let (timeline, outcome) =
        Timeline::trained(&clock, &trainer, &mut backend, &train?, &validation?, candidates, policy);
    let totals = outcome?.report.totals;
    let recompute = setup.recompute;
    Ok(Trained { recompute, timeline, samples: totals.samples, samples_budgeted: totals.samples_budgeted })
}

/// So many rows of so many tokens, which all count.
fn rows(count: usize, tokens: u64) -> Result<Dataset, StudyError> {
    let row = Example { tokens: vec![0; tokens as usize], targets: vec![Some(0); tokens as usize] };
    Ok(Dataset::from_examples(vec![row; count])?)
}

fn check(task: &TuningTask, setup: &Setup, runs: &[RecordedRun], validation_rows: usize) -> Result<(), StudyError> {
    for (setting, is_empty) in [("jobs", task.jobs.is_empty()), ("recorded runs", runs.is_empty())] {
        if is_empty {
            return Err(WorkloadError::Empty { setting }.into());
        }
    }
    let sizes = task.jobs.iter().flat_map(|job| {
        let TaskJob { rank, batch, samples, .. } = *job;
        [
            ("rank", rank as u64, RANK_LIMIT as u64, "from 1 to 65536"),
            ("batch", batch as u64, STEP_ROWS_LIMIT as u64, "from 1 to 1048576"),
            ("samples", samples, SAMPLES_LIMIT, "from 1 to 2^53"),
        ]
    });
    let whole = [
        ("row_tokens", task.row_tokens, ROW_TOKENS_LIMIT, "from 1 to 2^32"),
        ("validation_rows", validation_rows as u64, STEP_ROWS_LIMIT as u64, "from 1 to 1048576"),
    ];
    for (setting, value, most, expected) in whole.into_iter().chain(sizes) {
        if value == 0 || value > most {
            return Err(WorkloadError::OutOfRange { setting, value: value as f64, expected }.into());
        }
    }
    for job in &task.jobs {
        let needed = setup.needed_bytes(&[job.load(task.row_tokens)])?;
        if needed as f64 > setup.device.memory {
            return Err(StudyError::NeverFits {
                task: task.name.clone(),
                rank: job.rank,
                batch: job.batch,
                needed,
                device: setup.device.name.clone(),
                memory: setup.device.memory as u64,
            });
        }
    }
    Ok(())
}
