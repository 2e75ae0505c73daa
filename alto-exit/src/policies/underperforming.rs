//! Ends the jobs that lag behind the others at a rung.

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::policy::{ExitPolicy, Verdict};
use crate::ranking::{Ranking, share};
use crate::reason::{Reason, Standing};
use crate::setting::{SettingError, Settings, checked};

/// Keeps the best share of the jobs at one progress mark, by their validation loss there, and ends the others.
///
/// It speaks once for each job: while the job's latest evaluation is the one at the mark, the first at or past it. Of
/// the `n` jobs whose curves reached the mark, `ceil(keep * n)` stay. They are ranked by their losses there, ties by
/// index, losses that are not finite last.
///
/// The mark is a [rung](ExitPolicy::rungs): the trainer asks once the rung is closed, when no job that it knows of is
/// short of it. Asked earlier, the policy ranks whoever is there. What became of a job after the mark, its end
/// included, changes no verdict; a job that arrives late is ranked against the same record. Deserialized settings are
/// checked.
///
/// An early ranking favours high learning rates: a job that is slow but best in the end may be cut. The paper saw the
/// best job kept from a mark of 0.05 on.
///
/// Losses scaled by a positive constant give the same verdicts.
///
/// Source: ALTO (arXiv:2604.05426).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct Underperforming {
    /// Progress at which the jobs are compared, over 0 and under 1.
    pub mark: f64,
    /// Share of the jobs that stays, over 0 and at most 1.
    pub keep: f64,
}

checked!(Underperforming, "underperforming");

impl Default for Underperforming {
    fn default() -> Self {
        Self { mark: 0.05, keep: 0.25 }
    }
}

impl ExitPolicy for Underperforming {
    fn rungs(&self, _job: usize) -> Vec<f64> {
        vec![self.mark]
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        if self.check().is_err() || !cohort[job].stands_at(self.mark) {
            return Verdict::Keep;
        }
        self.verdict(job, &Ranking::at(self.mark, 0..cohort.len(), cohort))
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::Keep; jobs.len()];
        let mut ranking = None;
        for (verdict, &job) in verdicts.iter_mut().zip(jobs) {
            if self.check().is_ok() && cohort[job].stands_at(self.mark) {
                let ranking = ranking.get_or_insert_with(|| Ranking::at(self.mark, 0..cohort.len(), cohort));
                *verdict = self.verdict(job, ranking);
            }
        }
        verdicts
    }

    fn check(&self) -> Result<(), SettingError> {
        let settings = Settings("underperforming");
        settings.require(self.mark > 0.0 && self.mark < 1.0, "mark", self.mark, "over 0 and under 1")?;
        settings.share("keep", self.keep)
    }
}

impl Underperforming {
    fn verdict(&self, job: usize, ranking: &Ranking) -> Verdict {
        match ranking.cut(job, share(self.keep, ranking.len())) {
            None => Verdict::Keep,
            Some(Standing { step, mark, place, of, kept, loss, cut }) => {
                Verdict::Exit(Reason::Underperforming { step, mark, place, of, kept, loss, cut })
            }
        }
    }
}
