//! The paper's early exit: three policies together.

use serde::{Deserialize, Serialize};

use super::any_of;
use super::diverging::Diverging;
use super::overfitting::Overfitting;
use super::underperforming::Underperforming;
use crate::curve::Curve;
use crate::policy::{ExitPolicy, Verdict};
use crate::setting::{SettingError, checked};

/// Ends a job that diverges, overfits or lags behind; the default has the paper's numbers.
///
/// Where more than one speaks, the reason is the first one's, in the order of the fields.
///
/// Source: ALTO (arXiv:2604.05426).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct LossAware {
    /// Both losses rise, or one is not finite.
    pub diverging: Diverging,
    /// The validation loss has left the training loss behind.
    pub overfitting: Overfitting,
    /// Others are better at the warm-up rung.
    pub underperforming: Underperforming,
}

checked!(LossAware, "loss_aware");

impl LossAware {
    fn parts(&self) -> [&dyn ExitPolicy; 3] {
        [&self.diverging, &self.overfitting, &self.underperforming]
    }
}

impl ExitPolicy for LossAware {
    fn rungs(&self, job: usize) -> Vec<f64> {
        self.underperforming.rungs(job)
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        any_of::first_exit(self.parts().into_iter(), job, cohort)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        any_of::first_exits(self.parts().into_iter(), jobs, cohort)
    }

    fn check(&self) -> Result<(), SettingError> {
        self.parts().iter().try_for_each(ExitPolicy::check)
    }
}
