//! Ends the jobs that lag behind the others at a rung.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::policy::{ExitPolicy, Verdict};
use crate::reason::Reason;
use crate::setting::{SettingError, Settings};

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
/// Source: ALTO (arXiv:2604.05426).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Underperforming {
    /// Progress at which the jobs are compared, over 0 and under 1.
    pub mark: f64,
    /// Share of the jobs that stays, over 0 and at most 1.
    pub keep: f64,
}

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
        let curve = &cohort[job];
        if self.check().is_err() {
            return Verdict::Keep;
        }
        let Some(own) = curve.at_mark(self.mark) else { return Verdict::Keep };
        if curve.evaluations.last().is_none_or(|latest| latest.step != own.step) {
            return Verdict::Keep;
        }
        let ranking = ranking(cohort, self.mark);
        let kept = kept(self.keep, ranking.len());
        let ahead = ranking.iter().take_while(|entry| entry.job != job).count();
        if ahead < kept {
            return Verdict::Keep;
        }
        Verdict::Exit(Reason::Underperforming {
            step: own.step,
            mark: self.mark,
            place: ahead + 1,
            of: ranking.len(),
            kept,
            loss: own.loss,
            cut: ranking[kept - 1].loss,
        })
    }

    fn check(&self) -> Result<(), SettingError> {
        let settings = Settings("underperforming");
        settings.require(self.mark > 0.0 && self.mark < 1.0, "mark", self.mark, "over 0 and under 1")?;
        settings.share("keep", self.keep)
    }
}

/// One job's record at the mark.
struct Entry {
    job: usize,
    loss: f64,
}

/// Every job that reached the mark, best first.
fn ranking(cohort: &[Curve], mark: f64) -> Vec<Entry> {
    let records = cohort.iter().enumerate();
    let mut ranking: Vec<Entry> =
        records.filter_map(|(job, curve)| Some(Entry { job, loss: curve.at_mark(mark)?.loss })).collect();
    // The sort is stable, so that ties stay in order of their indices.
    ranking.sort_by(|a, b| by_loss(a.loss, b.loss));
    ranking
}

/// Lower first; what is not finite last, and all alike.
fn by_loss(a: f64, b: f64) -> Ordering {
    match (a.is_finite(), b.is_finite()) {
        (true, true) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (a, b) => b.cmp(&a),
    }
}

/// `ceil(keep * n)`, at least 1.
fn kept(keep: f64, n: usize) -> usize {
    let share = keep * n as f64;
    // 0.07 * 100 comes out a hair over 7, and must not keep an eighth.
    let share = share * (1.0 - 4.0 * f64::EPSILON);
    (share.ceil() as usize).max(1)
}

/// The settings as a file may have them.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Unchecked {
    mark: f64,
    keep: f64,
}

impl Default for Unchecked {
    fn default() -> Self {
        let Underperforming { mark, keep } = Underperforming::default();
        Self { mark, keep }
    }
}

impl TryFrom<Unchecked> for Underperforming {
    type Error = SettingError;

    fn try_from(unchecked: Unchecked) -> Result<Self, SettingError> {
        let Unchecked { mark, keep } = unchecked;
        let policy = Self { mark, keep };
        policy.check().map(|()| policy)
    }
}
