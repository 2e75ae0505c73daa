//! What is known of a job: its losses so far, and how it ended.

use serde::{Deserialize, Serialize};

use crate::any_float;
use crate::reason::Reason;

/// One job's losses over its course, and whether and how it ended.
///
/// Both lists are in order of their steps. Losses are in nats per token, and jobs with different batch sizes are
/// compared at equal progress: samples seen over samples budgeted, 0 to 1.
///
/// In JSON a number that is not finite is written as `"NaN"`, `"inf"` or `"-inf"`, and read back as such. With
/// `serde_json`, turn on its feature `float_roundtrip` where a verdict is replayed from a file to the last bit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// The training loss of every optimizer step; a skipped step leaves none.
    pub train: Vec<TrainPoint>,
    /// The validation loss of every evaluation; one at step 0 is of the untrained adapter.
    pub evaluations: Vec<EvaluationPoint>,
    /// How the job ended; `None` while it runs, waits or is parked.
    #[serde(default)]
    pub end: Option<End>,
}

/// The training loss of one optimizer step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainPoint {
    /// Optimizer steps done with this one: 1 for the first.
    pub step: u64,
    /// Samples seen over samples budgeted, with this step's.
    #[serde(with = "any_float")]
    pub progress: f64,
    /// Mean loss over the step's labelled tokens, in nats per token, before the update.
    #[serde(with = "any_float")]
    pub loss: f64,
    /// Norm of the gradient over all the adapter's tensors, before clipping.
    #[serde(default, with = "any_float::option", skip_serializing_if = "Option::is_none")]
    pub grad_norm: Option<f64>,
}

/// The validation loss at one evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationPoint {
    /// Optimizer steps done before it: 0 for the untrained adapter.
    pub step: u64,
    /// Samples seen over samples budgeted.
    #[serde(with = "any_float")]
    pub progress: f64,
    /// Mean loss over the labelled tokens of the validation set, in nats per token.
    #[serde(with = "any_float")]
    pub loss: f64,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum End {
    /// It used up its budget.
    Finished,
    /// A policy ended it.
    Exited(Reason),
    /// It couldn't go on.
    Failed {
        /// Optimizer steps done.
        step: u64,
        /// What went wrong, for people to read.
        error: String,
    },
}

impl Curve {
    /// The evaluation with the lowest finite loss after the first step; the earliest on ties.
    ///
    /// An evaluation at step 0 is no candidate: what it rates is not of the job's making.
    pub fn best(&self) -> Option<&EvaluationPoint> {
        let candidates = self.trained().filter(|evaluation| evaluation.loss.is_finite());
        candidates.reduce(|best, next| if next.loss < best.loss { next } else { best })
    }

    /// The evaluation before the first step.
    pub fn untrained(&self) -> Option<&EvaluationPoint> {
        self.evaluations.iter().find(|evaluation| evaluation.step == 0)
    }

    /// By how much the best loss is under the untrained one, in nats per token; negative if training only harmed.
    ///
    /// `None` where either is missing.
    pub fn improvement(&self) -> Option<f64> {
        Some(self.untrained()?.loss - self.best()?.loss)
    }

    /// The evaluation at a progress mark: the first one at or past it, after the first step.
    ///
    /// It is searched by halves. Where progress isn't in order, it is one at or past the mark that the halving comes
    /// upon, or none.
    pub fn at_mark(&self, mark: f64) -> Option<&EvaluationPoint> {
        self.index_at_mark(mark).map(|at| &self.evaluations[at])
    }

    /// The index of [`at_mark`](Self::at_mark).
    pub(crate) fn index_at_mark(&self, mark: f64) -> Option<usize> {
        let is_there = |evaluation: &EvaluationPoint| evaluation.step > 0 && evaluation.progress >= mark;
        let first = self.evaluations.partition_point(|evaluation| !is_there(evaluation));
        self.evaluations.get(first).is_some_and(is_there).then_some(first)
    }

    /// The evaluations after the first step, in order.
    pub fn trained(&self) -> impl DoubleEndedIterator<Item = &EvaluationPoint> {
        self.evaluations.iter().filter(|evaluation| evaluation.step > 0)
    }

    /// The loss of [`best`](Self::best); infinite where there is none.
    pub(crate) fn lowest(&self) -> f64 {
        lowest(&self.evaluations)
    }

    /// The latest evaluation; `None` where it is one before the first step.
    pub(crate) fn latest(&self) -> Option<&EvaluationPoint> {
        self.evaluations.last().filter(|evaluation| evaluation.step > 0)
    }

    /// Whether the latest evaluation is the one at the mark.
    pub(crate) fn stands_at(&self, mark: f64) -> bool {
        let mut latest_first = self.evaluations.iter().rev();
        let mut is_past = || latest_first.next().is_some_and(|at| at.step > 0 && at.progress >= mark);
        is_past() && !is_past()
    }

    /// The curve as it was before its latest evaluation, while it ran; `false` where none is left after the first step.
    pub(crate) fn forget_latest(&mut self) -> bool {
        self.evaluations.pop();
        let Some(until) = self.latest().map(|latest| latest.step) else { return false };
        self.train.retain(|point| point.step <= until);
        self.end = None;
        true
    }
}

/// The lowest finite loss after the first step; infinite where there is none.
pub(crate) fn lowest(evaluations: &[EvaluationPoint]) -> f64 {
    let finite = |at: &EvaluationPoint| if at.step > 0 && at.loss.is_finite() { at.loss } else { f64::INFINITY };
    let lower = |a: f64, b: f64| if b < a { b } else { a };
    // Four at a time: one after the other, each would wait for the one before.
    let (fours, rest) = evaluations.as_chunks::<4>();
    let mut lowest = [f64::INFINITY; 4];
    for four in fours {
        for (lowest, at) in lowest.iter_mut().zip(four) {
            *lowest = lower(*lowest, finite(at));
        }
    }
    rest.iter().map(finite).chain(lowest).fold(f64::INFINITY, lower)
}
