//! Ends a job whose own validation loss has stopped falling.

use serde::{Deserialize, Serialize};

use crate::curve::{Curve, EvaluationPoint, lowest};
use crate::policy::{ExitPolicy, Verdict};
use crate::reason::Reason;
use crate::setting::{SettingError, Settings, checked};

/// Ends a job whose own validation loss has stopped falling, by one of four criteria.
///
/// `E(t)` is the validation loss at the `t`-th evaluation after the first step, and `best(t)` the lowest finite one up
/// to it. A *strip* is so many evaluations in a row; criteria with strips speak at the end of each, counted from the
/// first evaluation on. A loss that is not finite counts as infinitely high; a job without any finite one is kept. All
/// four are relative: losses scaled by a positive constant give the same verdicts. Deserialized settings are checked.
///
/// Which one: `Stalled` where evaluations are many and quiet, and as the plain choice; `Rising` where they are few;
/// `GeneralizationLoss` where a passing rise is harmless as long as it is small; `Quotient` where a rise is to be
/// forgiven while the training loss still falls fast. In Prechelt's comparison, slower criteria found slightly better
/// optima (4% on average) and took about four times as long.
///
/// Source: Prechelt, "Early Stopping - But When?" (in Neural Networks: Tricks of the Trade, 1998), whose names are GL,
/// PQ and UP; `Stalled` is the common counter, as in Goodfellow et al., "Deep Learning" (2016), algorithm 7.1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case", deny_unknown_fields)]
pub enum Patience {
    /// The latest `evaluations` have not come under the best before them by more than a share `gain` of it.
    Stalled {
        /// How many, at least 1.
        #[serde(default = "ten")]
        evaluations: usize,
        /// Share of the best loss, at least 0 and at most 1.
        #[serde(default)]
        gain: f64,
    },
    /// GL: `100 * (E(t) / best(t) - 1) > alpha`. Silent while the best loss is not positive.
    GeneralizationLoss {
        /// In percent, at least 0; the source has 1 to 5.
        #[serde(default = "five")]
        alpha: f64,
    },
    /// PQ: `GL / P > alpha` at the end of a strip, where `P = 1000 * (mean / lowest - 1)` of the strip's training losses
    /// tells how much training still gains; each is the mean between two evaluations.
    ///
    /// Silent where such a mean is missing, not finite or not positive.
    Quotient {
        /// Percent by per mille, at least 0; the source has 0.5 to 3.
        #[serde(default = "three")]
        alpha: f64,
        /// Evaluations in a strip, at least 2.
        #[serde(default = "strip")]
        strip: usize,
    },
    /// UP: `E` is higher at the end of each of the last strips than at the end of the one before.
    Rising {
        /// How many strips in a row, at least 1; the source has 2 to 8.
        #[serde(default = "two")]
        strips: usize,
        /// Evaluations in a strip, at least 1.
        #[serde(default = "strip")]
        strip: usize,
    },
}

checked!(Patience, "patience");

impl Default for Patience {
    /// Ten evaluations without a new best: a tenth of the budget where it is evaluated a hundred times.
    fn default() -> Self {
        Self::Stalled { evaluations: 10, gain: 0.0 }
    }
}

impl ExitPolicy for Patience {
    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        let curve = &cohort[job];
        if self.check().is_err() || curve.latest().is_none() {
            return Verdict::Keep;
        }
        let reason = match *self {
            Self::Stalled { evaluations, gain } => stalled(curve, evaluations, gain),
            Self::GeneralizationLoss { alpha } => generalization_loss(curve, alpha),
            Self::Quotient { alpha, strip } => quotient(curve, alpha, strip),
            Self::Rising { strips, strip } => rising(curve, strips, strip),
        };
        reason.map_or(Verdict::Keep, Verdict::Exit)
    }

    fn compares(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), SettingError> {
        let settings = Settings("patience");
        match *self {
            Self::Stalled { evaluations, gain } => {
                settings.at_least(1, "evaluations", evaluations)?;
                settings.progress("gain", gain)
            }
            Self::GeneralizationLoss { alpha } => settings.not_negative("alpha", alpha),
            Self::Quotient { alpha, strip } => {
                settings.not_negative("alpha", alpha)?;
                settings.at_least(2, "strip", strip)
            }
            Self::Rising { strips, strip } => {
                settings.at_least(1, "strips", strips)?;
                settings.at_least(1, "strip", strip)
            }
        }
    }
}

