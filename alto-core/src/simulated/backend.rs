//! The backend: slots, a virtual clock, and losses out of the record.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use alto_exit::replay::{RecordedRun, RunError};

use super::systems::{AdapterLoad, CostError, Setup};
use super::{clock::Clock, consistency, cost::CostModel, stand_in};
use crate::backend::{Backend, BackendError, Evaluation, JobState, Memory, Slot, StepReport};
use crate::batch::{Batch, Lane};
use crate::job::Job;

/// Replays recorded runs: step `s` of a job has the loss that the run of its name has at the same progress.
///
/// A job whose budget differs from its run's goes through the same course faster or slower. Rows don't change the
/// losses, only time and memory. A recorded loss that isn't finite is reported as such; the adapter stays as it was.
#[derive(Debug)]
pub struct SimulatedBackend {
    runs: BTreeMap<String, RecordedRun>,
    surface: Option<Surface>,
    cost: CostModel,
    timing: Option<Setup>,
    /// The same without recomputation.
    evaluating: Option<Setup>,
    untrained_loss: Option<f64>,
    attached: BTreeMap<Slot, Attached>,
    next_slot: u64,
    unread: Vec<StepReport>,
    clock: Clock,
    peak: u64,
}

/// Makes the run of a job that isn't known by name.
struct Surface(Box<dyn Fn(&Job) -> RecordedRun + Send>);

impl fmt::Debug for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Surface")
    }
}

#[derive(Debug)]
struct Attached {
    job: Job,
    state: JobState,
}

impl SimulatedBackend {
    /// A device that knows these runs by the names of the jobs that replay them.
    ///
    /// The loss of the base model is known if the runs that recorded one before their first step agree on it, within
    /// one in a million.
    ///
    /// # Errors
    /// When there is no run, a name stands twice, a run doesn't pass [`RecordedRun::check`], a time of the cost model
    /// isn't a finite number of at least 0, or the fixed bytes alone are over the budget.
    pub fn new(
        runs: impl IntoIterator<Item = (String, RecordedRun)>,
        cost: CostModel,
    ) -> Result<Self, SimulationError> {
        cost.check()?;
        let mut by_name = BTreeMap::new();
        for (job, run) in runs {
            run.check().map_err(|source| SimulationError::BadRun { job: job.clone(), source })?;
            if by_name.insert(job.clone(), run).is_some() {
                return Err(SimulationError::DuplicateRun { job });
            }
        }
        if by_name.is_empty() {
            return Err(SimulationError::NoRuns);
        }
        Self::of(by_name, None, cost)
    }

    /// A device on which the course of a job follows from its settings: a response surface, for jobs that nobody knows
    /// beforehand, as those that a search proposes.
    ///
    /// The loss of the base model alone is not known.
    ///
    /// # Errors
    /// As [`new`](Self::new). A run that doesn't pass [`RecordedRun::check`] is an error when its job is attached.
    pub fn from_surface(
        surface: impl Fn(&Job) -> RecordedRun + Send + 'static,
        cost: CostModel,
    ) -> Result<Self, SimulationError> {
        cost.check()?;
        Self::of(BTreeMap::new(), Some(Surface(Box::new(surface))), cost)
    }

    fn of(
        runs: BTreeMap<String, RecordedRun>,
        surface: Option<Surface>,
        cost: CostModel,
    ) -> Result<Self, SimulationError> {
        fits(cost.fixed_bytes, cost.budget)?;
        Ok(Self {
            untrained_loss: common_untrained_loss(&runs),
            runs,
            surface,
            cost,
            timing: None,
            evaluating: None,
            attached: BTreeMap::new(),
            next_slot: 0,
            unread: Vec::new(),
            clock: Clock::default(),
            peak: cost.fixed_bytes,
        })
    }

    /// This device, with time as this system would take it instead of the cost model's; memory stays as it is.
    ///
    /// Each call is a pass of its lanes, and an update of those whose optimizer step ends with it. An evaluation is
    /// half a pass that recomputes nothing: forward alone, which costs what a frozen layer's backward does. Rows of no
    /// adapter count as one of rank 1.
    ///
    /// ```
    /// use alto_core::dtype::Dtype;
    /// use alto_core::simulated::systems::{AdapterLoad, Device, ModelShape, Optimizer, Setup, System};
    /// use alto_core::simulated::{RecordedRun, SimulatedBackend};
    ///
    /// let (device, model) = (Device::named("H100 SXM")?, ModelShape::named("Llama-3.1-8B")?);
    /// let setup = Setup { system: System::AdapterParallel, device, model, dtype: Dtype::Bf16, devices: 1, optimizer: Optimizer::AdamW, recompute: false };
    /// let run = r#"{"rank": 8, "alpha": 16, "lr": 1e-4, "batch": 1, "steps": 1,
    ///     "train_loss": [2], "eval_step": [1], "val_loss": [1]}"#;
    /// let run: RecordedRun = serde_json::from_str(run)?;
    /// let cost = setup.cost_model(&[AdapterLoad::new(8, 1, 256)])?;
    /// let backend = SimulatedBackend::new([("alone".to_owned(), run)], cost)?.timed_by(setup)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the setup lacks a parameter.
    pub fn timed_by(self, setup: Setup) -> Result<Self, CostError> {
        setup.check()?;
        let evaluating = Some(Setup { recompute: false, ..setup.clone() });
        Ok(Self { timing: Some(setup), evaluating, ..self })
    }

