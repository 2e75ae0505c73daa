//! The list schedulers.

use alto_sched::{
    Backfill, Cluster, FirstComeFirstServed, LongestFirst, Plan, Running, Scheduler, ShortestFirst, Snapshot, Task,
};
use proptest::prelude::*;

use crate::{brute_force, random};

pub(crate) fn lists() -> [Box<dyn Scheduler>; 4] {
    [Box::new(FirstComeFirstServed), Box::new(Backfill), Box::new(ShortestFirst), Box::new(LongestFirst)]
}

fn rigid(devices: u32, tasks: &[(u32, f64)]) -> Snapshot {
    let waiting = tasks.iter().map(|&(width, duration)| Task::rigid("t", width, duration)).collect();
    Snapshot { cluster: Cluster::single("H100", devices), waiting, ..Snapshot::default() }
}

fn starts(plan: &Plan) -> Vec<f64> {
    plan.placements.iter().map(|placement| placement.as_ref().expect("placed").start).collect()
}

#[test]
fn first_come_first_served_lets_nobody_overtake_and_backfilling_does() {
    let snapshot = rigid(4, &[(2, 10.0), (3, 5.0), (2, 7.0)]);
    assert_eq!(starts(&FirstComeFirstServed.plan(&snapshot).unwrap()), [0.0, 10.0, 15.0]);
    assert_eq!(starts(&Backfill.plan(&snapshot).unwrap()), [0.0, 10.0, 0.0]);
}

#[test]
fn the_shortest_or_the_longest_that_fits_begins() {
    let snapshot = rigid(1, &[(1, 2.0), (1, 3.0), (1, 1.0)]);
    assert_eq!(starts(&ShortestFirst.plan(&snapshot).unwrap()), [1.0, 3.0, 0.0]);
    assert_eq!(starts(&LongestFirst.plan(&snapshot).unwrap()), [3.0, 0.0, 5.0]);
}

#[test]
fn a_task_waits_for_its_release_and_for_running_ones() {
    let mut snapshot = rigid(2, &[(2, 1.0), (1, 1.0)]);
    snapshot.now = 100.0;
    snapshot.waiting[1].release = 103.5;
    snapshot.running = vec![Running { name: String::new(), devices: vec![1], until: 102.25 }];
    for scheduler in lists() {
        let plan = scheduler.plan(&snapshot).unwrap();
        assert_eq!((starts(&plan), plan.makespan), (vec![102.25, 103.5], 4.5), "{scheduler:?}");
        plan.check(&snapshot).unwrap();
    }
}

#[test]
fn a_running_task_that_is_overdue_is_taken_to_end_now() {
    let mut snapshot = rigid(1, &[(1, 1.0)]);
    snapshot.now = 10.0;
    snapshot.running = vec![Running { name: String::new(), devices: vec![0], until: 9.0 }];
    let plan = LongestFirst.plan(&snapshot).unwrap();
    assert_eq!(starts(&plan), [10.0]);
    plan.check(&snapshot).unwrap();
}

#[test]
fn no_tasks_are_planned_at_once() {
    for scheduler in lists() {
        let plan = scheduler.plan(&Snapshot::default()).unwrap();
        assert_eq!((plan.makespan, plan.proven, plan.gap()), (0.0, true, 0.0), "{scheduler:?}");
        plan.check(&Snapshot::default()).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_plan_passes_the_check(snapshot in random::snapshot(20, 50)) {
        for scheduler in lists() {
            let plan = scheduler.plan(&snapshot).unwrap();
            prop_assert_eq!(plan.check(&snapshot), Ok(()), "{:?}", scheduler);
        }
    }

    #[test]
    fn no_bound_is_over_the_least_makespan(snapshot in random::snapshot(5, 9)) {
        let least = brute_force::makespan(&snapshot);
        let bound = LongestFirst.plan(&snapshot).unwrap().lower_bound;
        prop_assert!(bound <= least, "bound {} of a least makespan of {}", bound, least);
    }

    #[test]
    fn no_bound_is_over_the_least_makespan_of_rigid_tasks(snapshot in random::rigid(6, 12, 9)) {
        let least = brute_force::makespan(&snapshot);
        let bound = LongestFirst.plan(&snapshot).unwrap().lower_bound;
        prop_assert!(bound <= least, "bound {} of a least makespan of {}", bound, least);
    }
}
