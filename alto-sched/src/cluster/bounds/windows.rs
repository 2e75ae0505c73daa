//! Within a makespan `T`, a task that takes longer than `T - 2 e` works through part of the time from `e` to `T - e`,
//! wherever it is put; more of that than the devices can do shows that `T` can't be.

use super::measure::Measure;
use crate::cluster::problem::{Problem, Time};

/// Whether the work that must lie in some window shows that no schedule ends by `target`.
pub(crate) fn refute(problem: &Problem, measures: &[Measure], target: Time) -> bool {
    let ends = ends(problem, target);
    measures.iter().any(|measure| {
        let energy = |from, to| required(problem, measure, target, from, to);
        let rate = measure.rate(problem);
        let over = |from: Time, to: Time| from < to && energy(from, to) > rate * u128::from(to - from);
        ends.iter().any(|&from| over(from, target - from.min(target)) || over(from, target))
    })
}

/// As [`refute`], for any two ends of a window; for small problems.
pub(crate) fn refute_all(problem: &Problem, measures: &[Measure], target: Time) -> bool {
    let ends = ends(problem, target);
    measures.iter().any(|measure| {
        let rate = measure.rate(problem);
        let over = |from: Time, to: Time| {
            from < to && required(problem, measure, target, from, to) > rate * u128::from(to - from)
        };
        ends.iter().enumerate().any(|(index, &to)| ends[..index].iter().any(|&from| over(from, to)))
    })
}

/// Where windows that matter begin and end, in order.
fn ends(problem: &Problem, target: Time) -> Vec<Time> {
    let mut ends: Vec<Time> = vec![target];
    for item in 0..problem.items.len() {
        let release = problem.items[item].release;
        for mode in problem.modes_of(item) {
            ends.extend([target.saturating_sub(mode.duration), release + mode.duration, release]);
        }
    }
    ends.retain(|&end| end <= target);
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// What must be done from `from` to `to` if all is to end by `target`.
fn required(problem: &Problem, measure: &Measure, target: Time, from: Time, to: Time) -> u128 {
    let busy = problem.nodes.iter().flat_map(|node| node.busy.iter().map(move |busy| (node.class, busy)));
    let held: u128 = busy
        .map(|(class, &(until, width))| {
            u128::from(measure.load(class, width)) * u128::from(until.min(to).saturating_sub(from))
        })
        .sum();
    let wanted = |item: usize| {
        let release = problem.items[item].release;
        let modes = problem.modes_of(item).iter().filter(|mode| release + mode.duration <= target);
        let least = modes.map(|mode| {
            let early = (release + mode.duration).saturating_sub(from);
            let late = to.saturating_sub(target - mode.duration);
            let within = early.min(late).min(mode.duration).min(to - from);
            u128::from(measure.load(mode.class as usize, mode.width)) * u128::from(within)
        });
        // With no mode in time at all the longest task refutes it; not for here to say.
        least.min().unwrap_or(0)
    };
    held + (0..problem.items.len()).map(wanted).sum::<u128>()
}
