//! How fast a backend trains and how much memory that takes, from a few steps.

use alto_sched::{Load, MemoryModel, MemorySample};
use serde::{Deserialize, Serialize};

use crate::backend::{Backend, BackendError, Slot};
use crate::batch::{Batch, Example, Lane, Objective};
use crate::data::Dataset;
use crate::job::Job;
use crate::simulated::CostModel;
use crate::trainer::Trainer;

/// Times that each batch is run, after once that sets things up; the least counts, as whatever disturbs adds to it.
const REPEATS: u64 = 5;

/// What a backend takes for a step and an evaluation, from a short measurement.
///
/// Time is linear in the tokens of a batch: a call takes what it always takes, and so much for each token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Time of a training step.
    pub step: Line,
    /// Time of an evaluation.
    pub evaluation: Line,
    /// Memory of a step, if what the backend reports makes a model; for [`Admission::Known`](crate::trainer::Admission).
    pub memory: Option<MemoryModel>,
    /// How long measuring took.
    pub seconds: f64,
}

/// Seconds as a linear function of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Seconds of a call, whatever its batch.
    pub call: f64,
    /// Seconds of a token.
    pub token: f64,
}

impl Profile {
    /// Times a few steps and evaluations of batches of the first, the first two, four, ... of these jobs, up to all, and
    /// leaves the backend as it was. A job that stands there twice has two lanes.
    ///
    /// `clock` tells seconds: those since some [`Instant`](std::time::Instant), or of a simulated backend's
    /// [`Clock`](crate::simulated::Clock).
    ///
    /// # Errors
    /// The backend can't train the jobs, or failed.
    pub fn measure(
        backend: &mut dyn Backend,
        train: &Dataset,
        jobs: &[Job],
        clock: &dyn Fn() -> f64,
    ) -> Result<Self, BackendError> {
        let began = clock();
        let lanes = jobs.len();
        let counts = std::iter::successors(lanes.checked_sub(1).map(|_| 1), |&count| {
            (count < lanes).then(|| lanes.min(2 * count))
        });
        let mut slots = vec![];
        let mut measured = Measured::default();
        let outcome = counts.into_iter().try_for_each(|count| {
            for job in &jobs[slots.len()..count] {
                slots.push(backend.attach(job, None)?);
            }
            measured.add(backend, train, &jobs[..count], &slots, clock)
        });
        // All of them, whatever one says.
        let detached = slots.into_iter().map(|slot| backend.detach(slot).map(drop));
        outcome.and(detached.fold(Ok(()), Result::and))?;
        Ok(Self {
            step: Line::fit(&measured.steps),
            evaluation: Line::fit(&measured.evaluations),
            memory: MemoryModel::fit(&measured.memory, false).ok(),
            seconds: clock() - began,
        })
    }

    /// What a simulated device charges that is as fast as what was measured; its memory has no end.
    pub fn cost_model(&self) -> CostModel {
        CostModel {
            launch_seconds: self.step.call,
            evaluation_launch_seconds: Some(self.evaluation.call),
            seconds_per_token: self.step.token,
            seconds_per_evaluated_token: self.evaluation.token,
            ..CostModel::default()
        }
    }

