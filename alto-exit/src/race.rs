//! The race behind [`AdaptiveRung`](crate::AdaptiveRung): check after check, who can still come in first.
//!
//! At a check each job's *gap* is what it lacks: `(own best - lead) / (untrained - lead)`, all of them validation losses,
//! `lead` the lowest that any job has had; 0 for the job that leads, 1 for one that has learned nothing, at most
//! [`WORST`]. With `r = ln(1 / mark) / ln(mark / last mark)`, the way left in units of the way since the last check, a job
//! makes up its gap with a chance of at most
//!
//! ```text
//! P(N(0, 1) > (gap - r * gain) / (caution * sqrt(r) * s)),    s² = gain² + mean of all gains² + noise² + LEAST²
//! ```
//!
//! `gain` is by how much the gap shrank since the last check, where it did. The gap goes on shrinking as it did, on average;
//! around that it walks at random, the wider the more the ranking moved of late and the noisier the losses are.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::curve::Curve;
use crate::rank_correlation::spearman;

/// A gap is at most this, however high the loss.
const WORST: f64 = 4.0;
/// The least spread of a gap: losses are never compared more closely than this share of what was learned.
const LEAST: f64 = 0.001;
/// Evaluations whose noise counts.
const LATE: usize = 5;
/// By how much the median of absolute deviations is under a normal distribution's deviation.
const MEDIAN_TO_DEVIATION: f64 = 1.4826;

/// What a race goes by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    /// Marks of the checks, ascending.
    pub(crate) marks: &'a [f64],
    /// What the chances of all that are cut may add up to.
    pub(crate) risk: f64,
    /// Factor on the spread.
    pub(crate) caution: f64,
}

/// That a job is out of the race, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cut {
    pub(crate) step: u64,
    pub(crate) mark: f64,
    pub(crate) place: usize,
    pub(crate) of: usize,
    pub(crate) gap: f64,
    /// That it would have made up the gap.
    pub(crate) chance: f64,
    /// The chances of all that were cut so far, this check's included.
    pub(crate) spent: f64,
    /// Correlation of this ranking with the last check's.
    pub(crate) stability: Option<f64>,
}

/// What a job had come to at a check.
#[derive(Debug, Clone, Copy)]
struct Record {
    /// Of its evaluation at the mark.
    step: u64,
    /// Lowest finite loss up to there; infinite without one.
    best: f64,
    /// Deviation of its latest losses from a straight line.
    noise: Option<f64>,
    /// Whether it was evaluated later: then it stayed, whatever one would say today.
    stayed: bool,
}

/// By job, whether and how it was cut.
pub(crate) fn race(rules: Rules, cohort: &[Curve]) -> Vec<Option<Cut>> {
    let mut race = Race { rules, cuts: vec![None; cohort.len()], spent: 0.0, last: None };
    let Some(untrained) = median(cohort.iter().filter_map(|curve| finite(curve.untrained()?.loss)).collect()) else {
        return race.cuts;
    };
    for (check, &mark) in rules.marks.iter().enumerate() {
        let records: Vec<Option<Record>> = cohort.iter().map(|curve| Record::at(mark, curve)).collect();
        let lead = cohort.iter().map(|curve| best_until(mark, curve)).fold(f64::INFINITY, f64::min);
        if lead < untrained {
            race.check(check, mark, &records, (lead, untrained));
        }
    }
    race.cuts
}

struct Race<'a> {
    rules: Rules<'a>,
    cuts: Vec<Option<Cut>>,
    spent: f64,
    /// The last check at which jobs were compared: its mark, and each job's step and gap there.
    last: Option<(f64, Vec<Option<(u64, f64)>>)>,
}

/// A job that is still in the race at a check, compared with the last one.
struct Runner {
    job: usize,
    record: Record,
    gap: f64,
    last_gap: f64,
    chance: f64,
}

