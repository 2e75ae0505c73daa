//! One recorded training run: its losses by step.

use serde::{Deserialize, Serialize};

use crate::any_float;
use crate::curve::{EvaluationPoint, TrainPoint};

/// The course of one training run that went on to the end of its budget, as a JSON file has it.
///
/// A loss that is not finite is written as `"NaN"`, `"inf"` or `"-inf"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRun {
    /// What it is called, if it isn't by its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The seed of its adapter's start and its order of rows, if it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The adapter's rank.
    pub rank: usize,
    /// The adapter's alpha.
    pub alpha: f64,
    /// Peak learning rate.
    pub lr: f64,
    /// Rows in one optimizer step.
    pub batch: usize,
    /// Optimizer steps.
    pub steps: u64,
    /// Training loss of each step, in nats per token; as many as `steps`.
    #[serde(with = "any_float::list")]
    pub train_loss: Vec<f64>,
    /// Gradient norm of each step, before clipping; empty if it wasn't recorded.
    #[serde(default, with = "any_float::list")]
    pub grad_norm: Vec<f64>,
    /// Learning rate of each step; empty if it wasn't recorded.
    #[serde(default)]
    pub lr_at: Vec<f64>,
    /// How many steps were done at each evaluation, rising; 0 is before the first.
    pub eval_step: Vec<u64>,
    /// Validation loss of each evaluation, in nats per token.
    #[serde(with = "any_float::list")]
    pub val_loss: Vec<f64>,
    /// Wall time of the whole run; 0 if it wasn't recorded.
    #[serde(default)]
    pub seconds: f64,
}

/// The most samples of a run: those of millions of runs fit into a `u64` together.
const SAMPLES_LIMIT: u64 = 1 << 40;

impl RecordedRun {
    /// Checks that there is a loss for each step, and at least one evaluation, in order and none behind the last step.
    ///
    /// # Errors
    /// Names what is missing or out of place.
    pub fn check(&self) -> Result<(), RunError> {
        let steps = usize::try_from(self.steps).unwrap_or(usize::MAX);
        let length = |what, found, expected| match found == expected {
            true => Ok(()),
            false => Err(RunError::Length { what, found, expected }),
        };
        for (what, is_empty) in
            [("steps", steps == 0), ("evaluations", self.eval_step.is_empty()), ("rows in a step", self.batch == 0)]
        {
            if is_empty {
                return Err(RunError::Empty { what });
            }
        }
        // So that sums over many runs are exact.
        if self.steps.saturating_mul(self.batch as u64) > SAMPLES_LIMIT {
            return Err(RunError::TooManySamples { steps: self.steps, batch: self.batch });
        }
        length("train_loss", self.train_loss.len(), steps)?;
        for (what, column) in [("grad_norm", &self.grad_norm), ("lr_at", &self.lr_at)] {
            if !column.is_empty() {
                length(what, column.len(), steps)?;
            }
        }
        length("val_loss", self.val_loss.len(), self.eval_step.len())?;
        if let Some(i) = self.eval_step.windows(2).position(|pair| pair[0] >= pair[1]) {
            let (step, previous) = (self.eval_step[i + 1], self.eval_step[i]);
            return Err(RunError::Unordered { evaluation: i + 1, step, previous });
        }
        match self.eval_step.iter().position(|&step| step > self.steps) {
            Some(evaluation) => {
                Err(RunError::Beyond { evaluation, step: self.eval_step[evaluation], steps: self.steps })
            }
            None => Ok(()),
        }
    }

    /// Samples that it was trained on in all.
    pub fn samples(&self) -> u64 {
        self.samples_after(self.steps)
    }

    /// Samples that it was trained on in its first `steps` steps.
    pub fn samples_after(&self, steps: u64) -> u64 {
        steps.saturating_mul(self.batch as u64)
    }

    /// Progress after `step` steps: samples seen over samples budgeted.
    pub fn progress(&self, step: u64) -> f64 {
        step as f64 / self.steps as f64
    }

    /// The recorded evaluations, in order.
    pub fn evaluations(&self) -> impl Iterator<Item = EvaluationPoint> {
        let points = self.eval_step.iter().zip(&self.val_loss);
        points.map(|(&step, &loss)| EvaluationPoint { step, progress: self.progress(step), loss })
    }

