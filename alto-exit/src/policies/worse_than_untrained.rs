//! Ends a job that only does harm.

use serde::{Deserialize, Serialize};

use crate::curve::{Curve, EvaluationPoint};
use crate::policy::{ExitPolicy, Verdict};
use crate::reason::Reason;
use crate::setting::{SettingError, Settings, checked};

/// Ends a job whose validation loss lies more than a share above that of the untrained adapter, `patience` evaluations
/// in a row.
///
/// An adapter starts at the base model's loss, so whatever trains well is soon under it. A learning rate too high
/// throws the loss far up within a few steps and leaves it there, often falling slowly: no slope shows it
/// ([`Diverging`](crate::Diverging)), and no gap to the training loss ([`Overfitting`](crate::Overfitting)).
///
/// A learning rate that is high but right may raise the loss for a while as well, mostly while its warm-up ends, and
/// come down to a good optimum. So evaluations before `after` don't count; the default, a tenth of the budget, is past
/// the usual warm-up of 3 to 10%. A margin of a tenth leaves out those that hover about the untrained loss: they cost
/// nothing but time, and other policies weigh that. It also ends a job that was good once and has overfitted beyond all
/// use; its best checkpoint remains.
///
/// It is silent without a finite loss at step 0. A loss that is not finite counts as above. Losses scaled by a
/// positive constant give the same verdicts. Deserialized settings are checked.
///
/// Source: ours, for what the policies of ALTO (arXiv:2604.05426) leave open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct WorseThanUntrained {
    /// Share of the untrained loss that must be exceeded, at least 0.
    pub margin: f64,
    /// Evaluations in a row, at least 1.
    pub patience: usize,
    /// Progress from which evaluations count, from 0 to 1.
    pub after: f64,
}

checked!(WorseThanUntrained, "worse_than_untrained");

impl Default for WorseThanUntrained {
    fn default() -> Self {
        Self { margin: 0.1, patience: 3, after: 0.1 }
    }
}

impl ExitPolicy for WorseThanUntrained {
    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        let curve = &cohort[job];
        let Some(latest) = curve.latest().filter(|_| self.check().is_ok()) else { return Verdict::Keep };
        let Some(untrained) = curve.untrained().map(|at| at.loss).filter(|loss| loss.is_finite()) else {
            return Verdict::Keep;
        };
        let most = untrained + self.margin * untrained.abs();
        let is_worse = |at: &&EvaluationPoint| at.progress >= self.after && (at.loss > most || !at.loss.is_finite());
        if curve.trained().rev().take(self.patience).take_while(is_worse).count() < self.patience {
            return Verdict::Keep;
        }
        Verdict::Exit(Reason::WorseThanUntrained {
            step: latest.step,
            loss: latest.loss,
            untrained,
            margin: self.margin,
            patience: self.patience,
        })
    }

    fn compares(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), SettingError> {
        let settings = Settings("worse_than_untrained");
        settings.not_negative("margin", self.margin)?;
        settings.at_least(1, "patience", self.patience)?;
        settings.progress("after", self.after)
    }
}
