//! Dual-feasible functions: other widths for the tasks, such that those that fit side by side still do.
//!
//! If `f` keeps every set of widths that add up to at most `c` within `f(c)`, a schedule of the tasks is one of tasks
//! of width `f(w)` on nodes of `f(c)` devices too, and the area bound of that one holds for this one. Where three of
//! five devices can't be shared, `f` sees that they can't. Functions as collected by Clautiaux, Alves and Valério de
//! Carvalho, "A survey of dual-feasible and superadditive functions" (2010): `u` and `f0` of Fekete and Schepers
//! (2001), `f2` of Carlier, Clautiaux and Moukrim (2007), `bj` of Burdett and Johnson (1977).

use crate::cluster::problem::{Bin, Problem, Time, gcd};

/// What a device-second counts, for tasks of each width on nodes of each class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Measure {
    /// For each class, by width from 0 to the capacity.
    loads: Vec<Vec<u64>>,
}

impl Measure {
    /// The width itself.
    pub(crate) fn plain(problem: &Problem) -> Measure {
        Measure::of(problem, |w, _| w)
    }

    fn of(problem: &Problem, f: impl Fn(u64, u64) -> u64) -> Measure {
        let table = |c: u32| (0..=u64::from(c)).map(|w| f(w, u64::from(c))).collect();
        Measure { loads: problem.classes.iter().map(|class| table(class.capacity)).collect() }
    }

    /// This measure with each class counted so many times.
    pub(crate) fn scaled(&self, factors: &[u64]) -> Measure {
        let scale = |(loads, factor): (&Vec<u64>, &u64)| loads.iter().map(|load| load * factor).collect();
        Measure { loads: self.loads.iter().zip(factors).map(scale).collect() }
    }

    pub(crate) fn load(&self, class: usize, width: u32) -> u64 {
        self.loads[class][width as usize]
    }

    /// What a full node of the class counts.
    pub(crate) fn full(&self, class: usize) -> u64 {
        self.loads[class].last().copied().unwrap_or(0)
    }

    /// What all nodes count when full.
    pub(crate) fn rate(&self, problem: &Problem) -> u128 {
        let nodes = problem.classes.iter().map(|class| class.nodes.len() as u128);
        nodes.enumerate().map(|(class, nodes)| nodes * u128::from(self.full(class))).sum()
    }

    /// The least that a task can count.
    pub(crate) fn energy(&self, problem: &Problem, item: usize) -> u128 {
        let modes = problem.modes_of(item).iter();
        let energy = |load: u64, duration: Time| u128::from(load) * u128::from(duration);
        modes.map(|mode| energy(self.load(mode.class as usize, mode.width), mode.duration)).min().unwrap_or(0)
    }

    /// What tasks count in all, from how long those of each class and width take.
    pub(crate) fn energy_by_width(&self, durations: &[Vec<u128>]) -> u128 {
        let energy = |(load, duration): (&u64, &u128)| u128::from(*load) * duration;
        self.loads
            .iter()
            .zip(durations)
            .map(|(loads, durations)| loads.iter().zip(durations).map(energy).sum::<u128>())
            .sum()
    }

    /// Until when each of these running tasks counts how much.
    pub(crate) fn busy(&self, running: &[(Time, usize, u32)]) -> Vec<(Time, u128)> {
        running.iter().map(|&(until, class, width)| (until, u128::from(self.load(class, width)))).collect()
    }

    fn divide_by_common_factor(&mut self) {
        let all = self.loads.iter().flatten().fold(0, |a, &b| gcd(a, b));
        if all > 1 {
            self.loads.iter_mut().flatten().for_each(|load| *load /= all);
        }
    }
}

/// Until when tasks that run already take how many devices of which class, in order of time.
pub(crate) fn running(problem: &Problem) -> Vec<(Time, usize, u32)> {
    let of_node = |node: &Bin| node.busy.iter().map(|&(until, width)| (until, node.class, width)).collect::<Vec<_>>();
    let mut running: Vec<(Time, usize, u32)> = problem.nodes.iter().flat_map(of_node).collect();
    running.sort_unstable();
    running
}

