//! Ends a job whose best is worse than what the median peer averages.

mod medians;

use serde::{Deserialize, Serialize};

use crate::curve::{Curve, EvaluationPoint};
use crate::policy::{ExitPolicy, Verdict};
use crate::reason::Reason;
use crate::setting::{SettingError, Settings, checked};
use medians::Medians;

/// Ends a job whose lowest validation loss so far is above the median of the others' running averages at the same
/// progress.
///
/// A peer is any other job whose latest evaluation is as far, running or ended; its running average is the mean of its
/// validation losses up to this progress, after the first step, or infinite if one of them isn't finite. While fewer
/// than `peers` others have come as far, and before the progress `grace`, every job is kept; a job without any finite
/// loss is worse than any. Nobody waits for anybody.
///
/// It is lenient: a running average remembers the start, and a best doesn't. A job that falls is rarely ended, one that
/// lags or stands still is. It halves the field once and then slowly; it doesn't look for the one best job. Peers
/// that ended early are no peers later on, so that the median gets better as others are ended.
///
/// Losses scaled by a positive constant give the same verdicts, within rounding. Deserialized settings are checked.
///
/// Source: Golovin et al., "Google Vizier: A Service for Black-Box Optimization", KDD 2017, section 3.2.2, where only
/// completed jobs are peers; a cohort that trains side by side would have none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct MedianStopping {
    /// How many other jobs must have come as far, at least 1.
    pub peers: usize,
    /// Progress before which no job is ended, from 0 to 1.
    pub grace: f64,
}

checked!(MedianStopping, "median_stopping");

impl Default for MedianStopping {
    /// Five peers; and a tenth of the budget, until when adapters hardly differ from the base model, and from one
    /// another.
    fn default() -> Self {
        Self { peers: 5, grace: 0.1 }
    }
}

impl ExitPolicy for MedianStopping {
    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        self.judge_all(&[job], cohort).remove(0)
    }

    fn judge_all(&self, jobs: &[usize], cohort: &[Curve]) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::Keep; jobs.len()];
        if self.check().is_err() {
            return verdicts;
        }
        let progress = |job: usize| cohort[job].latest().map(|at| at.progress).filter(|&at| at >= self.grace);
        let mut asked: Vec<(f64, usize)> =
            jobs.iter().enumerate().filter_map(|(at, &job)| Some((progress(job)?, at))).collect();
        asked.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sums: Vec<Sum> = cohort.iter().map(Sum::of).collect();
        // Jobs that have come equally far have the same peers, but for themselves.
        let groups: Vec<&[(f64, usize)]> = asked.chunk_by(|a, b| a.0 == b.0).collect();
        for block in groups.chunks(BLOCK) {
            let progress: Vec<f64> = block.iter().map(|together| together[0].0).collect();
            for (together, averages) in block.iter().zip(averages(&progress, &mut sums)) {
                for (at, exit) in self.exits(together, &averages, jobs, cohort) {
                    verdicts[at] = Verdict::Exit(exit);
                }
            }
        }
        verdicts
    }

    fn check(&self) -> Result<(), SettingError> {
        let settings = Settings("median_stopping");
        settings.at_least(1, "peers", self.peers)?;
        settings.progress("grace", self.grace)
    }
}

impl MedianStopping {
    /// Who ends of those that have come equally far, by all jobs' running averages there.
    fn exits(
        &self,
        together: &[(f64, usize)],
        averages: &[f64],
        jobs: &[usize],
        cohort: &[Curve],
    ) -> Vec<(usize, Reason)> {
        let reached: Vec<f64> = averages.iter().copied().filter(|average| !average.is_nan()).collect();
        let mut medians = None;
        let exit = |&(progress, at): &(f64, usize)| {
            let job = jobs[at];
            let best = cohort[job].lowest();
            // Before the median of the others can be better, half of them are: to count is faster than to find it.
            let better = reached.iter().filter(|&&average| average < best).count();
            if better < reached.len().saturating_sub(1) / 2 {
                return None;
            }
            let medians = medians.get_or_insert_with(|| Medians::of(reached.clone()));
            let (median, peers) = medians.without(averages[job]);
            let step = cohort[job].latest()?.step;
            let ends = peers >= self.peers && best > median;
            ends.then_some((at, Reason::MedianStopping { step, progress, best, median, peers }))
        };
        together.iter().filter_map(exit).collect()
    }
}

/// For so many values of progress at a time, a curve's evaluations are read in a row.
const BLOCK: usize = 32;

/// For each of these, ascending, every job's running average there; NaN for one that didn't come so far.
fn averages(progress: &[f64], sums: &mut [Sum]) -> Vec<Vec<f64>> {
    let mut averages = vec![vec![f64::NAN; sums.len()]; progress.len()];
    for (job, sum) in sums.iter_mut().enumerate() {
        for (of_all, &progress) in averages.iter_mut().zip(progress) {
            of_all[job] = sum.average(progress);
        }
    }
    averages
}

/// What one job's running average is made of, which is asked for at ever later progress.
struct Sum<'a> {
    /// How far the job has come; NaN without any evaluation.
    latest: f64,
    /// Evaluations that are not in it yet.
    ahead: &'a [EvaluationPoint],
    sum: f64,
    count: usize,
}

impl<'a> Sum<'a> {
    fn of(curve: &'a Curve) -> Self {
        let latest = curve.latest().map_or(f64::NAN, |latest| latest.progress);
        Self { latest, ahead: &curve.evaluations, sum: 0.0, count: 0 }
    }

    /// The average up to this progress: infinite where a loss isn't finite, NaN while there is none or beyond the latest.
    fn average(&mut self, progress: f64) -> f64 {
        while let Some((at, ahead)) = self.ahead.split_first()
            && (at.step == 0 || at.progress <= progress)
        {
            if at.step > 0 {
                self.sum += at.loss;
                self.count += 1;
            }
            self.ahead = ahead;
        }
        let has_come = self.latest >= progress;
        if self.count == 0 || !has_come {
            return f64::NAN;
        }
        let mean = self.sum / self.count as f64;
        if mean.is_finite() { mean } else { f64::INFINITY }
    }
}
