//! Why a policy ends a job, with the numbers that it was decided by.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::any_float;

/// Why a job is ended.
///
/// Steps are optimizer steps done at the evaluation (or training step) that decided. Losses are in nats per token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Reason {
    /// Training and validation loss rise together ([`Diverging`](crate::Diverging)).
    Diverging {
        /// Where it was decided.
        step: u64,
        /// Slope of the smoothed training loss over the last window, per evaluation.
        #[serde(with = "any_float")]
        train_slope: f64,
        /// Slope of the validation loss over the last window, per evaluation.
        #[serde(with = "any_float")]
        validation_slope: f64,
        /// What both slopes reached.
        threshold: f64,
        /// Evaluations in a window.
        window: usize,
        /// Windows in a row.
        patience: usize,
    },
    /// A recorded loss is not a finite number ([`Diverging`](crate::Diverging)).
    NotFinite {
        /// The first such loss's step.
        step: u64,
        /// Which losses it is one of.
        series: Series,
        /// The loss: NaN or infinite.
        #[serde(with = "any_float")]
        loss: f64,
    },
    /// The validation loss has left the training loss behind ([`Overfitting`](crate::Overfitting)).
    Overfitting {
        /// Where it was decided.
        step: u64,
        /// `(validation - train) / train`.
        #[serde(with = "any_float")]
        gap: f64,
        /// What the gap exceeded.
        threshold: f64,
        /// Evaluations in a row.
        patience: usize,
        /// Smoothed training loss.
        #[serde(with = "any_float")]
        train: f64,
        /// Validation loss.
        #[serde(with = "any_float")]
        validation: f64,
    },
    /// Too many others were better at the same progress ([`Underperforming`](crate::Underperforming)).
    Underperforming {
        /// Where it was decided.
        step: u64,
        /// Progress at which the jobs are compared.
        mark: f64,
        /// The job's place at the mark: 1 for the lowest validation loss.
        place: usize,
        /// Jobs that reached the mark.
        of: usize,
        /// How many of them stay.
        kept: usize,
        /// The job's validation loss at the mark.
        #[serde(with = "any_float")]
        loss: f64,
        /// The worst loss at the mark that stays.
        #[serde(with = "any_float")]
        cut: f64,
    },
    /// What another policy found.
    Custom {
        /// The policy's name.
        policy: String,
        /// The numbers it decided by, by name.
        #[serde(with = "any_float::map")]
        numbers: BTreeMap<String, f64>,
    },
}

/// One of a curve's two series of losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Series {
    /// The training loss of each step.
    Training,
    /// The validation loss of each evaluation.
    Validation,
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Training => "training",
            Self::Validation => "validation",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diverging { step, train_slope, validation_slope, threshold, window, patience } => write!(
                f,
                "diverging at step {step}: over {window} evaluations the training loss rises by {} and the validation \
                 loss by {} per evaluation, both at least {threshold}, {patience} times in a row",
                Short(*train_slope),
                Short(*validation_slope),
            ),
            Self::NotFinite { step, series, loss } => {
                write!(f, "not finite at step {step}: the {series} loss is {loss}")
            }
            Self::Overfitting { step, gap, threshold, patience, train, validation } => write!(
                f,
                "overfitting at step {step}: validation loss {} against training loss {} is a gap of {}, over {threshold}, \
                 {patience} evaluations in a row",
                Short(*validation),
                Short(*train),
                Short(*gap),
            ),
            Self::Underperforming { step, mark, place, of, kept, loss, cut } => write!(
                f,
                "underperforming at step {step}: place {place} of {of} at progress {mark} with loss {}, but only the \
                 best {kept} stay, up to {}",
                Short(*loss),
                Short(*cut),
            ),
            Self::Custom { policy, numbers } => {
                f.write_str(policy)?;
                for (i, (name, number)) in numbers.iter().enumerate() {
                    write!(f, "{}{name} = {}", if i == 0 { ": " } else { ", " }, Short(*number))?;
                }
                Ok(())
            }
        }
    }
}

/// Four decimals where they tell something, else scientific: an exploded loss may be 1e30.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        if size != 0.0 && size.is_finite() && !(1e-3..1e6).contains(&size) {
            write!(f, "{:.3e}", self.0)
        } else {
            write!(f, "{:.4}", self.0)
        }
    }
}
