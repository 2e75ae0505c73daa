//! Cuts as deep as the evidence carries, check after check.

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::policy::{ExitPolicy, Verdict};
use crate::race::{Cut, Rules, race};
use crate::reason::Reason;
use crate::setting::{SettingError, Settings, checked};

/// The most marks: more of them have hardly any steps in between.
const MARKS: usize = 64;

/// Ranks the jobs again at successive progress marks, and each time ends those that can hardly come in first any more:
/// as many as can go with a chance of at most `risk`, over all marks together, that the job which would have had the
/// lowest validation loss in the end is one of them.
///
/// A job's chance to make up its gap to the leading job is bounded by how much of it was made up since the mark before,
/// by this job and by all, and by the noise of the validation losses; so where the ranking still moves, nobody is cut, and
/// where it is settled, many are. The chances of all that are cut add up to the bound (a union bound). Each mark may use an
/// equal share of the risk, and what the marks before it left. The first mark only takes the measure, and a mark is passed
/// over where fewer than half of the jobs were evaluated since the last.
///
/// Losses count as the lowest so far, since that adapter is kept; one that is not finite is passed over. Without an
/// evaluation of any job before its first step, or while no job is better than that, nobody is cut. The last job is never
/// cut. A job that was evaluated past a mark has stayed there, whatever arrives later. One that arrives late runs against
/// the records that the others left at the marks; where it changes the lead there, what was spent is reckoned anew.
///
/// The bound rests on a model: a gap goes on shrinking as it did over the logarithm of progress, and walks at random
/// around that. `cargo run --release -p alto-exit --example replay -- --bound 1000 FILES` compares it with what happens on
/// recorded sweeps; on those of this repository it holds. It does not where jobs jump late: where the learning rate drops at
/// the end or in steps, where a loss stands still and then falls, where a rate is unstable until it decays, or where low
/// rates win in the end by learning evenly all along. There the eventual best may be cut many times as often as `risk` says. With
/// very noisy losses it is cut several times as often, since the lowest loss so far is partly luck. Nor does the bound cover
/// jobs that a search adds later: where one of them changes the lead, those already cut are reckoned anew.
///
/// The marks are [rungs](ExitPolicy::rungs). Losses scaled by a positive constant give the same verdicts. Deserialized
/// settings are checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct AdaptiveRung {
    /// Progress of the first mark, at least 0.001 and under 1.
    pub first: f64,
    /// Each mark is so many times as far as the one before; at least 1.05.
    pub ratio: f64,
    /// Bound on the chance that the eventual best is cut, over 0 and under 0.5: the leading job has at least that chance.
    pub risk: f64,
    /// Factor on how far gaps are taken to walk, over 0: above 1 cuts less.
    pub caution: f64,
}

checked!(AdaptiveRung, "adaptive_rung");

impl Default for AdaptiveRung {
    /// 18 marks from 0.02 to 0.89, and a risk of 1%.
    fn default() -> Self {
        Self { first: 0.02, ratio: 1.25, risk: 0.01, caution: 1.0 }
    }
}

impl AdaptiveRung {
    /// `first`, `first * ratio` and so on, under 0.95: a cut behind that saves nothing.
    fn marks(&self) -> Vec<f64> {
        let marks = std::iter::successors(Some(self.first), |mark| Some(mark * self.ratio));
        marks.take_while(|&mark| mark < 0.95).take(MARKS).collect()
    }

    fn race(&self, cohort: &[Curve]) -> Vec<Option<Cut>> {
        race(Rules { marks: &self.marks(), risk: self.risk, caution: self.caution }, cohort)
    }

    fn verdict(&self, cut: Option<Cut>) -> Verdict {
        let Some(Cut { step, mark, place, of, gap, chance, spent, stability }) = cut else { return Verdict::Keep };
        Verdict::Exit(Reason::Outpaced { step, mark, place, of, gap, chance, spent, risk: self.risk, stability })
    }
}

impl ExitPolicy for AdaptiveRung {
    fn rungs(&self, _job: usize) -> Vec<f64> {
        if self.check().is_ok() { self.marks() } else { vec![] }
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        self.judge_all(&[job], cohort).remove(0)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        let stands = |job: &usize| self.marks().iter().any(|&mark| cohort[*job].stands_at(mark));
        if self.check().is_err() || !jobs.iter().any(stands) {
            return vec![Verdict::Keep; jobs.len()];
        }
        let cuts = self.race(cohort);
        jobs.iter().map(|&job| self.verdict(cuts[job])).collect()
    }

    fn check(&self) -> Result<(), SettingError> {
        let settings = Settings("adaptive_rung");
        settings.require((0.001..1.0).contains(&self.first), "first", self.first, "at least 0.001 and under 1")?;
        let ratio = self.ratio.is_finite() && self.ratio >= 1.05;
        settings.require(ratio, "ratio", self.ratio, "a finite number, at least 1.05")?;
        settings.require(self.risk > 0.0 && self.risk < 0.5, "risk", self.risk, "over 0 and under 0.5")?;
        let caution = self.caution.is_finite() && self.caution > 0.0;
        settings.require(caution, "caution", self.caution, "a finite number over 0")
    }
}
