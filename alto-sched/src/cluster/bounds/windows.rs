//! Within a makespan `T`, a task that takes longer than `T - 2 e` works through part of the time from `e` to `T - e`,
//! wherever it is put; more of that than the devices can do shows that `T` can't be.

use super::measure::Measure;
use crate::cluster::problem::{Mode, Problem, Time};

/// Whether the work that must lie in some window shows that no schedule ends by `target`.
pub(crate) fn refute(problem: &Problem, measures: &[Measure], running: &[(Time, usize, u32)], target: Time) -> bool {
    let ends = ends(problem, target);
    measures.iter().any(|measure| {
        let demand = Demand::new(problem, measure, running, target);
        ends.iter().any(|&from| demand.is_over(from, target - from.min(target)) || demand.is_over(from, target))
    })
}

/// As [`refute`], for any two ends of a window; for small problems.
pub(crate) fn refute_all(
    problem: &Problem,
    measures: &[Measure],
    running: &[(Time, usize, u32)],
    target: Time,
) -> bool {
    let ends = ends(problem, target);
    measures.iter().any(|measure| {
        let demand = Demand::new(problem, measure, running, target);
        ends.iter().enumerate().any(|(index, &to)| ends[..index].iter().any(|&from| demand.is_over(from, to)))
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

/// What must be done, by one measure, if all is to end by `target`.
struct Demand<'a> {
    problem: &'a Problem,
    measure: &'a Measure,
    target: Time,
    /// What all devices do at a time.
    rate: u128,
    /// From 0 on, when running tasks end, in order; with what they all do until then, and what is left of them does at a
    /// time.
    held: Vec<(Time, u128, u128)>,
    /// What the waiting tasks count in all, and at most at a time: more of it is in no window.
    all: (u128, u128),
}

impl<'a> Demand<'a> {
    fn new(problem: &'a Problem, measure: &'a Measure, running: &[(Time, usize, u32)], target: Time) -> Demand<'a> {
        let busy = measure.busy(running);
        let mut held = vec![(0, 0, busy.iter().map(|busy| busy.1).sum::<u128>())];
        held.extend(busy.into_iter().scan(held[0], |(last, done, load), (until, less)| {
            *done += *load * u128::from(until - *last);
            (*last, *load) = (until, *load - less);
            Some((*last, *done, *load))
        }));
        let least = |item: usize, of: &dyn Fn(u64, Time) -> u128| {
            let load = |mode: &Mode| of(measure.load(mode.class as usize, mode.width), mode.duration);
            in_time(problem, item, target).map(load).min().unwrap_or(0)
        };
        let sum = |of: &dyn Fn(u64, Time) -> u128| (0..problem.items.len()).map(|item| least(item, of)).sum::<u128>();
        let all = (sum(&|load, duration| u128::from(load) * u128::from(duration)), sum(&|load, _| u128::from(load)));
        Demand { problem, measure, target, rate: measure.rate(problem), held, all }
    }

    /// Whether more must be done from `from` to `to` than the devices can.
    fn is_over(&self, from: Time, to: Time) -> bool {
        if from >= to {
            return false;
        }
        let length = u128::from(to - from);
        let (can, held) = (self.rate * length, self.held_until(to) - self.held_until(from));
        let most = self.all.0.min(self.all.1.saturating_mul(length));
        held + most > can
            && held + (0..self.problem.items.len()).map(|item| self.wanted(item, from, to)).sum::<u128>() > can
    }

    /// What running tasks do until then.
    fn held_until(&self, time: Time) -> u128 {
        let (until, done, load) = self.held[self.held.partition_point(|held| held.0 <= time) - 1];
        done + load * u128::from(time - until)
    }

    /// What is to be done of this task from `from` to `to`, wherever it is put.
    fn wanted(&self, item: usize, from: Time, to: Time) -> u128 {
        let release = self.problem.items[item].release;
        let least = in_time(self.problem, item, self.target).map(|mode| {
            let early = (release + mode.duration).saturating_sub(from);
            let late = to.saturating_sub(self.target - mode.duration);
            let within = early.min(late).min(mode.duration).min(to - from);
            u128::from(self.measure.load(mode.class as usize, mode.width)) * u128::from(within)
        });
        least.min().unwrap_or(0)
    }
}

/// The modes by which a task may end by then. With none at all the longest task refutes it; not for here to say.
fn in_time(problem: &Problem, item: usize, target: Time) -> impl Iterator<Item = &Mode> {
    let release = problem.items[item].release;
    problem.modes_of(item).iter().filter(move |mode| release + mode.duration <= target)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::measure;
    use super::*;
    use crate::{Choice, Cluster, Running, Snapshot, Task};

    /// What must be done from `from` to `to`, of each task that runs and waits.
    fn required(problem: &Problem, measure: &Measure, target: Time, from: Time, to: Time) -> u128 {
        let busy = problem.nodes.iter().flat_map(|node| node.busy.iter().map(move |busy| (node.class, busy)));
        let held = busy.map(|(class, &(until, width))| {
            u128::from(measure.load(class, width)) * u128::from(until.min(to).saturating_sub(from))
        });
        let demand = Demand::new(problem, measure, &[], target);
        held.sum::<u128>() + (0..problem.items.len()).map(|item| demand.wanted(item, from, to)).sum::<u128>()
    }

    fn choice() -> impl Strategy<Value = Choice> {
        (1..=4_u32, 1..30_u32).prop_map(|(width, duration)| Choice {
            kind: None,
            width,
            duration: f64::from(duration),
            memory: 0,
        })
    }

    proptest! {
        #[test]
        fn a_window_is_over_where_all_that_must_lie_in_it_is_more_than_the_devices_do(
            waiting in prop::collection::vec((0..20_u32, prop::collection::vec(choice(), 1..3)), 1..8),
            running in prop::collection::vec(0..20_u32, 0..8),
            target in 1..60_u64,
        ) {
            let task = |(release, options)| Task { release: f64::from(release), options, ..Task::rigid("", 1, 1.0) };
            let held = |(device, until)| Running { name: String::new(), devices: vec![device], until: f64::from(until) };
            let snapshot = Snapshot {
                cluster: Cluster::default().with("H100", 8, 4),
                running: (0..).zip(running).map(held).collect(),
                waiting: waiting.into_iter().map(task).collect(),
                ..Snapshot::default()
            };
            let problem = Problem::new(&snapshot).expect("a snapshot that makes sense");
            let target = target * 1_000_000 / problem.unit;
            for measure in super::super::measure::all(&problem) {
                let demand = Demand::new(&problem, &measure, &measure::running(&problem), target);
                let ends = ends(&problem, target);
                for (&from, &to) in ends.iter().flat_map(|from| ends.iter().map(move |to| (from, to))) {
                    let over = from < to
                        && required(&problem, &measure, target, from, to)
                            > measure.rate(&problem) * u128::from(to - from);
                    prop_assert_eq!(demand.is_over(from, to), over, "from {} to {}", from, to);
                }
            }
        }
    }
}