/// The measures that are worth a try on this problem: all for small nodes, a choice of them for large ones.
pub(crate) fn all(problem: &Problem) -> Vec<Measure> {
    let capacity = problem.classes.iter().map(|class| class.capacity).max().unwrap_or(0);
    // A table of the node's size for each would be too much, and a task that takes a good part of it is rare.
    if capacity > 1 << 16 {
        return vec![Measure::plain(problem)];
    }
    let most = if problem.items.len() > 2000 || capacity > 256 { 12 } else { 128 };
    let mut used: Vec<u64> = problem.modes.iter().map(|mode| u64::from(mode.width)).collect();
    used.sort_unstable();
    used.dedup();
    let half = u64::from(capacity) / 2;
    let mut thresholds: Vec<u64> = (1..=half.min(most)).chain(used.into_iter().filter(|&w| w <= half)).collect();
    thresholds.sort_unstable();
    thresholds.dedup();
    let step = thresholds.len().div_ceil(most as usize).max(1);
    let mut measures = vec![Measure::plain(problem)];
    for t in thresholds.into_iter().step_by(step) {
        measures.push(Measure::of(problem, |w, c| f0(t, w, c)));
        measures.push(Measure::of(problem, |w, c| f2(t, w, c)));
        measures.push(Measure::of(problem, |w, c| bj(t, w, c)));
    }
    for k in 1..=u64::from(capacity).min(most / 2) {
        measures.push(Measure::of(problem, |w, c| u(k, w, c)));
    }
    let mut distinct: Vec<Measure> = Vec::new();
    for mut measure in measures {
        measure.divide_by_common_factor();
        if !distinct.contains(&measure) && (0..problem.classes.len()).all(|class| measure.full(class) > 0) {
            distinct.push(measure);
        }
    }
    distinct
}

/// Widths under `t` count nothing, those over `c - t` the whole node.
fn f0(t: u64, w: u64, c: u64) -> u64 {
    match w {
        _ if t > c / 2 => w,
        w if w > c - t => c,
        w if w < t => 0,
        w => w,
    }
}

/// Widths in steps of `t`, those over a half as what they leave.
fn f2(t: u64, w: u64, c: u64) -> u64 {
    match (2 * w).cmp(&c) {
        _ if t > c => w,
        std::cmp::Ordering::Greater => 2 * (c / t - (c - w) / t),
        std::cmp::Ordering::Equal => c / t,
        std::cmp::Ordering::Less => 2 * (w / t),
    }
}

/// Steps of `t` with what is left over counted from the node's own left-over on.
fn bj(t: u64, w: u64, c: u64) -> u64 {
    if t > c {
        return w;
    }
    let over = c % t;
    (w / t) * (t - over) + (w % t).saturating_sub(over)
}

/// `k + 1` tasks of over a `k + 1`-th never fit.
fn u(k: u64, w: u64, c: u64) -> u64 {
    let parts = (k + 1) * w;
    if parts.is_multiple_of(c) { w * k } else { parts / c * c }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No multiset of widths within the capacity may pass it under `f`: the most that widths adding up to at most `c`
    /// count, by dynamic programming.
    fn most(f: &dyn Fn(u64) -> u64, c: u64) -> u64 {
        let mut best = vec![0; c as usize + 1];
        for total in 1..=c {
            let with_last = (1..=total).map(|w| best[(total - w) as usize] + f(w));
            best[total as usize] = with_last.max().unwrap_or(0).max(best[total as usize - 1]);
        }
        best[c as usize]
    }

    #[test]
    fn what_fits_side_by_side_still_does_under_every_function() {
        for c in 1..=40 {
            for t in 1..=c + 1 {
                for (name, f) in [("f0", f0 as fn(u64, u64, u64) -> u64), ("f2", f2), ("bj", bj)] {
                    assert_eq!(most(&|w| f(t, w, c), c), f(t, c, c), "{name}, threshold {t}, capacity {c}");
                }
            }
            for k in 1..=64 {
                assert_eq!(most(&|w| u(k, w, c), c), u(k, c, c), "u, {k}, capacity {c}");
            }
        }
    }
}
