//! The check rejects every kind of broken plan: a good one is broken in one way at a time.

use alto_sched::{
    CheckError, Choice, Cluster, LongestFirst, Placement, Plan, Refused, Running, Scheduler, Snapshot, Task, TaskFault,
};
use proptest::prelude::*;

use crate::random;

/// Two nodes of four devices, a smaller one of another kind with less memory, one running task, four waiting.
fn good() -> (Snapshot, Plan) {
    let mut cluster = Cluster::default().with("H100", 8, 4).with("A100", 2, 2);
    cluster.nodes[2].memory = Some(40);
    let h100 = |width, duration| Choice { kind: Some("H100".to_owned()), width, duration, memory: 80 };
    let task = |name: &str, options| Task { name: name.to_owned(), release: 0.0, weight: 2.0, options };
    let waiting = vec![
        task("wide", vec![h100(4, 50.0)]),
        task("pair", vec![h100(2, 30.0), h100(1, 55.0)]),
        Task { release: 20.0, ..task("late", vec![h100(1, 10.0)]) },
        Task { options: vec![Choice { kind: None, width: 2, duration: 40.0, memory: 0 }], ..task("any", vec![]) },
    ];
    let running = vec![Running { name: "r".to_owned(), devices: vec![0], until: 15.0 }];
    let snapshot = Snapshot { cluster, now: 10.0, running, waiting, ..Snapshot::default() };
    let place = |choice, devices: &[u32], start, end| Some(Placement { choice, devices: devices.to_vec(), start, end });
    let placements = vec![
        place(0, &[4, 5, 6, 7], 10.0, 60.0),
        place(0, &[1, 2], 10.0, 40.0),
        place(0, &[0], 20.0, 30.0),
        place(0, &[8, 9], 10.0, 50.0),
    ];
    let weighted_completion = 2.0 * (50.0 + 30.0 + 20.0 + 40.0);
    let plan =
        Plan { placements, refused: vec![], makespan: 50.0, lower_bound: 50.0, proven: true, weighted_completion };
    (snapshot, plan)
}

fn placement(plan: &mut Plan, task: usize) -> &mut Placement {
    plan.placements[task].as_mut().expect("placed")
}

#[track_caller]
fn rejected(name: &str, expected: &str, break_it: impl FnOnce(&mut Plan, &mut Snapshot)) {
    let (mut snapshot, mut plan) = good();
    plan.check(&snapshot).expect("a good plan");
    break_it(&mut plan, &mut snapshot);
    let error = plan.check(&snapshot).expect_err(name);
    let found = format!("{error:?}");
    assert!(found.starts_with(expected), "{name}: {found}");
}

