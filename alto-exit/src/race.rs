//! The race behind [`AdaptiveRung`](crate::AdaptiveRung): check after check, who can still come in first.
//!
//! At a check each job's *gap* is what it lacks: `(own best - lead) / (untrained - lead)`, all of them validation losses,
//! `lead` the lowest that any job has had; 0 for the job that leads, 1 for one that has learned nothing, at most
//! [`WORST`]. The chance that a job makes up its gap is that of [`chances`]; those with the least are cut.

mod chance;
mod record;

use crate::curve::Curve;
use crate::rank_correlation::spearman;
use chance::chances;
use record::{Arrival, Record, records};

/// A gap is at most this, however high the loss.
const WORST: f64 = 4.0;

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

/// By job, whether and how it is cut where it stands.
pub(crate) fn race(rules: Rules, cohort: &[Curve]) -> Vec<Option<Cut>> {
    let mut race = Race { rules, cuts: vec![None; cohort.len()], spent: 0.0, last: None };
    let Some(untrained) = median(cohort.iter().filter_map(|curve| finite(curve.untrained()?.loss)).collect()) else {
        return race.cuts;
    };
    let courses: Vec<Vec<Record>> = cohort.iter().map(|curve| records(curve, rules.marks)).collect();
    for check in 0..rules.marks.len() {
        let records: Vec<Record> = courses.iter().map(|course| course[check]).collect();
        let lead = records.iter().map(|record| record.best).fold(f64::INFINITY, f64::min);
        if lead < untrained {
            race.check(check, &records, Scale { lead, learned: untrained - lead });
        }
    }
    race.cuts
}

/// What gaps are measured by.
#[derive(Debug, Clone, Copy)]
struct Scale {
    lead: f64,
    learned: f64,
}

impl Scale {
    fn gap(self, best: f64) -> f64 {
        if best.is_finite() { ((best - self.lead) / self.learned).min(WORST) } else { WORST }
    }
}

struct Race<'a> {
    rules: Rules<'a>,
    cuts: Vec<Option<Cut>>,
    spent: f64,
    /// The last check at which jobs were compared.
    last: Option<Last>,
}

/// A check that the next one is compared with.
struct Last {
    mark: f64,
    /// By job, its step and gap at the mark; `None` for one that hadn't come there.
    gaps: Vec<Option<(u64, f64)>>,
}

/// A job that is still in the race at a check, compared with the last one.
struct Runner {
    job: usize,
    step: u64,
    stayed: bool,
    noise: Option<f64>,
    best: f64,
    gap: f64,
    last_gap: f64,
}

impl Race<'_> {
    fn check(&mut self, check: usize, records: &[Record], scale: Scale) {
        let mark = self.rules.marks[check];
        let gaps = records.iter().map(|record| Some((record.arrival?.step, scale.gap(record.best)))).collect();
        let Some(last) = &self.last else {
            self.last = Some(Last { mark, gaps });
            return;
        };
        let in_race = |&job: &usize| records[job].arrival.is_some() && self.cuts[job].is_none();
        let present = (0..records.len()).filter(in_race).count();
        let runner = |job: usize| {
            let (arrival, (last_step, last_gap)) = (records[job].arrival?, last.gaps[job]?);
            let (Arrival { step, noise, stayed }, best) = (arrival, records[job].best);
            // A job that wasn't evaluated since the last check tells nothing new.
            (step != last_step).then(|| Runner { job, step, stayed, noise, best, gap: scale.gap(best), last_gap })
        };
        let runners: Vec<Runner> = (0..records.len()).filter(in_race).filter_map(runner).collect();
        if runners.len() < 2 || 2 * runners.len() < present {
            return;
        }
        let left = (1.0 / mark).ln() / (mark / last.mark).ln();
        let chances = chances(&runners, left, scale.learned, self.rules.caution);
        self.cut(check, &runners, &chances, present - 1);
        self.last = Some(Last { mark, gaps });
    }

    /// Cuts those with the least chances, as long as all chances so far add up to no more than this check's share of the
    /// risk.
    fn cut(&mut self, check: usize, runners: &[Runner], chances: &[f64], most: usize) {
        let marks = self.rules.marks;
        // The checks but for the first have equal shares; what one leaves is the next one's.
        let allowed = self.rules.risk * (check as f64 / (marks.len() - 1) as f64);
        let mut order: Vec<usize> = (0..runners.len()).filter(|&at| !runners[at].stayed).collect();
        // Far behind, chances are 0 and all alike: then the higher loss goes first.
        order.sort_by(|&a, &b| chances[a].total_cmp(&chances[b]).then(runners[b].best.total_cmp(&runners[a].best)));
        let mut spent = self.spent;
        let is_allowed = |&at: &usize| {
            let with_it = spent + chances[at];
            let is_allowed = with_it <= allowed;
            if is_allowed {
                spent = with_it;
            }
            is_allowed
        };
        let out: Vec<usize> = order.into_iter().take(most).take_while(is_allowed).collect();
        self.spent = spent;
        if out.is_empty() {
            return;
        }
        let gaps = |gap: fn(&Runner) -> f64| runners.iter().map(gap).collect::<Vec<f64>>();
        let stability = spearman(&gaps(|runner| runner.last_gap), &gaps(|runner| runner.gap));
        let mut ranked = gaps(|runner| runner.gap);
        ranked.sort_by(f64::total_cmp);
        for at in out {
            let Runner { job, step, gap, .. } = runners[at];
            let place = ranked.partition_point(|other| *other < gap) + 1;
            let (mark, of, chance) = (marks[check], ranked.len(), chances[at]);
            self.cuts[job] = Some(Cut { step, mark, place, of, gap, chance, spent, stability });
        }
    }
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