    /// What was recorded of step `step`, 1 for the first.
    ///
    /// # Panics
    /// If there is no such step.
    pub fn train_point(&self, step: u64) -> TrainPoint {
        let index = step as usize - 1;
        let grad_norm = self.grad_norm.get(index).copied();
        TrainPoint { step, progress: self.progress(step), loss: self.train_loss[index], grad_norm }
    }

    /// Best validation loss of the whole run: the lowest finite one after the first step.
    pub fn best(&self) -> Option<EvaluationPoint> {
        self.best_until(self.steps)
    }

    /// The evaluation of the lowest finite loss of those after the first step and up to `last`; the earliest on ties.
    pub fn best_until(&self, last: u64) -> Option<EvaluationPoint> {
        let candidates = self.evaluations().filter(|at| at.step > 0 && at.step <= last && at.loss.is_finite());
        candidates.reduce(|best, next| if next.loss < best.loss { next } else { best })
    }

    /// Training loss of step `step` (1 is the first) of a job with a budget of `steps`.
    ///
    /// Read at equal progress, in a line between recorded steps; before the first one it is the first.
    pub fn train_loss(&self, step: u64, steps: u64) -> f64 {
        self.by_step(&self.train_loss, step, steps)
    }

    /// Gradient norm, as [`train_loss`](Self::train_loss); 0 if it wasn't recorded.
    pub fn grad_norm(&self, step: u64, steps: u64) -> f64 {
        if self.grad_norm.is_empty() { 0.0 } else { self.by_step(&self.grad_norm, step, steps) }
    }

    /// Validation loss after `step` steps of a job with a budget of `steps`.
    ///
    /// Read at equal progress, in a line between recorded evaluations; before the first one it is the first, behind
    /// the last one the last.
    pub fn val_loss(&self, step: u64, steps: u64) -> f64 {
        let points = |i: usize| (self.eval_step[i] as f64, self.val_loss[i]);
        interpolate(self.position(step, steps), self.eval_step.len(), points)
    }

    /// Validation loss before the first step, if it was recorded.
    pub fn untrained_loss(&self) -> Option<f64> {
        (self.eval_step.first() == Some(&0)).then(|| self.val_loss[0])
    }

    fn by_step(&self, column: &[f64], step: u64, steps: u64) -> f64 {
        interpolate(self.position(step, steps), column.len(), |i| ((i + 1) as f64, column[i]))
    }

    /// The recorded step at the same progress: exactly `step` if the budgets are equal.
    fn position(&self, step: u64, steps: u64) -> f64 {
        step as f64 * self.steps as f64 / steps as f64
    }
}

/// The value at `x` of the polyline through `n` points in rising order, level beyond its ends.
///
/// A point's own value is returned as it is, also beside one that isn't finite.
fn interpolate(x: f64, n: usize, point: impl Fn(usize) -> (f64, f64)) -> f64 {
    let (mut low, mut high) = (0, n - 1);
    if x <= point(low).0 {
        return point(low).1;
    }
    if x >= point(high).0 {
        return point(high).1;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if point(middle).0 <= x { low = middle } else { high = middle }
    }
    let ((x0, y0), (x1, y1)) = (point(low), point(high));
    if x == x0 { y0 } else { y0 + (y1 - y0) * (x - x0) / (x1 - x0) }
}

/// Why a record can't be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// More samples than are counted exactly.
    #[error("the recorded run has {steps} steps of {batch} rows, but at most 2^40 samples are counted")]
    TooManySamples {
        /// Its steps.
        steps: u64,
        /// Rows in a step.
        batch: usize,
    },
    /// Nothing recorded.
    #[error("the recorded run has no {what}, expected at least one")]
    Empty {
        /// What there is none of.
        what: &'static str,
    },
    /// A column that is too short or too long.
    #[error("the recorded run has {found} entries in {what}, expected {expected}")]
    Length {
        /// The column.
        what: &'static str,
        /// Its length.
        found: usize,
        /// What it should be.
        expected: usize,
    },
    /// Evaluations out of order.
    #[error("evaluation {evaluation} of the recorded run is at step {step}, expected one behind {previous}")]
    Unordered {
        /// Index of the evaluation.
        evaluation: usize,
        /// Its step.
        step: u64,
        /// The step of the one before.
        previous: u64,
    },
    /// An evaluation after more steps than there are.
    #[error("evaluation {evaluation} of the recorded run is at step {step}, but it has only {steps} steps")]
    Beyond {
        /// Index of the evaluation.
        evaluation: usize,
        /// Its step.
        step: u64,
        /// Steps of the run.
        steps: u64,
    },
}
