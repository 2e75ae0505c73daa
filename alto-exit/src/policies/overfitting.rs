//! Ends a job whose validation loss has left its training loss behind.

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::policy::{ExitPolicy, Verdict};
use crate::reason::Reason;
use crate::setting::{SettingError, Settings, checked};
use crate::smoothed::Smoothed;

/// Ends a job when its validation loss lies more than a share above its smoothed training loss, `patience` evaluations
/// in a row.
///
/// The gap is `(validation - train) / train`. The earliest exit is at evaluation `patience`, the second by default (with
/// [`require_rise`](Self::require_rise) one later); an evaluation before the first step doesn't count. It is silent
/// where no training loss is known yet, where the smoothed one is not positive, and where either loss is not finite.
/// Deserialized settings are checked.
///
/// Losses scaled by a positive constant give the same verdicts.
///
/// Source: ALTO (arXiv:2604.05426), whose algorithm tests the gap alone and whose text says that the validation loss
/// rises; the moving average's factor is ours, since the paper gives none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct Overfitting {
    /// What the gap must exceed.
    pub threshold: f64,
    /// Evaluations in a row, at least 1.
    pub patience: usize,
    /// Whether the validation loss must also have risen since the evaluation before, at each of these evaluations.
    pub require_rise: bool,
    /// Weight of the newest training loss in the moving average, over 0 and at most 1.
    pub ema: f64,
}

checked!(Overfitting, "overfitting");

impl Default for Overfitting {
    fn default() -> Self {
        Self { threshold: 0.1, patience: 2, require_rise: false, ema: 0.3 }
    }
}

impl ExitPolicy for Overfitting {
    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        let curve = &cohort[job];
        if self.check().is_err() {
            return Verdict::Keep;
        }
        self.verdict(&curve.latest_smoothed(self.ema, self.needed()))
    }

    fn compares(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), SettingError> {
        let settings = Settings("overfitting");
        settings.finite("threshold", self.threshold)?;
        settings.at_least(1, "patience", self.patience)?;
        settings.share("ema", self.ema)
    }
}

impl Overfitting {
    /// How many of the latest evaluations it looks at: one more, which a rise is measured from.
    pub(super) fn needed(&self) -> usize {
        self.patience.saturating_add(1)
    }

    /// The verdict by the latest evaluations, with right settings.
    pub(super) fn verdict(&self, evaluations: &[Smoothed]) -> Verdict {
        let latest_first = (0..evaluations.len()).rev().take(self.patience);
        let gaps: Vec<Gap> = latest_first
            .map_while(|at| Gap::at(&evaluations[at]).filter(|_| !self.require_rise || rose(evaluations, at)))
            .take_while(|gap| gap.gap > self.threshold)
            .collect();
        match gaps.first() {
            Some(latest) if gaps.len() == self.patience => Verdict::Exit(Reason::Overfitting {
                step: latest.step,
                gap: latest.gap,
                threshold: self.threshold,
                patience: self.patience,
                train: latest.train,
                validation: latest.validation,
            }),
            _ => Verdict::Keep,
        }
    }
}

/// How far validation is above training at one evaluation.
struct Gap {
    step: u64,
    gap: f64,
    train: f64,
    validation: f64,
}

impl Gap {
    fn at(evaluation: &Smoothed) -> Option<Self> {
        let &Smoothed { step, validation, .. } = evaluation;
        let train = evaluation.train.filter(|&train| train > 0.0 && train.is_finite())?;
        validation.is_finite().then(|| Self { step, gap: (validation - train) / train, train, validation })
    }
}

/// Whether the validation loss is over that of the evaluation before.
fn rose(evaluations: &[Smoothed], at: usize) -> bool {
    at > 0 && evaluations[at].validation > evaluations[at - 1].validation
}
