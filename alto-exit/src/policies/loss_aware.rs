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

    /// The verdict of the two that look at the job alone.
    fn alone(&self, job: usize, cohort: &[Curve]) -> Verdict {
        let Self { diverging, overfitting, .. } = self;
        if diverging.ema != overfitting.ema || diverging.check().is_err() || overfitting.check().is_err() {
            return any_of::first_exit(self.parts().into_iter().take(2), job, cohort);
        }
        // A long curve is smoothed once for both: that is what takes time.
        let curve = &cohort[job];
        let evaluations = curve.latest_smoothed(diverging.ema, diverging.needed().max(overfitting.needed()));
        match diverging.verdict(curve, &evaluations) {
            Verdict::Keep => overfitting.verdict(&evaluations),
            exit => exit,
        }
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
        let mut verdicts: Vec<Verdict> = jobs.iter().map(|&job| self.alone(job, cohort)).collect();
        let is_open = |&at: &usize| verdicts[at] == Verdict::Keep;
        let open: Vec<usize> = (0..jobs.len()).filter(is_open).collect();
        let asked: Vec<usize> = open.iter().map(|&at| jobs[at]).collect();
        for (at, verdict) in open.into_iter().zip(self.underperforming.judge_all(&asked, cohort)) {
            verdicts[at] = verdict;
        }
        verdicts
    }

    fn check(&self) -> Result<(), SettingError> {
        self.parts().iter().try_for_each(ExitPolicy::check)
    }
}