impl Race<'_> {
    fn check(&mut self, check: usize, mark: f64, records: &[Option<Record>], (lead, untrained): (f64, f64)) {
        let learned = untrained - lead;
        let gap = |best: f64| if best.is_finite() { ((best - lead) / learned).min(WORST) } else { WORST };
        let gaps = records.iter().map(|record| record.as_ref().map(|record| (record.step, gap(record.best)))).collect();
        let Some((last_mark, last)) = &self.last else {
            self.last = Some((mark, gaps));
            return;
        };
        let in_race = |&job: &usize| records[job].is_some() && self.cuts[job].is_none();
        let present = (0..records.len()).filter(in_race).count();
        // A job that wasn't evaluated since the last check tells nothing new.
        let runner = |job: usize| {
            let (record, (last_step, last_gap)) = (records[job]?, last[job]?);
            (record.step != last_step).then(|| Runner { job, record, gap: gap(record.best), last_gap, chance: 1.0 })
        };
        let mut runners: Vec<Runner> = (0..records.len()).filter(in_race).filter_map(runner).collect();
        if runners.len() < 2 || 2 * runners.len() < present {
            return;
        }
        let left = (1.0 / mark).ln() / (mark / last_mark).ln();
        let chances = chances(&runners, left, learned, self.rules.caution);
        runners.iter_mut().zip(chances).for_each(|(runner, chance)| runner.chance = chance);
        self.cut(check, mark, runners, present);
        self.last = Some((mark, gaps));
    }

    /// Cuts whoever has the least chances, as long as all chances so far add up to no more than this check's share of
    /// the risk.
    fn cut(&mut self, check: usize, mark: f64, mut runners: Vec<Runner>, present: usize) {
        // The checks but for the first have equal shares; what one leaves is the next one's.
        let allowed = self.rules.risk * check as f64 / (self.rules.marks.len() - 1) as f64;
        let gaps = |gap: fn(&Runner) -> f64| runners.iter().map(gap).collect::<Vec<f64>>();
        let stability = spearman(&gaps(|runner| runner.last_gap), &gaps(|runner| runner.gap));
        let mut order: Vec<f64> = gaps(|runner| runner.gap);
        order.sort_by(f64::total_cmp);
        let place = |gap: f64| order.partition_point(|other| *other < gap) + 1;
        // The sort is stable, so that of equal chances the first job's is taken first.
        runners.sort_by(|a, b| a.chance.total_cmp(&b.chance));
        runners.retain(|runner| !runner.record.stayed);
        let mut out = vec![];
        for runner in runners.into_iter().take(present - 1) {
            if self.spent + runner.chance > allowed {
                break;
            }
            self.spent += runner.chance;
            out.push(runner);
        }
        for Runner { job, record, gap, chance, .. } in out {
            let (step, spent) = (record.step, self.spent);
            self.cuts[job] =
                Some(Cut { step, mark, place: place(gap), of: order.len(), gap, chance, spent, stability });
        }
    }
}

/// For each of these, the chance that it still makes up its gap.
fn chances(runners: &[Runner], left: f64, learned: f64, caution: f64) -> Vec<f64> {
    let gain = |runner: &Runner| (runner.last_gap - runner.gap).max(0.0);
    let gains = runners.iter().map(|runner| gain(runner).powi(2)).sum::<f64>() / runners.len() as f64;
    let noise = median(runners.iter().filter_map(|runner| runner.record.noise).collect()).unwrap_or(0.0) / learned;
    let normal = Normal::standard();
    let chance = |runner: &Runner| {
        let spread = (gain(runner).powi(2) + gains + noise.powi(2) + LEAST.powi(2)).sqrt();
        let away = (runner.gap - left * gain(runner)) / (caution * left.sqrt() * spread);
        // Where nothing can be said, nobody is cut.
        if away.is_nan() { 1.0 } else { normal.sf(away) }
    };
    runners.iter().map(chance).collect()
}

impl Record {
    fn at(mark: f64, curve: &Curve) -> Option<Self> {
        let at = curve.index_at_mark(mark)?;
        let known = &curve.evaluations[..=at];
        let losses =
            || known.iter().rev().take_while(|evaluation| evaluation.step > 0).map(|evaluation| evaluation.loss);
        let late: Vec<f64> = losses().take(LATE).collect();
        let bend = |three: &[f64]| finite((three[1] - (three[0] + three[2]) / 2.0).abs());
        // The middle of three losses in a line deviates by 3/2 of one loss's variance.
        let noise =
            median(late.windows(3).filter_map(bend).collect()).map(|bend| bend * MEDIAN_TO_DEVIATION / 1.5_f64.sqrt());
        let best = losses().filter_map(finite).fold(f64::INFINITY, f64::min);
        Some(Self { step: known[at].step, best, noise, stayed: at + 1 < curve.evaluations.len() })
    }
}

/// The lowest finite loss until the mark is reached: an adapter that is kept whatever becomes of the job.
fn best_until(mark: f64, curve: &Curve) -> f64 {
    let end = curve.index_at_mark(mark).map_or(curve.evaluations.len(), |at| at + 1);
    let trained = curve.evaluations[..end].iter().filter(|evaluation| evaluation.step > 0);
    trained.filter_map(|evaluation| finite(evaluation.loss)).fold(f64::INFINITY, f64::min)
}

fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

/// The middle value, of two the mean.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}