#[test]
fn each_break_is_found_and_told() {
    rejected("a placement is missing", "Count", |p, _| drop(p.placements.pop()));
    rejected("one too many", "Count", |p, _| p.placements.push(None));
    rejected("a task is neither placed nor refused", "Refused { task: 1", |p, _| p.placements[1] = None);
    let reason = TaskFault::NoOption;
    let refused = |task| vec![Refused { task, reason: reason.clone() }];
    rejected("a task is placed and refused", "Refused { task: 1", |p, _| p.refused = refused(1));
    rejected("a good task is refused", "Refused { task: 1", |p, s| {
        (p.placements[1], p.refused, s.skip_bad) = (None, refused(1), true);
    });
    rejected("a task that doesn't exist is refused", "Refused { task: 9", |p, _| p.refused = refused(9));
    rejected("an option that isn't there", "Option { task: 0", |p, _| placement(p, 0).choice = 1);
    rejected("another option's devices", "Width { task: 1", |p, _| placement(p, 1).choice = 1);
    rejected("too few devices", "Width { task: 0", |p, _| placement(p, 0).devices.truncate(3));
    rejected("no devices", "Width { task: 2", |p, _| placement(p, 2).devices.clear());
    rejected("a device twice", "Order { task: 1", |p, _| placement(p, 1).devices = vec![2, 2]);
    rejected("devices not in order", "Order { task: 1", |p, _| placement(p, 1).devices = vec![2, 1]);
    rejected("an unknown device", "UnknownDevice { task: 2", |p, _| placement(p, 2).devices = vec![10]);
    rejected("another kind", "Unsuitable { task: 1", |p, _| placement(p, 1).devices = vec![8, 9]);
    rejected("too little memory", "Unsuitable { task: 3", |_, s| s.waiting[3].options[0].memory = 41);
    rejected("two nodes", "Apart { task: 1", |p, _| placement(p, 1).devices = vec![3, 4]);
    rejected("a start that is no number", "Time { task: 0", |p, _| placement(p, 0).start = f64::NAN);
    rejected("an end that is never", "Time { task: 0", |p, _| placement(p, 0).end = f64::INFINITY);
    rejected("before now", "Early { task: 1", |p, _| (placement(p, 1).start, placement(p, 1).end) = (9.0, 39.0));
    rejected("before its release", "Early { task: 2", |p, _| {
        (placement(p, 2).start, placement(p, 2).end) = (19.0, 29.0)
    });
    rejected("too short", "Duration { task: 0", |p, _| placement(p, 0).end = 59.0);
    rejected("ends before it starts", "Duration { task: 0", |p, _| placement(p, 0).end = 10.0);
    rejected("a microsecond short", "Duration { task: 0", |p, _| placement(p, 0).end = 59.999999);
    rejected("two at once", "Overlap { device: 2, first: Waiting(1), second: Waiting(2)", |p, _| {
        placement(p, 2).devices = vec![2];
    });
    rejected("beside a running one", "Overlap { device: 0, first: Running(0), second: Waiting(1)", |p, _| {
        placement(p, 1).devices = vec![0, 1];
    });
    rejected("a makespan too small", "Makespan", |p, _| p.makespan = 49.0);
    rejected("a makespan too large", "Makespan", |p, _| p.makespan = 51.0);
    rejected("a makespan that is no number", "Makespan", |p, _| p.makespan = f64::NAN);
    rejected("another weighted sum", "WeightedCompletion", |p, _| p.weighted_completion = 279.0);
    rejected("a weighted sum that is no number", "WeightedCompletion", |p, _| p.weighted_completion = f64::NAN);
    rejected("a bound over the makespan", "Bound", |p, _| p.lower_bound = 50.1);
    rejected("a proof without a bound", "Bound", |p, _| p.lower_bound = 49.0);
    rejected("a proof kept secret", "Bound", |p, _| p.proven = false);
    rejected("a bound that is no number", "Bound", |p, _| p.lower_bound = f64::NAN);
    rejected("a bad snapshot", "Snapshot", |_, s| s.running[0].devices = vec![77]);
    rejected("a bad task", "Refused { task: 0", |_, s| s.waiting[0].options[0].duration = -1.0);
}

#[test]
fn a_bad_task_may_be_refused_only_if_the_caller_says_so() {
    let (mut snapshot, _) = good();
    snapshot.waiting[0].options[0].width = 5;
    snapshot.skip_bad = true;
    let plan = LongestFirst.plan(&snapshot).unwrap();
    plan.check(&snapshot).unwrap();
    snapshot.skip_bad = false;
    assert_eq!(plan.check(&snapshot), Err(CheckError::Refused { task: 0 }));
}

proptest! {
    #[test]
    fn moving_any_start_by_a_microsecond_alone_is_found(
        snapshot in random::snapshot(8, 20),
        task in any::<prop::sample::Index>(),
        later in any::<bool>(),
    ) {
        prop_assume!(!snapshot.waiting.is_empty());
        let mut plan = LongestFirst.plan(&snapshot).unwrap();
        let task = task.index(plan.placements.len());
        placement(&mut plan, task).start += if later { 1e-6 } else { -1e-6 };
        prop_assert!(plan.check(&snapshot).is_err());
    }

    #[test]
    fn a_task_run_twice_is_found(snapshot in random::snapshot(8, 20), task in any::<prop::sample::Index>()) {
        prop_assume!(!snapshot.waiting.is_empty());
        let plan = LongestFirst.plan(&snapshot).unwrap();
        let task = task.index(plan.placements.len());
        let mut twice = snapshot.clone();
        twice.waiting.push(snapshot.waiting[task].clone());
        let mut copy = plan.clone();
        copy.placements.push(plan.placements[task].clone());
        prop_assert!(copy.check(&twice).is_err());
    }
}