    /// Seconds that a trainer takes for these jobs when none of them exits, with so many at a time as it has
    /// [`slots`](Trainer::slots).
    pub fn duration(&self, trainer: &Trainer, jobs: &[Job], train: &Dataset, validation: &Dataset) -> f64 {
        let tokens = |data: &Dataset| data.examples().iter().map(|row| row.tokens.len()).sum::<usize>() as f64;
        let row = tokens(train) / train.examples().len() as f64;
        let slots = trainer.slots.unwrap_or(jobs.len()).clamp(1, jobs.len().max(1)) as f64;
        let calls = |job: &Job| (job.steps * job.accumulation as u64) as f64;
        let longest = jobs.iter().map(calls).fold(0.0, f64::max);
        let calls = (jobs.iter().map(calls).sum::<f64>() / slots).max(longest);
        let rows: u64 = jobs.iter().map(|job| job.samples(job.steps)).sum();
        let evaluations = |job: &Job| 1.0 + (1.0 / trainer.interval).ceil().min(job.steps as f64);
        let evaluations: f64 = jobs.iter().map(evaluations).sum();
        // Jobs are evaluated together, as many as have all their rows in one call.
        let (rows_each, most) = (validation.examples().len() as f64, trainer.evaluation_rows.max(1) as f64);
        let together = (most / rows_each).floor().max(1.0);
        let blocks = (slots / together).ceil() / slots * (rows_each / most).ceil();
        self.step.call * calls
            + self.step.token * rows as f64 * row
            + evaluations * (self.evaluation.call * blocks + self.evaluation.token * tokens(validation))
    }
}

/// Tokens and seconds of each batch, and the most memory that it took.
#[derive(Default)]
struct Measured {
    steps: Vec<(f64, f64)>,
    evaluations: Vec<(f64, f64)>,
    memory: Vec<MemorySample>,
}

impl Measured {
    /// Measures a micro-batch of each of these jobs, which have these slots.
    fn add(
        &mut self,
        backend: &mut dyn Backend,
        train: &Dataset,
        jobs: &[Job],
        slots: &[Slot],
        clock: &dyn Fn() -> f64,
    ) -> Result<(), BackendError> {
        let timed = |work: &mut dyn FnMut() -> Result<(), BackendError>| {
            work()?;
            let mut least = f64::INFINITY;
            for _ in 0..REPEATS {
                let began = clock();
                work()?;
                least = least.min(clock() - began);
            }
            Ok::<f64, BackendError>(least)
        };
        let batch = batch(train, jobs, slots);
        let tokens = batch.tokens.len();
        backend.memory();
        let seconds = timed(&mut || backend.step(&batch).and_then(|()| backend.read()).map(drop))?;
        self.steps.push((tokens as f64, seconds));
        let adapter_bytes = jobs.iter().map(|job| backend.adapter_bytes(job)).sum();
        let load = Load { adapter_bytes, tokens: tokens as u64, squared_tokens: 0 };
        self.memory.push(MemorySample { load, peak: backend.memory().peak });
        let seconds = timed(&mut || backend.evaluate(&batch).map(drop))?;
        self.evaluations.push((tokens as f64, seconds));
        Ok(())
    }
}

/// A micro-batch of each of these jobs, all of other rows.
fn batch(train: &Dataset, jobs: &[Job], slots: &[Slot]) -> Batch {
    let mut batch = Batch::default();
    for (step, (job, &slot)) in (0..).zip(jobs.iter().zip(slots)) {
        let rows: Vec<&Example> = train.micro_batch(job, step % job.steps, 0);
        let divisor = rows.iter().map(|row| row.labelled()).sum::<usize>().max(1) as f64;
        let objective = Objective::NegativeLogLikelihood;
        batch.push(Lane { slot: Some(slot), rows: rows.len(), objective, divisor, last: true }, rows);
    }
    batch
}

impl Line {
    /// Least squares; through the origin where a call would take less than no time, level where a token would.
    fn fit(points: &[(f64, f64)]) -> Self {
        let count = points.len().max(1) as f64;
        let mean = |value: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
        let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
        let spread = mean(&|point| (point.0 - x).powi(2));
        let token = if spread > 0.0 { mean(&|point| (point.0 - x) * (point.1 - y)) / spread } else { y / x.max(1.0) };
        let call = y - token * x;
        match (call >= 0.0, token >= 0.0) {
            (true, true) => Self { call, token },
            (false, _) => {
                Self { call: 0.0, token: mean(&|point| point.0 * point.1) / mean(&|point| point.0 * point.0) }
            }
            (_, false) => Self { call: y, token: 0.0 },
        }
    }
}
