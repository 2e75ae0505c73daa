//! Keeps one of so many at each of several rungs.

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::halving::{self, Halving};
use crate::policy::{ExitPolicy, Verdict};
use crate::reason::Reason;
use crate::setting::{SettingError, checked};

/// Keeps the best `1/eta` of the jobs at each of the progress marks `first`, `first * eta`, `first * eta^2` and so on
/// under 1, by their validation losses there, and ends the others.
///
/// The marks are [rungs](ExitPolicy::rungs): jobs wait there for one another. Of the `n` jobs that stayed at every mark
/// before and reached this one, `ceil(n / eta)` stay; ties by index, losses that are not finite last. It speaks only
/// while a job's latest evaluation is the one at a mark. A job that arrives late is ranked against the same records,
/// and one that it would have pushed out earlier is still ranked at its next rung. Deserialized settings are checked.
///
/// Losses scaled by a positive constant give the same verdicts.
///
/// Source: Jamieson & Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", AISTATS
/// 2016 (arXiv:1502.07943); that each survivor trains `eta` times as long as before is from Li et al. (see
/// [`Hyperband`](crate::Hyperband)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct SuccessiveHalving {
    /// Progress of the first rung, at least 0.000001 and under 1.
    pub first: f64,
    /// One of so many stays at each rung, and the next rung is so many times as far; at least 2.
    pub eta: usize,
}

checked!(SuccessiveHalving, "successive_halving");

impl Default for SuccessiveHalving {
    /// Rungs at 1/27, 1/9 and 1/3 of the budget, where a third stays each time.
    fn default() -> Self {
        Self { first: 1.0 / 27.0, eta: 3 }
    }
}

impl ExitPolicy for SuccessiveHalving {
    fn rungs(&self, _job: usize) -> Vec<f64> {
        halving::marks(self.first, self.eta)
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        self.judge_all(&[job], cohort).remove(0)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        let marks = halving::marks(self.first, self.eta);
        let halving = Halving::of((0..cohort.len()).collect(), &marks, self.eta, cohort);
        let verdict = |&job: &usize| match halving.cut(job, cohort) {
            None => Verdict::Keep,
            Some(standing) => Verdict::Exit(Reason::SuccessiveHalving(standing)),
        };
        jobs.iter().map(verdict).collect()
    }

    fn check(&self) -> Result<(), SettingError> {
        halving::check("successive_halving", self.first, self.eta)
    }
}
