//! Why a run didn't start, or didn't get to its end.

use alto_exit::search::Point;
use alto_sched::FitError;

use super::report::Outcome;
use crate::backend::BackendError;
use crate::job::JobError;

/// Why a run didn't start, or didn't get to its end. All but [`Interrupted`](Self::Interrupted) come before any
/// training.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A setting of the trainer is out of range.
    #[error("trainer: {setting} is {value}, but must be {expected}")]
    Setting {
        /// What the number sets.
        setting: &'static str,
        /// The number.
        value: f64,
        /// What would be right.
        expected: &'static str,
    },
    /// There is nothing to train.
    #[error("no jobs: the grid is empty, give at least one job")]
    NoJobs,
    /// A search's first points hold one that makes no candidate.
    #[error("the search proposes {point}, which makes no job")]
    Proposal {
        /// The point.
        point: Point,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Two jobs have one name, which reports and directories are keyed by.
    #[error("jobs {first} and {second} are both named {name}, give each its own name")]
    DuplicateName {
        /// The name.
        name: String,
        /// Index of the first job of that name.
        first: usize,
        /// Index of the second.
        second: usize,
    },
    /// A micro-batch has more rows than there are, so that it would hold a row twice.
    #[error(
        "job {job}: batch is {batch}, but the training set has {rows} rows, and a micro-batch would hold a row twice; \
         give it a batch of at most {rows}"
    )]
    BatchTooLarge {
        /// The job's name.
        job: String,
        /// Rows in one of its micro-batches.
        batch: usize,
        /// Rows in the training set.
        rows: usize,
    },
    /// A setting of a job is out of range.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The backend can't run a job, or can't take its starting adapter, or failed before training started.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A setting of the exit policy is out of range.
    #[error(transparent)]
    Policy(#[from] alto_exit::SettingError),
    /// The policy names a mark that no progress reaches.
    #[error("job {job}: the policy puts a rung at progress {mark}, but marks are from 0 to 1")]
    BadRung {
        /// The job's name.
        job: String,
        /// The mark.
        mark: f64,
    },
    /// A job doesn't fit into memory even when it trains alone.
    #[error(
        "job {job} never fits: alone it needs {needed} bytes or more for a micro-batch of {tokens} tokens, but the \
         budget is {budget}, of which {kept} are set aside for what all jobs keep on the host; give it a smaller batch \
         or rank, shorten the rows, try fewer jobs, or raise the budget"
    )]
    NeverFits {
        /// The job's name.
        job: String,
        /// Bytes needed, by the fitted model; those of its adapter alone if they are too many already.
        needed: u64,
        /// Tokens in its largest micro-batch.
        tokens: u64,
        /// Bytes set aside for the states and best adapters that all jobs keep on the host.
        kept: u64,
        /// Bytes that may be used.
        budget: u64,
    },
    /// The memory that the backend reports doesn't make a model.
    #[error("the memory that the backend reports makes no model; ignore the budget and limit the slots instead")]
    Profile {
        /// What is wrong with it.
        #[source]
        source: FitError,
    },
    /// The backend failed during training. Everything up to then is in the outcome: jobs that had not ended are
    /// [`Unfinished`](super::Ended::Unfinished) there, each with its curve and its best adapter so far.
    #[error("training was interrupted after {seconds:.1} s")]
    Interrupted {
        /// Seconds since the run started.
        seconds: f64,
        /// What the jobs came to until then.
        outcome: Box<Outcome>,
        /// What failed.
        #[source]
        source: Box<Fault>,
    },
}

/// What ends a run before its time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The backend's reports aren't those of the steps that it was given.
    #[error("job {job}: the backend reported step {found} where step {expected} was due")]
    StepReport {
        /// The job's name.
        job: String,
        /// The step in the report; 0 if there is none.
        found: u64,
        /// The step that was due.
        expected: u64,
    },
    /// The backend's evaluation lacks the loss of a lane.
    #[error(
        "the backend's evaluation of {lanes} lanes has {found} losses, expected one over labelled tokens for each lane"
    )]
    Evaluation {
        /// How many lanes were evaluated.
        lanes: usize,
        /// How many losses came back.
        found: usize,
    },
}
