//! The seam between what decides (trainer, policies, schedulers) and what computes.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::adapter::Adapter;
use crate::batch::Batch;
use crate::dtype::Dtype;
use crate::job::{Job, JobError};

/// A job's place on a device. A backend never hands out the same one twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u64);

/// AdamW's moments of one layer's two factors, each laid out as the factor itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// Running mean of the gradients.
    pub first: crate::adapter::LoraPair,
    /// Running mean of the squared gradients.
    pub second: crate::adapter::LoraPair,
}

/// All that a job needs to go on elsewhere or later exactly as it would have here.
///
/// Its data cursor is `step`, since a job's batches follow from its seed and step alone.
#[derive(Debug, Clone, PartialEq)]
pub struct JobState {
    /// The adapter.
    pub adapter: Adapter,
    /// The optimizer's moments by module path; empty before the first step.
    pub moments: BTreeMap<String, Moments>,
    /// Optimizer steps done.
    pub step: u64,
}

impl JobState {
    /// A job that starts from this adapter, with a fresh optimizer.
    pub fn starting_from(adapter: Adapter) -> Self {
        Self { adapter, moments: BTreeMap::new(), step: 0 }
    }
}

/// What one optimizer step of one job came to.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// Whose step.
    pub slot: Slot,
    /// Which step, from 1.
    pub step: u64,
    /// Its loss, in nats per token where the lane's divisor counts tokens.
    pub loss: f64,
    /// Norm of the adapter's whole gradient, before clipping.
    pub grad_norm: f64,
    /// The learning rate that the step ran at.
    pub learning_rate: f64,
    /// The first tensor that was not finite, if any: `loss`, or a module path with `.lora_A` or `.lora_B` for its
    /// gradient. The optimizer left the adapter as it was.
    pub not_finite: Option<String>,
    /// Anything else that the objective measures.
    pub metrics: BTreeMap<String, f64>,
}

/// The sum of a metric over one lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Index of the lane in the batch.
    pub lane: usize,
    /// What was measured; `loss` is `-log p` of the labelled tokens, in nats.
    pub metric: String,
    /// Sum over the lane.
    pub sum: f64,
    /// How many it sums: labelled tokens, for `loss`.
    pub count: u64,
}

/// Memory of a device, in bytes; of the process, where the device computes in the process's own memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// In use now.
    pub in_use: u64,
    /// Most in use since last asked, memory included that is only held for reuse if nobody else can have it meanwhile.
    pub peak: u64,
    /// What may be used; `None` is no limit.
    pub budget: Option<u64>,
}

/// A frozen base model on a device, with room for adapters.
///
/// Work may be queued: only [`read`](Self::read), [`evaluate`](Self::evaluate), [`snapshot`](Self::snapshot) and
/// [`detach`](Self::detach) wait for the device. Whoever shares a batch with a job must not change what it computes.
pub trait Backend: Debug + Send {
    /// Checks that the job can run here; costs nothing.
    ///
    /// # Errors
    /// Names the job and what about it the model or device can't do.
    fn check(&self, job: &Job) -> Result<(), BackendError>;

    /// Bytes that the job's adapter takes while attached: weights, gradients and optimizer state.
    fn adapter_bytes(&self, job: &Job) -> u64;

    /// Gives the job a place: from its state, or from the start that its seed gives.
    ///
    /// # Errors
    /// As [`check`](Self::check), and when the state doesn't fit the job or the model.
    fn attach(&mut self, job: &Job, state: Option<JobState>) -> Result<Slot, BackendError>;

    /// Forward, backward, and the optimizer's update of every lane whose `last` is set; may be queued.
    ///
    /// A lane without rows adds nothing, and still ends its optimizer step if it is the last of it. A slot stands in at
    /// most one lane.
    ///
    /// # Errors
    /// When the batch doesn't fit the model; nothing has been computed then.
    fn step(&mut self, batch: &Batch) -> Result<(), BackendError>;

    /// All optimizer steps since the last read, also of jobs detached since; waits for the device.
    ///
    /// # Errors
    /// When the device failed.
    fn read(&mut self) -> Result<Vec<StepReport>, BackendError>;

