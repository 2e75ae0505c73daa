//! A bound on how many waiting tasks a plan holds.

use std::sync::Mutex;

use alto_core::fleet::{Cause, EventKind, Fleet, Replayed};
use alto_sched::{Backfill, Cluster, FirstComeFirstServed, Plan, PlanError, Scheduler, ShortestFirst, Snapshot};
use proptest::prelude::*;

use super::follow::follow;
use super::setup::{mixed_cluster, plain, run, schedulers, starts, workload};

/// Remembers how many tasks it was asked to plan.
#[derive(Debug, Default)]
struct Counting {
    sizes: Mutex<Vec<usize>>,
}

impl Scheduler for Counting {
    fn plan(&self, snapshot: &Snapshot) -> Result<Plan, PlanError> {
        self.sizes.lock().expect("nobody panics").push(snapshot.waiting.len());
        Backfill.plan(snapshot)
    }
}

#[test]
fn however_many_wait_a_plan_holds_so_many() {
    let tasks: Vec<_> = (0..500).map(|_| plain(0.0, "t", 1, 10.0)).collect();
    for planned in [1, 7, 100] {
        let scheduler = Counting::default();
        let fleet = Fleet { planned: Some(planned), ..Fleet::new(Cluster::single("H100", 2)) };
        let (report, events) = run(&fleet, &scheduler, &tasks);
        follow(&events, &fleet.cluster);
        assert_eq!((report.totals.finished, report.totals.makespan), (500, 2500.0));
        assert_eq!(scheduler.sizes.into_inner().expect("nobody panicked").into_iter().max(), Some(planned));
    }
}

#[test]
fn others_come_forward_until_the_devices_are_in_use() {
    let tasks: Vec<_> = (0..100).map(|_| plain(0.0, "t", 1, 10.0)).collect();
    let fleet = Fleet { planned: Some(8), ..Fleet::new(Cluster::single("H100", 90)) };
    let (_, events) = run(&fleet, &Backfill, &tasks);
    assert_eq!(starts(&events).iter().filter(|start| start.1 == 0.0).count(), 90);
    let few = events.iter().find_map(|event| match &event.kind {
        EventKind::Replanned(replan) if event.seconds == 0.0 => {
            replan.causes.iter().find(|cause| matches!(cause, Cause::Few { .. }))
        }
        _ => None,
    });
    assert_eq!(few, Some(&Cause::Few { left: 3 }));
}

#[test]
fn who_stands_behind_does_not_overtake() {
    // The wide one waits for the long one; only the last would fit beside it.
    let tasks = [
        plain(0.0, "long", 1, 50.0),
        plain(1.0, "wide", 2, 10.0),
        plain(2.0, "wide", 2, 10.0),
        plain(3.0, "s", 1, 5.0),
    ];
    let at = |planned| {
        let fleet = Fleet { planned, ..Fleet::new(Cluster::single("H100", 2)) };
        let (_, events) = run(&fleet, &Backfill, &tasks);
        starts(&events).into_iter().find(|start| start.0 == 3).map(|start| start.1)
    };
    assert_eq!((at(None), at(Some(3)), at(Some(2))), (Some(3.0), Some(3.0), Some(70.0)));
}

#[test]
fn who_comes_back_into_the_plan_is_a_change() {
    // The first waits for its release alone, then behind the other.
    let mut late = plain(0.0, "late", 1, 10.0);
    late.task.release = 100.0;
    let fleet = Fleet { planned: Some(1), ..Fleet::new(Cluster::single("H100", 1)) };
    let (_, events) = run(&fleet, &Backfill, &[late, plain(5.0, "soon", 1, 10.0)]);
    let changes = events.into_iter().filter_map(|event| match event.kind {
        EventKind::Replanned(replan) => Some(replan.changes),
        _ => None,
    });
    let places: Vec<_> = changes.flatten().map(|change| (change.task, change.from, change.to.start)).collect();
    assert_eq!(places, [(0, None, 100.0), (1, None, 5.0), (0, None, 100.0)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_task_starts_in_the_end(workload in workload(30), planned in 1..8_usize, bound in prop::option::of(0..5_u32)) {
        let fleet = Fleet { planned: Some(planned), overtaking: bound, ..Fleet::new(mixed_cluster()) };
        for scheduler in schedulers() {
            let (report, events) = run(&fleet, &*scheduler, &workload);
            let overtaken = follow(&events, &fleet.cluster);
            prop_assert_eq!(overtaken.len(), workload.len());
            prop_assert!(overtaken.values().all(|&count| bound.is_none_or(|bound| count <= bound)));
            prop_assert!(overtaken.iter().all(|(&task, &count)| report.tasks[task].overtaken == count));
            let mut again = vec![];
            let mut site = Replayed::new(events.clone());
            fleet.run(&*scheduler, &mut site, &mut |event| again.push(event.clone())).unwrap();
            prop_assert_eq!(again, events);
        }
    }

    #[test]
    fn in_order_of_arrival_nobody_behind_could_have_started(
        tasks in prop::collection::vec((0..60_u32, 1..=6_u32, 1..30_u32), 1..40),
        planned in 1..8_usize,
    ) {
        let tasks: Vec<_> =
            tasks.into_iter().map(|(at, width, long)| plain(f64::from(at), "t", width, f64::from(long))).collect();
        let all = Fleet::new(Cluster::single("H100", 6));
        let few = Fleet { planned: Some(planned), ..all.clone() };
        let started = |fleet| starts(&run(fleet, &FirstComeFirstServed, &tasks).1);
        prop_assert_eq!(started(&few), started(&all));
    }

    #[test]
    fn a_bound_that_is_never_reached_changes_nothing(workload in workload(12)) {
        let all = Fleet::new(mixed_cluster());
        let most = Fleet { planned: Some(12), ..all.clone() };
        for scheduler in schedulers() {
            prop_assert_eq!(run(&all, &*scheduler, &workload).1, run(&most, &*scheduler, &workload).1);
        }
    }
}

#[test]
fn a_plan_of_nothing_is_an_error() {
    let fleet = Fleet { planned: Some(0), ..Fleet::new(Cluster::single("H100", 1)) };
    let error = fleet.run(&ShortestFirst, &mut super::setup::site(&[]), &mut |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "fleet: planned is 0, but must be at least 1");
}
