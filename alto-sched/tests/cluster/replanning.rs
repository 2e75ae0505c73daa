//! An earlier plan as a starting point, and the second objective.

use alto_sched::{Cluster, Makespan, Placement, Plan, Running, Scheduler, Second, Snapshot, Task};
use proptest::prelude::*;

use crate::random;

fn search(seed: u64) -> Makespan {
    Makespan { seed, steps: 500, ..Makespan::default() }
}

/// The same snapshot, with this plan to start from.
fn again(snapshot: &Snapshot, plan: &Plan) -> Snapshot {
    Snapshot { previous: plan.placements.clone(), ..snapshot.clone() }
}

#[test]
fn a_task_that_arrives_leaves_the_others_where_they_are() {
    let waiting = vec![Task::rigid("a", 2, 10.0), Task::rigid("b", 2, 8.0), Task::rigid("c", 1, 6.0)];
    let mut snapshot = Snapshot { cluster: Cluster::single("H100", 4), waiting, ..Snapshot::default() };
    let place = |devices: [u32; 2], start, end| Some(Placement { choice: 0, devices: devices.to_vec(), start, end });
    // Not as the search would do it, but as good: all end by 14, and so does the one that arrives.
    let last = Some(Placement { choice: 0, devices: vec![3], start: 8.0, end: 14.0 });
    snapshot.previous = vec![place([0, 2], 0.0, 10.0), place([1, 3], 0.0, 8.0), last];
    snapshot.waiting.push(Task::rigid("wide", 4, 5.0));
    snapshot.waiting.push(Task::rigid("new", 1, 3.0));
    snapshot.previous.extend([None, None]);
    let plan = search(0).plan(&snapshot).unwrap();
    plan.check(&snapshot).unwrap();
    assert_eq!(plan.placements[0], snapshot.previous[0]);
    assert_eq!(plan.placements[1], snapshot.previous[1]);
}

#[test]
fn a_plan_changes_where_that_wins_something() {
    let waiting = vec![Task::rigid("a", 1, 10.0), Task::rigid("b", 1, 10.0)];
    let mut snapshot = Snapshot { cluster: Cluster::single("H100", 2), waiting, ..Snapshot::default() };
    let place = |start, end| Some(Placement { choice: 0, devices: vec![1], start, end });
    snapshot.previous = vec![place(0.0, 10.0), place(10.0, 20.0)];
    let plan = search(0).plan(&snapshot).unwrap();
    assert_eq!((plan.makespan, &plan.placements[0]), (10.0, &snapshot.previous[0]));
}

#[test]
fn a_plan_that_no_longer_holds_is_repaired() {
    let waiting = vec![Task::rigid("a", 2, 10.0), Task::rigid("b", 1, 5.0)];
    let place = |devices: &[u32], start, end| Some(Placement { choice: 0, devices: devices.to_vec(), start, end });
    let mut snapshot = Snapshot { cluster: Cluster::single("H100", 2), waiting, ..Snapshot::default() };
    // The task on device 0 was to end at 20, and takes until 25; the other placement names what doesn't exist.
    snapshot.now = 18.0;
    snapshot.running = vec![Running { name: "late".to_owned(), devices: vec![0], until: 25.0 }];
    snapshot.previous = vec![place(&[0, 1], 20.0, 30.0), place(&[7], f64::NAN, -1.0)];
    let plan = search(0).plan(&snapshot).unwrap();
    plan.check(&snapshot).unwrap();
    assert_eq!(plan.makespan, 17.0);
}

#[test]
fn of_plans_with_the_least_makespan_one_that_ends_heavy_tasks_early_is_found() {
    // One task decides the makespan; three others share the second device, best in the order of weight by duration.
    let task = |duration, weight| Task { weight, ..Task::rigid("t", 1, duration) };
    let waiting = vec![task(20.0, 1.0), task(6.0, 1.0), task(2.0, 1.0), task(8.0, 8.0)];
    let snapshot = Snapshot { cluster: Cluster::single("H100", 2), waiting, ..Snapshot::default() };
    let plan = Makespan { second: Second::WeightedCompletion, ..search(0) }.plan(&snapshot).unwrap();
    plan.check(&snapshot).unwrap();
    assert_eq!((plan.makespan, plan.proven), (20.0, true));
    assert_eq!(plan.weighted_completion, 20.0 + 8.0 * 8.0 + 10.0 + 16.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_plan_stays_as_it_is_when_nothing_changed(snapshot in random::snapshot(12, 50), seed in any::<u64>()) {
        let plan = search(0).plan(&snapshot).unwrap();
        let next = search(seed).plan(&again(&snapshot, &plan)).unwrap();
        prop_assert!(next.makespan <= plan.makespan);
        if next.makespan == plan.makespan {
            prop_assert_eq!(next.placements, plan.placements);
        }
    }

    #[test]
    fn a_plan_for_other_circumstances_does_no_harm(
        (snapshot, other) in (random::snapshot(12, 50), random::snapshot(12, 50)),
        second in any::<bool>(),
    ) {
        let mut previous = search(0).plan(&other).unwrap().placements;
        previous.resize(snapshot.waiting.len(), None);
        let snapshot = Snapshot { previous, ..snapshot };
        let second = if second { Second::WeightedCompletion } else { Second::Nothing };
        let plan = Makespan { second, ..search(0) }.plan(&snapshot).unwrap();
        prop_assert_eq!(plan.check(&snapshot), Ok(()));
    }

    #[test]
    fn the_second_objective_costs_no_makespan(snapshot in random::snapshot(6, 20)) {
        let first = Makespan { steps: 5000, ..search(0) };
        let second = Makespan { second: Second::WeightedCompletion, ..first.clone() };
        let (first, second) = (first.plan(&snapshot).unwrap(), second.plan(&snapshot).unwrap());
        prop_assert_eq!(second.check(&snapshot), Ok(()));
        prop_assert!(second.makespan <= first.makespan);
        prop_assert!(second.makespan < first.makespan || second.weighted_completion <= first.weighted_completion);
    }
}
