//! One recorded training run: its losses by step.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The course of one training run, as a JSON file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRun {
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
    pub train_loss: Vec<f64>,
    /// Gradient norm of each step, before clipping; empty if it wasn't recorded.
    #[serde(default)]
    pub grad_norm: Vec<f64>,
    /// Learning rate of each step; empty if it wasn't recorded.
    #[serde(default)]
    pub lr_at: Vec<f64>,
    /// How many steps were done at each evaluation, rising; 0 is before the first.
    pub eval_step: Vec<u64>,
    /// Validation loss of each evaluation, in nats per token.
    pub val_loss: Vec<f64>,
    /// Wall time of the whole run; 0 if it wasn't recorded.
    #[serde(default)]
    pub seconds: f64,
}

impl RecordedRun {
    /// Reads and checks a JSON file.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, RunError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| RunError::Read { path: path.into(), source })?;
        let run: Self = serde_json::from_str(&text).map_err(|source| RunError::Parse { path: path.into(), source })?;
        run.check().map_err(|source| RunError::File { path: path.into(), source: Box::new(source) })?;
        Ok(run)
    }

    /// Checks that there is a loss for each step, and at least one evaluation, in order.
    ///
    /// # Errors
    /// Names what is missing or out of place.
    pub fn check(&self) -> Result<(), RunError> {
        let steps = usize::try_from(self.steps).unwrap_or(usize::MAX);
        let length = |what, found, expected| match found == expected {
            true => Ok(()),
            false => Err(RunError::Length { what, found, expected }),
        };
        if steps == 0 || self.eval_step.is_empty() {
            return Err(RunError::Empty { what: if steps == 0 { "steps" } else { "evaluations" } });
        }
        length("train_loss", self.train_loss.len(), steps)?;
        for (what, column) in [("grad_norm", &self.grad_norm), ("lr_at", &self.lr_at)] {
            if !column.is_empty() {
                length(what, column.len(), steps)?;
            }
        }
        length("val_loss", self.val_loss.len(), self.eval_step.len())?;
        match self.eval_step.windows(2).position(|pair| pair[0] >= pair[1]) {
            Some(i) => {
                Err(RunError::Unordered { evaluation: i + 1, step: self.eval_step[i + 1], previous: self.eval_step[i] })
            }
            None => Ok(()),
        }
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
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A file that can't be read.
    #[error("{}: can't be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A file that isn't JSON of this layout.
    #[error("{}: not a recorded run", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where it goes wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A file whose numbers don't fit together.
    #[error("{}: the recorded run contradicts itself", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What doesn't fit.
        #[source]
        source: Box<RunError>,
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
}
