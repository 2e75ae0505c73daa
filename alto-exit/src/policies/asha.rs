//! Successive halving without waiting.

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::halving;
use crate::policy::{ExitPolicy, Verdict};
use crate::ranking::Ranking;
use crate::reason::Reason;
use crate::setting::{SettingError, checked};

/// Ends a job as it passes one of the progress marks `first`, `first * eta`, `first * eta^2` and so on under 1, unless it
/// is among the best `1/eta` of those that reached the mark so far.
///
/// Nobody waits: these marks are no rungs, and the loss at a mark is that of the first evaluation at or past it. Of `n`
/// jobs whose curves reached the mark, `ceil(n / eta)` are good enough; while fewer than `eta` have, all go on. Ties go
/// by index, losses that are not finite are last. What it answers depends on who came first: an early job faces
/// few others. Use [`SuccessiveHalving`](crate::SuccessiveHalving) where jobs can be parked. Deserialized settings are
/// checked.
///
/// Losses scaled by a positive constant give the same verdicts.
///
/// Source: Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020 (arXiv:1810.05934). The paper
/// promotes paused jobs; ending them instead is the form that needs no checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct Asha {
    /// Progress of the first mark, at least 0.000001 and under 1.
    pub first: f64,
    /// One of so many stays at each mark, and the next mark is so many times as far; at least 2.
    pub eta: usize,
}

checked!(Asha, "asha");

impl Default for Asha {
    /// Marks at 1/27, 1/9 and 1/3 of the budget, where a third stays each time.
    fn default() -> Self {
        Self { first: 1.0 / 27.0, eta: 3 }
    }
}

impl ExitPolicy for Asha {
    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        self.judge_all(&[job], cohort).remove(0)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::Keep; jobs.len()];
        for mark in halving::marks(self.first, self.eta) {
            if !jobs.iter().any(|&job| cohort[job].stands_at(mark)) {
                continue;
            }
            let ranking = Ranking::at(mark, 0..cohort.len(), cohort);
            if ranking.len() < self.eta {
                continue;
            }
            let kept = ranking.len().div_ceil(self.eta);
            for (verdict, &job) in verdicts.iter_mut().zip(jobs) {
                if *verdict == Verdict::Keep && cohort[job].stands_at(mark) {
                    *verdict = ranking.cut(job, kept).map_or(Verdict::Keep, |at| Verdict::Exit(Reason::Asha(at)));
                }
            }
        }
        verdicts
    }

    fn check(&self) -> Result<(), SettingError> {
        halving::check("asha", self.first, self.eta)
    }
}
