//! Ends a job whose best is worse than what the median peer averages.

use serde::{Deserialize, Serialize};

use crate::curve::{Curve, EvaluationPoint};
use crate::policy::{ExitPolicy, Verdict};
use crate::reason::Reason;
use crate::setting::{SettingError, Settings, checked};

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
        let mut averages: Vec<Average> = cohort.iter().map(Average::of).collect();
        let mut sums: Vec<Sum> = cohort.iter().map(Sum::of).collect();
        // Jobs that have come equally far have the same peers, but for themselves.
        for together in asked.chunk_by(|a, b| a.0 == b.0) {
            let progress = together[0].0;
            let both = averages.iter_mut().zip(&mut sums);
            let reached: Vec<f64> = both.filter_map(|(average, sum)| average.at(progress, sum)).collect();
            let medians = Medians::of(reached);
            for &(_, at) in together {
                let job = jobs[at];
                let (median, peers) = medians.without(averages[job].at(progress, &mut sums[job]));
                let best = cohort[job].lowest();
                if peers >= self.peers && best > median {
                    let step = cohort[job].latest().map_or(0, |latest| latest.step);
                    verdicts[at] = Verdict::Exit(Reason::MedianStopping { step, progress, best, median, peers });
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

/// One job's running average, which is asked for at ever later progress.
///
/// It is small: jobs that are all differently far ask each other's a million times.
struct Average {
    /// How far the job has come; NaN without any evaluation.
    latest: f64,
    /// The progress from which on there is more to take in.
    holds: f64,
    /// Infinite where a loss isn't finite; NaN while there is none.
    mean: f64,
}

impl Average {
    fn of(curve: &Curve) -> Self {
        let latest = curve.latest().map_or(f64::NAN, |latest| latest.progress);
        Self { latest, holds: f64::NEG_INFINITY, mean: f64::NAN }
    }

    /// The average at this progress, if the job got so far.
    fn at(&mut self, progress: f64, sum: &mut Sum) -> Option<f64> {
        if self.holds <= progress {
            (self.mean, self.holds) = sum.take_in(progress);
        }
        (self.latest >= progress && !self.mean.is_nan()).then_some(self.mean)
    }
}

/// What one job's running average is made of.
struct Sum<'a> {
    /// Evaluations that are not in it yet.
    ahead: &'a [EvaluationPoint],
    sum: f64,
    count: usize,
}

impl<'a> Sum<'a> {
    fn of(curve: &'a Curve) -> Self {
        Self { ahead: &curve.evaluations, sum: 0.0, count: 0 }
    }

    /// The mean up to this progress, and from where on it changes.
    fn take_in(&mut self, progress: f64) -> (f64, f64) {
        let mut news = 0;
        for at in self.ahead.iter().take_while(|at| at.step == 0 || at.progress <= progress) {
            news += 1;
            if at.step > 0 {
                self.sum += at.loss;
                self.count += 1;
            }
        }
        self.ahead = &self.ahead[news..];
        let mean = match self.count {
            0 => f64::NAN,
            count => Some(self.sum / count as f64).filter(|mean| mean.is_finite()).unwrap_or(f64::INFINITY),
        };
        (mean, self.ahead.first().map_or(f64::INFINITY, |next| next.progress))
    }
}

/// The medians of some values without one of them, whichever it is.
struct Medians {
    count: usize,
    /// The values that can be in the middle then, ascending, if not all.
    middle: Vec<f64>,
}

impl Medians {
    fn of(mut values: Vec<f64>) -> Self {
        let count = values.len();
        let from = lower(count.saturating_sub(1));
        if from < count {
            values.select_nth_unstable_by(from, f64::total_cmp);
        }
        // Two more above it: one for an even count, one for a value taken out.
        let mut middle = values.split_off(from.min(count));
        for place in 0..middle.len().min(3) {
            middle[place..].select_nth_unstable_by(0, f64::total_cmp);
        }
        middle.truncate(3);
        Self { count, middle }
    }

    /// The median of the values but for this one, and how many they are.
    fn without(&self, own: Option<f64>) -> (f64, usize) {
        let Some(own) = own else {
            return (f64::INFINITY, 0);
        };
        let others = self.count - 1;
        let at = |place: usize| {
            let shifted = if own <= self.middle[place] { place + 1 } else { place };
            self.middle[shifted]
        };
        let median = match others {
            0 => f64::INFINITY,
            odd if odd % 2 == 1 => at(0),
            _ => at(0) / 2.0 + at(1) / 2.0,
        };
        (median, others)
    }
}

/// Index of the lower of the middle values of so many.
fn lower(count: usize) -> usize {
    count.saturating_sub(1) / 2
}
