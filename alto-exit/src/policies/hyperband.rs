//! Successive halving in several brackets, which halve from different rungs on.

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::halving::{self, Halving};
use crate::policy::{ExitPolicy, Verdict};
use crate::reason::Reason;
use crate::setting::{SettingError, checked};

/// Shares the jobs out to brackets, each of which is [`SuccessiveHalving`](crate::SuccessiveHalving) from another rung
/// on: it hedges against early losses that tell little.
///
/// Of the `s` marks `first * eta^k` under 1, bracket `b` has those from the `b`-th on; the last, bracket `s`, has none,
/// and its jobs all train to the end. Jobs of other brackets are no peers. Where brackets share a mark, their jobs wait
/// for one another there, but are ranked apart. Deserialized settings are checked.
///
/// A job's index alone says which bracket it is in: of each `n[0] + ... + n[s]` jobs in a row, `n[b]` go to bracket `b`,
/// with `n[b] = ceil((s + 1) / (s - b + 1) * eta^(s - b))` as in the paper, and as evenly spread as whole jobs can be.
/// With the defaults these are 27, 12, 6 and 4 of 49. So the order of the jobs should not follow a setting of theirs,
/// and jobs that change places within their bracket keep their verdicts.
///
/// Losses scaled by a positive constant give the same verdicts.
///
/// Source: Li et al., "Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization", JMLR 18 (2018)
/// (arXiv:1603.06560). There the brackets run one after another; here side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct Hyperband {
    /// Progress of the first rung of bracket 0, at least 0.000001 and under 1.
    pub first: f64,
    /// One of so many stays at each rung, and the next rung is so many times as far; at least 2.
    pub eta: usize,
}

checked!(Hyperband, "hyperband");

impl Default for Hyperband {
    /// Rungs at 1/27, 1/9 and 1/3 of the budget, where a third stays each time.
    fn default() -> Self {
        Self { first: 1.0 / 27.0, eta: 3 }
    }
}

impl Hyperband {
    /// The bracket that the job is in: 0 for the one that halves first.
    pub fn bracket(&self, job: usize) -> usize {
        self.brackets(job + 1)[job]
    }

    /// The brackets of the first so many jobs.
    fn brackets(&self, jobs: usize) -> Vec<usize> {
        let sizes = self.sizes();
        let all: f64 = sizes.iter().sum();
        // What each bracket is owed: its share of the jobs so far, less those that it got.
        let mut owed = vec![0.0; sizes.len()];
        let next = |_| {
            for (owed, size) in owed.iter_mut().zip(&sizes) {
                *owed += size;
            }
            // The largest debt; the lowest bracket on ties.
            let bracket = (1..owed.len()).fold(0, |most, next| if owed[next] > owed[most] { next } else { most });
            owed[bracket] -= all;
            bracket
        };
        (0..jobs).map(next).collect()
    }

    /// In how many jobs each bracket starts, relative to the others.
    fn sizes(&self) -> Vec<f64> {
        let last = halving::marks(self.first, self.eta).len();
        let size = |rungs: usize| {
            let jobs = (self.eta as f64).powi(rungs as i32);
            ((last + 1) as f64 * jobs / (rungs + 1) as f64).ceil()
        };
        (0..=last).rev().map(size).collect()
    }
}

impl ExitPolicy for Hyperband {
    fn rungs(&self, job: usize) -> Vec<f64> {
        halving::marks(self.first, self.eta).split_off(self.bracket(job))
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        self.judge_all(&[job], cohort).remove(0)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        let marks = halving::marks(self.first, self.eta);
        let brackets = self.brackets(cohort.len());
        let halving = |bracket: usize| {
            let members = (0..cohort.len()).filter(|&job| brackets[job] == bracket).collect();
            Halving::of(members, &marks[bracket..], self.eta, cohort)
        };
        let halvings: Vec<Halving> = (0..=marks.len()).map(halving).collect();
        let verdict = |&job: &usize| {
            let bracket = brackets[job];
            match halvings[bracket].cut(job, cohort) {
                None => Verdict::Keep,
                Some(standing) => Verdict::Exit(Reason::Hyperband { bracket, standing }),
            }
        };
        jobs.iter().map(verdict).collect()
    }

    fn check(&self) -> Result<(), SettingError> {
        halving::check("hyperband", self.first, self.eta)
    }
}
