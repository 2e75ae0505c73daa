//! What a run came to.

use std::fmt;

use alto_exit::search::Point;
use alto_exit::{Curve, End, EvaluationPoint, Reason};
use serde::{Deserialize, Serialize};

use super::Trainer;
use super::audit::AuditReport;
use super::memory::MemoryProfile;
use super::proposals::Refused;
use crate::adapter::Adapter;
use crate::job::Job;
use crate::version;

/// The version of a [`Report`] in a file.
pub const REPORT_VERSION: u32 = 1;

/// What a run leaves behind: the report, and each job's best adapter.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What every job came to.
    pub report: Report,
    /// By job: the adapter of [`JobReport::best`], however the job ended.
    pub adapters: Vec<Option<Adapter>>,
}

/// What every job of a run came to, and by which choices.
///
/// Losses are in nats per token. [`table`](Self::table) shows it to people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// [`REPORT_VERSION`].
    #[serde(deserialize_with = "version::known::<REPORT_VERSION, _>")]
    pub version: u32,
    /// The run's settings.
    pub trainer: Trainer,
    /// The exit policy with its settings, as its `Debug` prints it.
    pub policy: String,
    /// What memory was measured to be, if admission went by a measurement of this run.
    pub memory: Option<MemoryProfile>,
    /// The validation set.
    pub validation: ValidationSet,
    /// Every job, in the order in which they were given or proposed.
    pub jobs: Vec<JobReport>,
    /// Index of the job whose best loss is the lowest, the first on ties.
    pub winner: Option<usize>,
    /// Sums over the run.
    pub totals: Totals,
    /// The search with its settings, as its `Debug` prints it, if the jobs were not known from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// What the search proposed and couldn't be trained, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// How often the policy was wrong, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditReport>,
    /// What the reader should know, such as completions that were cut off.
    pub warnings: Vec<String>,
}

/// The rows that jobs are judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationSet {
    /// How many rows.
    pub rows: u64,
    /// Labelled tokens in them.
    pub tokens: u64,
    /// Bytes of text that the labelled tokens stand for, where that is known; see [`Dataset::labelled_bytes`](crate::data::Dataset::labelled_bytes).
    pub bytes: Option<u64>,
}

/// What one job came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobReport {
    /// Its hyperparameters.
    pub job: Job,
    /// How it ended.
    pub ended: Ended,
    /// The evaluation with the lowest finite loss, the earliest on ties; the adapter that the job leaves behind is that
    /// one's. None counts before a step has changed the adapter: one that was not skipped, at a learning rate over 0.
    pub best: Option<EvaluationPoint>,
    /// Its losses.
    pub curve: Curve,
    /// What a search proposed it as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<Point>,
    /// Optimizer steps that it did, skipped ones included.
    pub steps: u64,
    /// Steps that were skipped, as something in them was not finite.
    pub skipped: u64,
    /// Rows that it saw.
    pub samples: u64,
    /// Share of its budget that it used, 0 to 1.
    pub share: f64,
    /// Tokens that it was trained on, prompts and skipped steps included.
    pub tokens: u64,
    /// Its part of the time, by its part of the tokens in each batch.
    pub seconds: f64,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Ended {
    /// It used up its budget.
    Finished,
    /// The policy ended it.
    Exited(Reason),
    /// Too many of its steps in a row were skipped.
    Quarantined {
        /// The tensor that was not finite in the last of them.
        tensor: String,
        /// The last of them, from 1.
        step: u64,
        /// How many they were.
        in_a_row: u64,
    },
    /// The run was interrupted before the job ended.
    Unfinished,
}

/// Sums over a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Seconds from the run's start to its end.
    pub seconds: f64,
    /// Of these, seconds spent on measuring memory.
    pub profile_seconds: f64,
    /// Rows that the jobs saw.
    pub samples: u64,
    /// Rows that they would have seen without an early end.
    pub samples_budgeted: u64,
    /// Tokens that the jobs were trained on, prompts included.
    pub tokens: u64,
}

impl Report {
    /// Whether training made the model better: the winner's best validation loss is below that before its first step.
    ///
    /// Not so if there is no winner. A loss before training that is not finite is above any.
    pub fn learned(&self) -> bool {
        let best = self.winner.and_then(|index| self.jobs.get(index)?.best);
        best.is_some_and(|best| self.untrained_loss().is_none_or(|before| best.loss < before))
    }

    /// The winner's validation loss before its first step, if it is finite.
    pub(super) fn untrained_loss(&self) -> Option<f64> {
        let untrained = self.jobs.get(self.winner?)?.curve.untrained()?;
        untrained.loss.is_finite().then_some(untrained.loss)
    }

    /// A loss on the validation set in bits per byte of its text, which compares across tokenizers.
    pub fn bits_per_byte(&self, loss: f64) -> Option<f64> {
        let bytes = self.validation.bytes.filter(|&bytes| bytes > 0)?;
        Some(loss * self.validation.tokens as f64 / bytes as f64 / std::f64::consts::LN_2)
    }
}

impl Totals {
    /// Share of the budgeted rows that early ends saved, 0 to 1.
    pub fn saved(&self) -> f64 {
        1.0 - self.samples as f64 / self.samples_budgeted.max(1) as f64
    }

    /// Share of the time that measuring memory took, 0 to 1.
    pub fn profile_share(&self) -> f64 {
        if self.seconds > 0.0 { self.profile_seconds / self.seconds } else { 0.0 }
    }
}

impl Ended {
    /// How the job's curve says it, after this many steps; `None` for a job that had not ended.
    pub(super) fn on_curve(&self, step: u64) -> Option<End> {
        match self {
            Self::Finished => Some(End::Finished),
            Self::Exited(reason) => Some(End::Exited(reason.clone())),
            Self::Quarantined { .. } => Some(End::Failed { step, error: self.to_string() }),
            Self::Unfinished => None,
        }
    }

    /// A word or two for how it ended; a policy's own reason is named by that policy.
    pub fn word(&self) -> &str {
        match self {
            Self::Finished => "finished",
            Self::Exited(reason) => reason.word(),
            Self::Quarantined { .. } => "quarantined",
            Self::Unfinished => "unfinished",
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::Exited(reason) => reason.fmt(f),
            Self::Quarantined { tensor, step, in_a_row } => {
                write!(f, "quarantined at step {step}: {tensor} was not finite, step {in_a_row} in a row")
            }
            Self::Unfinished => f.write_str("unfinished"),
        }
    }
}
