//! Why a policy ends a job, with the numbers that it was decided by.

mod sentence;

use std::collections::BTreeMap;

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
    /// It can hardly come in first any more ([`AdaptiveRung`](crate::AdaptiveRung)).
    Outpaced {
        /// Where it was decided.
        step: u64,
        /// Progress at which the jobs are compared.
        mark: f64,
        /// The job's place at the mark, by the lowest validation loss so far.
        place: usize,
        /// Jobs that are compared.
        of: usize,
        /// What its lowest loss lacks to the lowest of all, as a share of what was learned by the latter's job.
        gap: f64,
        /// Bound on the chance that it would have made that up.
        chance: f64,
        /// Bound on the chance that the best job is among those cut up to here, this check's included.
        spent: f64,
        /// What `spent` doesn't exceed.
        risk: f64,
        /// Spearman's correlation of the ranking with that of the check before; `None` where either has only ties.
        stability: Option<f64>,
    },
    /// The validation loss stays above that of the untrained adapter
    /// ([`WorseThanUntrained`](crate::WorseThanUntrained)).
    WorseThanUntrained {
        /// Where it was decided.
        step: u64,
        /// Validation loss.
        #[serde(with = "any_float")]
        loss: f64,
        /// Validation loss at step 0.
        #[serde(with = "any_float")]
        untrained: f64,
        /// Share of the untrained loss by which it was exceeded at least.
        margin: f64,
        /// Evaluations in a row.
        patience: usize,
    },
    /// No evaluation of late has improved on the ones before ([`Patience::Stalled`](crate::Patience::Stalled)).
    Stalled {
        /// Where it was decided.
        step: u64,
        /// Lowest validation loss before these evaluations.
        #[serde(with = "any_float")]
        best: f64,
        /// Lowest validation loss among them; infinite where none is finite.
        #[serde(with = "any_float")]
        since: f64,
        /// Share of the best loss that was to be gained.
        gain: f64,
        /// How many evaluations.
        evaluations: usize,
    },
    /// The validation loss is too far above its lowest
    /// ([`Patience::GeneralizationLoss`](crate::Patience::GeneralizationLoss)).
    GeneralizationLoss {
        /// Where it was decided.
        step: u64,
        /// Validation loss.
        #[serde(with = "any_float")]
        loss: f64,
        /// Lowest validation loss so far.
        #[serde(with = "any_float")]
        best: f64,
        /// `100 * (loss / best - 1)`.
        #[serde(with = "any_float")]
        percent: f64,
        /// What it exceeded.
        alpha: f64,
    },
    /// More is lost in generalization than training still gains ([`Patience::Quotient`](crate::Patience::Quotient)).
    Quotient {
        /// Where it was decided.
        step: u64,
        /// Generalization loss, in percent of the lowest validation loss.
        #[serde(with = "any_float")]
        percent: f64,
        /// By how much the mean training loss of the strip is above its lowest, in per mille of that.
        #[serde(with = "any_float")]
        per_mille: f64,
        /// `percent / per_mille`.
        #[serde(with = "any_float")]
        quotient: f64,
        /// What it exceeded.
        alpha: f64,
        /// Evaluations in a strip.
        strip: usize,
    },
    /// The validation loss was higher at the end of each strip than at the end of the one before
    /// ([`Patience::Rising`](crate::Patience::Rising)).
    Rising {
        /// Where it was decided.
        step: u64,
        /// Validation loss before the first of these strips.
        #[serde(with = "any_float")]
        from: f64,
        /// Validation loss now.
        #[serde(with = "any_float")]
        to: f64,
        /// Strips in a row.
        strips: usize,
        /// Evaluations in a strip.
        strip: usize,
    },
    /// The best loss is above the median of what the others averaged ([`MedianStopping`](crate::MedianStopping)).
    MedianStopping {
        /// Where it was decided.
        step: u64,
        /// Progress at which the jobs are compared.
        progress: f64,
        /// The job's lowest validation loss so far; infinite where none is finite.
        #[serde(with = "any_float")]
        best: f64,
        /// Median of the others' mean validation losses up to this progress.
        #[serde(with = "any_float")]
        median: f64,
        /// How many others.
        peers: usize,
    },
    /// Too many others that came as far were better ([`SuccessiveHalving`](crate::SuccessiveHalving)).
    SuccessiveHalving(Standing),
    /// Too many others of its bracket were better ([`Hyperband`](crate::Hyperband)).
    Hyperband {
        /// The job's bracket: 0 for the one that halves first.
        bracket: usize,
        /// Its place there.
        standing: Standing,
    },
    /// Too many of those who came as far before it were better ([`Asha`](crate::Asha)).
    Asha(Standing),
    /// Its curve, drawn out, hardly reaches the best loss there is ([`Extrapolation`](crate::Extrapolation)).
    Extrapolation {
        /// Where it was decided.
        step: u64,
        /// Validation loss that is expected at the end of the budget.
        #[serde(with = "any_float")]
        expected: f64,
        /// Lowest validation loss that any job has reached.
        #[serde(with = "any_float")]
        target: f64,
        /// Chance to get under the target.
        #[serde(with = "any_float")]
        chance: f64,
        /// What the chance is under.
        bound: f64,
        /// Evaluations that the curve was fitted to.
        evaluations: usize,
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

/// A job's place among others at a progress mark where only some of them stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// Optimizer steps done at the evaluation that is compared.
    pub step: u64,
    /// Progress at which the jobs are compared.
    pub mark: f64,
    /// The job's place at the mark: 1 for the lowest validation loss.
    pub place: usize,
    /// How many are compared.
    pub of: usize,
    /// How many of them stay.
    pub kept: usize,
    /// The job's validation loss at the mark, in nats per token.
    #[serde(with = "any_float")]
    pub loss: f64,
    /// The worst loss at the mark that stays.
    #[serde(with = "any_float")]
    pub cut: f64,
}

impl Reason {
    /// One or two words for it, by which exits are counted; that of [`Custom`](Self::Custom) is its policy's name.
    pub fn word(&self) -> &str {
        match self {
            Self::Diverging { .. } | Self::NotFinite { .. } => "diverging",
            Self::Overfitting { .. } => "overfitting",
            Self::Underperforming { .. } => "underperforming",
            Self::Outpaced { .. } => "outpaced",
            Self::WorseThanUntrained { .. } => "worse than untrained",
            Self::Stalled { .. } => "stalled",
            Self::GeneralizationLoss { .. } => "generalization loss",
            Self::Quotient { .. } => "quotient",
            Self::Rising { .. } => "rising",
            Self::MedianStopping { .. } => "median stopping",
            Self::SuccessiveHalving(_) => "successive halving",
            Self::Hyperband { .. } => "hyperband",
            Self::Asha(_) => "asha",
            Self::Extrapolation { .. } => "extrapolation",
            Self::Custom { policy, .. } => policy,
        }
    }
}