    /// Sum and count per lane and metric, without training; divisors and `last` don't matter.
    ///
    /// # Errors
    /// When the batch doesn't fit the model, or the device failed.
    fn evaluate(&mut self, batch: &Batch) -> Result<Vec<Evaluation>, BackendError>;

    /// A copy of the job's state; gradients of an unfinished optimizer step are not part of it.
    ///
    /// # Errors
    /// When no such job is attached, or the device failed.
    fn snapshot(&mut self, slot: Slot) -> Result<JobState, BackendError>;

    /// Takes the job out and gives its place free; what it leaves touches no later job.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    fn detach(&mut self, slot: Slot) -> Result<JobState, BackendError>;

    /// Memory in use, the peak since last asked, and the budget.
    fn memory(&mut self) -> Memory;
}

const _: Option<&dyn Backend> = None;

/// Why a backend can't do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// A setting of the job is out of range.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The model has no such layer.
    #[error("job {job}: unknown target module {target}, this model has {known}")]
    UnknownTarget {
        /// The job's name.
        job: String,
        /// The unknown name.
        target: String,
        /// The names there are, separated by commas.
        known: String,
    },
    /// An adapter that the machine can't hold.
    #[error(
        "job {job}: its adapter takes {needed} bytes, but the machine has {available}; give it a lower rank or fewer \
         target modules"
    )]
    TooLarge {
        /// The job's name.
        job: String,
        /// Bytes of weights, gradients and optimizer state.
        needed: u64,
        /// Bytes that the machine has in all.
        available: u64,
    },
    /// A dtype that the device can't compute in.
    #[error("{device} can't compute in {dtype}, only in {supported}")]
    UnsupportedDtype {
        /// The device, as its framework names it.
        device: String,
        /// The dtype.
        dtype: Dtype,
        /// The dtypes that it has, separated by commas.
        supported: String,
    },
    /// A weight that the dtype can't represent.
    #[error("the model has the weight {weight}, but {dtype} ends at {}; take f32 or bf16", dtype.largest())]
    WeightOutOfRange {
        /// The weight.
        weight: f32,
        /// The dtype.
        dtype: Dtype,
    },
    /// A state or adapter that isn't the job's, or not the model's.
    #[error("job {job}: its state has {found} for {module}, expected {expected}")]
    StateMismatch {
        /// The job's name.
        job: String,
        /// The module path.
        module: String,
        /// What is there.
        found: String,
        /// What the job and model ask for.
        expected: String,
    },
    /// No job has this slot (any more).
    #[error("slot {} is not attached", slot.0)]
    UnknownSlot {
        /// The slot.
        slot: Slot,
    },
    /// A token that the vocabulary doesn't have.
    #[error("token id {token} at position {position} is out of range, the vocabulary has {vocabulary}")]
    TokenOutOfRange {
        /// The token id.
        token: u32,
        /// Its position in the batch.
        position: usize,
        /// Size of the vocabulary.
        vocabulary: usize,
    },
    /// A row longer than the model's context.
    #[error("row {row} has {length} tokens, the model's context is {context}")]
    RowTooLong {
        /// Index of the row in the batch.
        row: usize,
        /// Its length.
        length: usize,
        /// The most there may be.
        context: usize,
    },
    /// A divisor that is not a positive number.
    #[error("lane {lane} has the loss divisor {divisor}, expected a finite positive number")]
    BadDivisor {
        /// Index of the lane.
        lane: usize,
        /// The divisor.
        divisor: f64,
    },
    /// Lengths within a batch that contradict each other, or a slot that stands in it twice.
    #[error("the batch contradicts itself: {what} is {found}, expected {expected}")]
    InconsistentBatch {
        /// Which of its parts.
        what: &'static str,
        /// The number found.
        found: usize,
        /// The number expected.
        expected: usize,
    },
    /// A reason of the implementer's own.
    #[error(transparent)]
    Own(Box<dyn std::error::Error + Send + Sync>),
    /// The device or the framework below failed.
    #[error("the device failed")]
    Device {
        /// What it said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
