//! No more can be done in a time than all devices working without a break do.

use super::measure::{self, Measure};
use crate::cluster::problem::{Class, Problem, Time};

/// The area bound under one measure, releases included: what is released at `r` or later takes its area's time from
/// `r` on.
///
/// What is known of the problem saves looking at each task for each measure.
pub(crate) fn bound(problem: &Problem, measure: &Measure, known: &Known) -> Time {
    let supply = Supply { rate: measure.rate(problem), busy: measure.busy(&known.running) };
    let energies = || (0..problem.items.len()).map(|item| measure.energy(problem, item));
    let all = match &known.durations {
        Some(durations) => measure.energy_by_width(durations),
        None => energies().sum(),
    };
    let mut bound = supply.enough(0, all);
    if problem.has_releases() {
        let mut by_release: Vec<(Time, u128)> = problem.items.iter().map(|item| item.release).zip(energies()).collect();
        by_release.sort_unstable_by(|a, b| b.cmp(a));
        let mut later = 0;
        for (release, energy) in by_release {
            later += energy;
            bound = bound.max(supply.enough(release, later));
        }
    }
    bound
}

/// What all measures look at.
pub(crate) struct Known {
    durations: Option<Vec<Vec<u128>>>,
    running: Vec<(Time, usize, u32)>,
}

impl Known {
    pub(crate) fn new(problem: &Problem) -> Known {
        Known { durations: by_width(problem), running: measure::running(problem) }
    }
}

/// For each class and width, how long the tasks that have it take in all; `None` if some task has a choice.
fn by_width(problem: &Problem) -> Option<Vec<Vec<u128>>> {
    let width = |class: &Class| vec![0; class.capacity as usize + 1];
    let mut durations: Vec<Vec<u128>> = problem.classes.iter().map(width).collect();
    if !problem.is_rigid() {
        return None;
    }
    for item in &problem.items {
        let mode = &problem.modes[item.modes.start];
        durations[mode.class as usize][mode.width as usize] += u128::from(mode.duration);
    }
    Some(durations)
}

/// What the devices can do.
struct Supply {
    rate: u128,
    /// Until when the running tasks hold how much of it, in order.
    busy: Vec<(Time, u128)>,
}

impl Supply {
    /// When so much can be done at the earliest, from this time on.
    fn enough(&self, from: Time, mut energy: u128) -> Time {
        let busy = &self.busy[self.busy.partition_point(|busy| busy.0 <= from)..];
        let (mut now, mut rate) = (from, self.rate - busy.iter().map(|busy| busy.1).sum::<u128>());
        for &(until, held) in busy {
            let done = rate * u128::from(until - now);
            if energy <= done {
                break;
            }
            energy -= done;
            (now, rate) = (until, rate + held);
        }
        let rest = Time::try_from(energy.div_ceil(rate.max(1))).unwrap_or(Time::MAX / 4);
        if energy == 0 { 0 } else { now.saturating_add(rest) }
    }
}

/// For several classes: how often to count each, so that the bound is the best that such factors give.
///
/// The linear program that spreads each task over its modes has the best factors as its dual solution; any factors give
/// a valid bound, so finding them by coordinate search is safe.
pub(crate) fn factors(problem: &Problem, measure: &Measure, known: &Known) -> Vec<u64> {
    const FINE: f64 = 4096.0;
    let classes = problem.classes.len();
    if classes < 2 {
        return vec![1; classes];
    }
    let value = |factors: &[u64]| bound(problem, &measure.scaled(factors), known);
    let alone = |class: usize| -> Vec<u64> { (0..classes).map(|other| u64::from(other == class)).collect() };
    let many = problem.items.len() > 2000 || problem.modes.len() > 20_000;
    let single = (0..classes.min(if many { 8 } else { 64 })).map(alone).max_by_key(|factors| value(factors));
    let mut logs = vec![0.0_f64; classes];
    let whole = |logs: &[f64]| -> Vec<u64> {
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
        logs.iter().map(|log| ((log - least).min(8.0).exp() * FINE).round() as u64).collect()
    };
    let mut best = value(&whole(&logs));
    let mut step = 1.0;
    // Small instances afford a finer search.
    let passes = if many { 3 } else { 14 };
    for _ in 0..passes {
        let mut moved = false;
        for class in 0..classes.min(16) {
            for change in [step, -step] {
                logs[class] += change;
                let now = value(&whole(&logs));
                if now > best {
                    (best, moved) = (now, true);
                } else {
                    logs[class] -= change;
                }
            }
        }
        if !moved {
            step /= 2.0;
        }
    }
    single.filter(|factors| value(factors) > best).unwrap_or_else(|| whole(&logs))
}