    /// Virtual time that all steps and evaluations have taken so far.
    pub fn elapsed(&self) -> Duration {
        Duration::try_from_secs_f64(self.clock.seconds()).unwrap_or(Duration::MAX)
    }

    /// The clock that tells this time, also to those who don't have the backend while a trainer has it.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn run(&self, job: &Job) -> Result<&RecordedRun, SimulationError> {
        self.runs.get(&job.name).ok_or_else(|| SimulationError::UnknownRun {
            job: job.name.clone(),
            known: self.runs.keys().take(5).cloned().collect::<Vec<_>>().join(", "),
            runs: self.runs.len(),
        })
    }

    fn in_use(&self) -> u64 {
        let adapters = self.attached.values().map(|attached| self.adapter_bytes(&attached.job));
        adapters.fold(self.cost.fixed_bytes, u64::saturating_add)
    }

    /// Charges the memory that a batch takes, if there is as much.
    fn hold(&mut self, batch: &Batch) -> Result<(), SimulationError> {
        let bytes = self.cost.bytes_per_token.saturating_mul(batch.tokens.len() as u64);
        let needed = self.in_use().saturating_add(bytes);
        fits(needed, self.cost.budget)?;
        self.peak = self.peak.max(needed);
        Ok(())
    }

    fn known(&self, batch: &Batch) -> Result<(), BackendError> {
        let mut slots = batch.lanes.iter().filter_map(|lane| lane.slot);
        match slots.find(|slot| !self.attached.contains_key(slot)) {
            Some(slot) => Err(BackendError::UnknownSlot { slot }),
            None => Ok(()),
        }
    }

    fn step_seconds(&self, batch: &Batch) -> Result<f64, SimulationError> {
        let Some(setup) = &self.timing else {
            return Ok(self.cost.launch_seconds + self.cost.seconds_per_token * batch.tokens.len() as f64);
        };
        let loads = self.loads(batch);
        let last = loads.iter().zip(&batch.lanes).filter(|(_, lane)| lane.last);
        let last: Vec<AdapterLoad> = last.map(|(load, _)| *load).collect();
        Ok(setup.pass(&loads).map_err(Box::new)?.seconds() + setup.update(&last).map_err(Box::new)?.seconds())
    }

    fn evaluation_seconds(&self, batch: &Batch) -> Result<f64, SimulationError> {
        let Some(setup) = &self.evaluating else {
            let tokens = batch.tokens.len() as f64;
            return Ok(self.cost.evaluation_launch() + self.cost.seconds_per_evaluated_token * tokens);
        };
        Ok(setup.pass(&self.loads(batch)).map_err(Box::new)?.seconds() / 2.0)
    }

    /// What each lane brings to a pass.
    fn loads(&self, batch: &Batch) -> Vec<AdapterLoad> {
        let load = |(lane, tokens): (&Lane, std::ops::Range<usize>)| {
            let rank = lane.slot.and_then(|slot| Some(self.attached.get(&slot)?.job.adapter.rank)).unwrap_or(1);
            AdapterLoad { rank, rows: lane.rows, tokens: tokens.len() as u64, micro_batches: 1 }
        };
        batch.lane_tokens().map(load).collect()
    }

    /// The report of the step that the job in this slot now makes.
    fn advance(&mut self, slot: Slot) -> Result<(), BackendError> {
        let Attached { job, state } = self.attached.get_mut(&slot).ok_or(BackendError::UnknownSlot { slot })?;
        let learning_rate = job.learning_rate(state.step);
        let run = &self.runs[&job.name];
        let step = state.step + 1;
        let loss = run.train_loss(step, job.steps);
        if loss.is_finite() {
            stand_in::train(state);
        } else {
            state.step = step;
        }
        self.unread.push(StepReport {
            slot,
            step,
            loss,
            grad_norm: run.grad_norm(step, job.steps),
            learning_rate,
            not_finite: (!loss.is_finite()).then(|| "loss".to_owned()),
            metrics: BTreeMap::new(),
        });
        Ok(())
    }
}

impl Backend for SimulatedBackend {
    fn check(&self, job: &Job) -> Result<(), BackendError> {
        job.check()?;
        if self.surface.is_none() {
            self.run(job)?;
        }
        Ok(())
    }

    fn adapter_bytes(&self, job: &Job) -> u64 {
        let ranks = (job.adapter.rank * job.adapter.targets.len()) as u64;
        self.cost.adapter_bytes_per_rank.saturating_mul(ranks)
    }