fn stalled(curve: &Curve, evaluations: usize, gain: f64) -> Option<Reason> {
    let latest_first = (0..curve.evaluations.len()).rev().filter(|&at| curve.evaluations[at].step > 0);
    let split = latest_first.take(evaluations).last()?;
    let (earlier, latest) = curve.evaluations.split_at(split);
    // With fewer evaluations than that, there are none earlier.
    let (best, since) = (lowest(earlier), lowest(latest));
    let has_gained = since < best - gain * best.abs();
    let step = curve.latest()?.step;
    (best.is_finite() && !has_gained).then_some(Reason::Stalled { step, best, since, gain, evaluations })
}

fn generalization_loss(curve: &Curve, alpha: f64) -> Option<Reason> {
    let (latest, best) = (curve.latest()?, curve.lowest());
    let percent = percent_above(latest.loss, best)?;
    let step = latest.step;
    (percent > alpha).then_some(Reason::GeneralizationLoss { step, loss: latest.loss, best, percent, alpha })
}

fn quotient(curve: &Curve, alpha: f64, strip: usize) -> Option<Reason> {
    let latest = ends_strip(curve, strip)?;
    let percent = percent_above(latest.loss, curve.lowest())?;
    let means = training_means(curve, strip)?;
    let lowest = means.iter().copied().fold(f64::INFINITY, f64::min);
    if !(lowest > 0.0 && means.iter().all(|mean| mean.is_finite())) {
        return None;
    }
    // Relative to the lowest, so that level losses give zero to the last bit.
    let per_mille = 1000.0 * means.iter().map(|mean| mean / lowest - 1.0).sum::<f64>() / strip as f64;
    // No loss of generalization is nothing to end for, however little training gains.
    let quotient = if percent > 0.0 { percent / per_mille } else { 0.0 };
    let step = latest.step;
    (quotient > alpha).then_some(Reason::Quotient { step, percent, per_mille, quotient, alpha, strip })
}

fn rising(curve: &Curve, strips: usize, strip: usize) -> Option<Reason> {
    let latest = ends_strip(curve, strip)?;
    let ends: Vec<f64> =
        curve.trained().rev().step_by(strip).map(|at| at.loss).take(strips.saturating_add(1)).collect();
    let rises = ends.len() > strips && ends.windows(2).all(|pair| finite_or_high(pair[0]) > finite_or_high(pair[1]));
    rises.then(|| Reason::Rising { step: latest.step, from: ends[strips], to: ends[0], strips, strip })
}

/// The latest evaluation, where a strip ends with it.
fn ends_strip(curve: &Curve, strip: usize) -> Option<&EvaluationPoint> {
    curve.latest().filter(|_| curve.trained().count().is_multiple_of(strip))
}

/// Generalization loss; `None` where there is none to speak of.
fn percent_above(loss: f64, best: f64) -> Option<f64> {
    (best > 0.0 && best.is_finite()).then(|| 100.0 * (finite_or_high(loss) / best - 1.0))
}

fn finite_or_high(loss: f64) -> f64 {
    if loss.is_finite() { loss } else { f64::INFINITY }
}

/// Mean training loss before each of the latest evaluations, back to the evaluation before it; latest first.
fn training_means(curve: &Curve, evaluations: usize) -> Option<Vec<f64>> {
    let starts = curve.trained().rev().skip(1).map(|at| at.step).chain([0]);
    let spans = curve.trained().rev().zip(starts).take(evaluations);
    let mean = |(end, start): (&EvaluationPoint, u64)| {
        let done = |until: u64| curve.train.partition_point(|point| point.step <= until);
        let losses = curve.train.get(done(start)..done(end.step)).filter(|losses| !losses.is_empty())?;
        Some(losses.iter().map(|point| point.loss).sum::<f64>() / losses.len() as f64)
    };
    spans.map(mean).collect()
}

// Defaults for files.
fn two() -> usize {
    2
}

fn strip() -> usize {
    5
}

fn ten() -> usize {
    10
}

fn three() -> f64 {
    3.0
}

fn five() -> f64 {
    5.0
}
