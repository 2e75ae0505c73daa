//! What happens during a run, told as it happens.

use std::fmt;

use alto_exit::search::Point;
use alto_exit::{EvaluationPoint, TrainPoint};
use serde::{Deserialize, Serialize};

use super::memory::MemoryProfile;
use super::proposals::Refused;
use super::report::Ended;
use crate::version;

/// The version of an [`Event`] in a file.
pub const EVENT_VERSION: u32 = 1;

/// One thing that happened during a run. Equal runs tell equal events, except for the seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// [`EVENT_VERSION`].
    #[serde(deserialize_with = "version::known::<EVENT_VERSION, _>")]
    pub version: u32,
    /// Seconds since the run started.
    pub seconds: f64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened. Jobs are named by their index in the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum EventKind {
    /// The memory that a step takes was measured; admission goes by it.
    Profiled(MemoryProfile),
    /// The search proposed a job, which waits for a place from now on.
    Proposed {
        /// Which job.
        job: usize,
        /// Its name.
        name: String,
        /// What it is made of.
        point: Point,
    },
    /// The search proposed what can't be trained; it won't be.
    Refused(Refused),
    /// A job got a place for the first time.
    Started {
        /// Which job.
        job: usize,
        /// Its name.
        name: String,
        /// Its budget, in optimizer steps.
        steps: u64,
    },
    /// An optimizer step was skipped, as something in it was not finite.
    Skipped {
        /// Whose step.
        job: usize,
        /// Which step, from 1.
        step: u64,
        /// The first tensor that was not finite.
        tensor: String,
    },
    /// A job was evaluated.
    Evaluated {
        /// Which job.
        job: usize,
        /// Its validation loss, with its step and progress.
        validation: EvaluationPoint,
        /// Its latest optimizer step that was not skipped; `None` before the first.
        training: Option<TrainPoint>,
    },
    /// A job waits at a rung, its state on the host, its place free.
    Parked {
        /// Which job.
        job: usize,
        /// Optimizer steps that it has done.
        step: u64,
    },
    /// Nobody is short of a rung any more: whoever waited at it, and at no other, was judged.
    RungClosed {
        /// The rung's mark of progress.
        mark: f64,
        /// The losses that were judged by: of every job that reached the mark, ascending by job.
        record: Vec<RungLoss>,
        /// Who goes on.
        kept: Vec<usize>,
        /// Who ends here.
        exited: Vec<usize>,
    },
    /// A parked job got a place again and goes on from where it was.
    Resumed {
        /// Which job.
        job: usize,
        /// Optimizer steps that it has done.
        step: u64,
    },
    /// A job ended and its place is free.
    Ended {
        /// Which job.
        job: usize,
        /// Optimizer steps that it has done.
        step: u64,
        /// How it ended.
        how: Ended,
    },
    /// All have ended, and some of the exited go on for an audit: what follows is about them.
    AuditStarted {
        /// Which jobs, ascending.
        jobs: Vec<usize>,
    },
}

/// A job's validation loss at a rung.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RungLoss {
    /// Which job.
    pub job: usize,
    /// Its evaluation at the rung.
    pub validation: EvaluationPoint,
}

impl Event {
    /// Tells the event to whoever listens through `tracing`.
    pub(super) fn trace(&self) {
        match self.kind {
            EventKind::Evaluated { .. } | EventKind::Parked { .. } | EventKind::Resumed { .. } => {
                tracing::debug!(seconds = self.seconds, "{}", self.kind);
            }
            EventKind::Skipped { .. } | EventKind::Refused(_) => {
                tracing::warn!(seconds = self.seconds, "{}", self.kind)
            }
            _ => tracing::info!(seconds = self.seconds, "{}", self.kind),
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profiled(profile) => profile.fmt(f),
            Self::Proposed { job, name, point } => write!(f, "job {job} ({name}) is proposed: {point}"),
            Self::Refused(Refused { point, error }) => write!(f, "{point} is proposed, but can't be trained: {error}"),
            Self::Started { job, name, steps } => write!(f, "job {job} ({name}) starts: {steps} steps"),
            Self::Skipped { job, step, tensor } => write!(f, "job {job} skips step {step}: {tensor} is not finite"),
            Self::Evaluated { job, validation, .. } => {
                write!(f, "job {job} after {} steps: validation loss {:.4}", validation.step, validation.loss)
            }
            Self::Parked { job, step } => write!(f, "job {job} waits after {step} steps"),
            Self::RungClosed { mark, record, kept, exited } => write!(
                f,
                "the rung at {mark} closes: {} jobs reached it, {} go on, {} end",
                record.len(),
                kept.len(),
                exited.len()
            ),
            Self::Resumed { job, step } => write!(f, "job {job} goes on after {step} steps"),
            Self::AuditStarted { jobs } => write!(f, "{} exited jobs go on for an audit", jobs.len()),
            Self::Ended { job, step, how } => write!(f, "job {job} ends after {step} steps: {how}"),
        }
    }
}