    fn attach(&mut self, job: &Job, state: Option<JobState>) -> Result<Slot, BackendError> {
        self.check(job)?;
        if let Some(Surface(run)) = &self.surface {
            let (job, run) = (job.name.clone(), run(job));
            run.check().map_err(|source| SimulationError::BadRun { job: job.clone(), source })?;
            self.runs.insert(job, run);
        }
        if let Some(state) = &state {
            stand_in::check(job, state)?;
        }
        let needed = self.in_use().saturating_add(self.adapter_bytes(job));
        fits(needed, self.cost.budget)?;
        self.peak = self.peak.max(needed);
        let slot = Slot(self.next_slot);
        self.next_slot += 1;
        let state = state.unwrap_or_else(|| stand_in::start(job));
        self.attached.insert(slot, Attached { job: job.clone(), state });
        Ok(slot)
    }

    fn step(&mut self, batch: &Batch) -> Result<(), BackendError> {
        consistency::check(batch)?;
        consistency::check_divisors(batch)?;
        self.known(batch)?;
        self.hold(batch)?;
        self.clock.advance(self.step_seconds(batch)?);
        for lane in batch.lanes.iter().filter(|lane| lane.last) {
            if let Some(slot) = lane.slot {
                self.advance(slot)?;
            }
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<StepReport>, BackendError> {
        Ok(std::mem::take(&mut self.unread))
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<Vec<Evaluation>, BackendError> {
        consistency::check(batch)?;
        let mut evaluations = Vec::with_capacity(batch.lanes.len());
        for (index, (lane, tokens)) in batch.lane_tokens().enumerate() {
            let loss = match lane.slot {
                None => self.untrained_loss.ok_or(SimulationError::NoUntrainedLoss { lane: index })?,
                Some(slot) => {
                    let Attached { job, state } = self.attached.get(&slot).ok_or(BackendError::UnknownSlot { slot })?;
                    self.runs[&job.name].val_loss(state.step, job.steps)
                }
            };
            let count = batch.targets[tokens].iter().flatten().count() as u64;
            // An empty lane sums to 0 also where the recorded loss isn't finite.
            let sum = if count == 0 { 0.0 } else { loss * count as f64 };
            evaluations.push(Evaluation { lane: index, metric: "loss".to_owned(), sum, count });
        }
        self.hold(batch)?;
        self.clock.advance(self.evaluation_seconds(batch)?);
        Ok(evaluations)
    }

    fn snapshot(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        let attached = self.attached.get(&slot).ok_or(BackendError::UnknownSlot { slot })?;
        Ok(attached.state.clone())
    }

    fn detach(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        let attached = self.attached.remove(&slot).ok_or(BackendError::UnknownSlot { slot })?;
        Ok(attached.state)
    }

    fn memory(&mut self) -> Memory {
        let in_use = self.in_use();
        let peak = std::mem::replace(&mut self.peak, in_use);
        Memory { in_use, peak, budget: self.cost.budget }
    }
}

fn fits(needed: u64, budget: Option<u64>) -> Result<(), SimulationError> {
    match budget {
        Some(budget) if needed > budget => Err(SimulationError::OutOfMemory { needed, budget }),
        _ => Ok(()),
    }
}

fn common_untrained_loss(runs: &BTreeMap<String, RecordedRun>) -> Option<f64> {
    let mut losses = runs.values().filter_map(RecordedRun::untrained_loss);
    let first = losses.next()?;
    losses.all(|loss| (loss - first).abs() <= 1e-6 * first.abs()).then_some(first)
}

/// Why a simulated device can't be made, or can't do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// Nothing to replay.
    #[error("no recorded runs, expected at least one")]
    NoRuns,
    /// Two runs of one name.
    #[error("two recorded runs are named {job}")]
    DuplicateRun {
        /// The name.
        job: String,
    },
    /// A run that can't be replayed.
    #[error("the recorded run of job {job} can't be replayed")]
    BadRun {
        /// Its name.
        job: String,
        /// What is wrong with it.
        #[source]
        source: RunError,
    },
    /// A time that is none.
    #[error("{setting} of the cost model is {value}, expected a finite number of at least 0")]
    BadCost {
        /// Which of its settings.
        setting: &'static str,
        /// Its value.
        value: f64,
    },
    /// A job without a record.
    #[error("job {job} has no recorded run; there are {runs}, the first are {known}")]
    UnknownRun {
        /// The job's name.
        job: String,
        /// The first names there are, separated by commas.
        known: String,
        /// How many there are.
        runs: usize,
    },
    /// A time that the system's setup doesn't give.
    #[error("the system's time can't be computed")]
    Timing(#[from] Box<CostError>),
    /// More memory asked for than there is.
    #[error("{needed} bytes are needed, but the budget is {budget}")]
    OutOfMemory {
        /// Bytes needed.
        needed: u64,
        /// Bytes that may be used.
        budget: u64,
    },
    /// Rows of the base model, whose loss the records don't tell.
    #[error("lane {lane} has no slot, but the recorded runs have no common loss at step 0")]
    NoUntrainedLoss {
        /// Index of the lane.
        lane: usize,
    },
}

impl From<SimulationError> for BackendError {
    fn from(error: SimulationError) -> Self {
        BackendError::Own(Box::new(error))
    }
}
