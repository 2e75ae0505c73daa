//! When tasks are planned anew, and what comes of it.

use alto_core::fleet::{Cause, Event, EventKind, Fleet, Replan};
use alto_sched::{Backfill, Cluster, FirstComeFirstServed, Makespan};
use proptest::prelude::*;

use super::follow::follow;
use super::setup::{Submitted, mixed_cluster, plain, run, schedulers, starts, workload};

fn replans(events: &[Event]) -> Vec<(f64, &Replan)> {
    let replan = |event: &'_ Event| match &event.kind {
        EventKind::Replanned(_) => Some(event.seconds),
        _ => None,
    };
    let times = events.iter().filter_map(replan);
    let plans = events.iter().filter_map(|event| match &event.kind {
        EventKind::Replanned(replan) => Some(replan),
        _ => None,
    });
    times.zip(plans).collect()
}

#[test]
fn what_comes_together_is_planned_once() {
    let tasks: Vec<_> = (0..50).map(|_| plain(3.0, "t", 1, 10.0)).collect();
    let (report, events) = run(&Fleet::new(Cluster::single("H100", 50)), &Makespan::default(), &tasks);
    assert_eq!(replans(&events).len(), 1);
    assert_eq!(replans(&events)[0].1.causes.len(), 50);
    assert_eq!((report.totals.makespan, report.totals.mean_wait), (10.0, 0.0));
}

#[test]
fn an_early_end_lets_the_next_start() {
    let tasks = [Submitted { factor: 0.25, ..plain(0.0, "a", 2, 40.0) }, plain(0.0, "b", 2, 30.0)];
    let (_, events) = run(&Fleet::new(Cluster::single("H100", 2)), &Backfill, &tasks);
    assert_eq!(starts(&events), [(0, 0.0), (1, 10.0)]);
    let (at, replan) = replans(&events)[1];
    assert_eq!((at, &replan.causes[..]), (10.0, &[Cause::Ended { task: 0 }][..]));
    // The former plan, 30 s earlier, is as good.
    assert_eq!((replan.before, replan.after, replan.won()), (30.0, 30.0, 0.0));
    let change = &replan.changes[0];
    assert_eq!((change.task, change.from.as_ref().map(|from| from.start), change.to.start), (1, Some(40.0), 10.0));
}

#[test]
fn an_expected_end_that_moves_by_more_than_the_threshold_is_a_reason() {
    // After 10 of 100 s it is known to take 85 instead: a sixth of the 90 s that were left.
    let tasks = [Submitted { factor: 0.85, known: 10.0 / 85.0, ..plain(0.0, "a", 2, 100.0) }, plain(0.0, "b", 1, 5.0)];
    let causes = |threshold| {
        let fleet = Fleet { threshold, ..Fleet::new(Cluster::single("H100", 2)) };
        let (_, events) = run(&fleet, &Backfill, &tasks);
        let causes = replans(&events).into_iter().flat_map(|(_, replan)| replan.causes.clone());
        causes.filter(|cause| matches!(cause, Cause::Moved { .. })).collect::<Vec<_>>()
    };
    assert_eq!(causes(0.16), [Cause::Moved { task: 0, from: 100.0, to: 85.0 }]);
    assert_eq!(causes(0.17), []);
}

#[test]
fn small_moves_add_up() {
    use alto_core::fleet::{Timeline, Virtual};
    use alto_sched::Task;
    let mut site = Virtual::default();
    // Each time 4 s later than was expected, of about 100 that are left.
    let expected: Vec<(f64, f64)> = (1..=10).map(|step| (f64::from(step), 100.0 + 4.0 * f64::from(step))).collect();
    site.submit(0.0, Task::rigid("a", 1, 100.0), |_| Timeline { expected, end: 140.0, error: None });
    site.submit(0.0, Task::rigid("b", 1, 1.0), |_| Timeline::lasting(1.0));
    let mut events = vec![];
    let fleet = Fleet::new(Cluster::single("H100", 1));
    fleet.run(&alto_sched::FirstComeFirstServed, &mut site, &mut |event| events.push(event.clone())).unwrap();
    let moves: Vec<f64> = replans(&events).iter().map(|replan| replan.0).filter(|&at| at > 0.0 && at < 11.0).collect();
    assert_eq!(moves, [3.0, 6.0, 9.0]);
}

#[test]
fn a_task_that_is_late_makes_room_elsewhere() {
    // To end at 10, it takes 40, and nobody says so. The others don't wait for it.
    let late = Submitted { factor: 4.0, ..plain(0.0, "late", 1, 10.0) };
    let tasks = [late, plain(0.0, "b", 1, 12.0), plain(0.0, "c", 1, 5.0)];
    let (report, events) = run(&Fleet::new(Cluster::single("H100", 2)), &Backfill, &tasks);
    follow(&events, &report.fleet.cluster);
    assert_eq!(starts(&events)[2], (2, 12.0));
    let moved = replans(&events)
        .iter()
        .flat_map(|replan| &replan.1.causes)
        .any(|cause| *cause == Cause::Moved { task: 0, from: 10.0, to: 11.0 });
    assert!(moved, "{events:#?}");
}

#[test]
fn an_expected_end_that_is_no_time_tells_nothing() {
    use alto_core::fleet::{Timeline, Virtual};
    use alto_sched::Task;
    let mut site = Virtual::default();
    let expected = vec![(1.0, f64::NAN), (2.0, f64::INFINITY), (3.0, f64::NEG_INFINITY)];
    site.submit(0.0, Task::rigid("a", 1, 10.0), |_| Timeline { expected, end: 10.0, error: None });
    let mut events = vec![];
    let fleet = Fleet::new(Cluster::single("H100", 1));
    fleet.run(&Backfill, &mut site, &mut |event| events.push(event.clone())).unwrap();
    assert!(!events.iter().any(|event| matches!(event.kind, EventKind::Expected { .. })), "{events:?}");
}

#[test]
fn nobody_starts_by_a_plan_that_a_late_task_has_spoilt() {
    // Both devices are to be free at 10; the first is not. Who came first gets the second.
    let late = Submitted { factor: 4.0, ..plain(0.0, "late", 1, 10.0) };
    let tasks = [late, plain(0.0, "b", 1, 10.0), plain(1.0, "earlier", 1, 5.0), plain(2.0, "later", 1, 5.0)];
    let (_, events) = run(&Fleet::new(Cluster::single("H100", 2)), &FirstComeFirstServed, &tasks);
    assert_eq!(starts(&events)[2..], [(2, 10.0), (3, 15.0)]);
}

#[test]
fn a_task_that_fails_frees_its_devices_and_fails_alone() {
    let fails = Submitted { fails: true, factor: 0.1, ..plain(0.0, "bad", 2, 100.0) };
    let (report, events) = run(&Fleet::new(Cluster::single("H100", 2)), &Backfill, &[fails, plain(0.0, "b", 2, 5.0)]);
    assert_eq!(starts(&events), [(0, 0.0), (1, 10.0)]);
    assert_eq!(report.tasks[0].failure.as_deref(), Some("it was to fail"));
    assert_eq!((report.tasks[1].failure.as_ref(), report.tasks[1].ended), (None, Some(15.0)));
    assert_eq!((report.totals.finished, report.totals.failed), (1, 1));
}

#[test]
fn a_panic_on_a_virtual_clock_is_a_failure_of_that_task() {
    use alto_core::fleet::{Timeline, Virtual};
    use alto_sched::Task;
    let mut site = Virtual::default();
    site.submit(0.0, Task::rigid("bad", 1, 10.0), |_| panic!("no such file"));
    site.submit(0.0, Task::rigid("good", 1, 10.0), |_| Timeline::lasting(10.0));
    let report = Fleet::new(Cluster::single("H100", 1)).run(&Backfill, &mut site, &mut |_| {}).unwrap();
    assert_eq!(report.tasks[0].failure.as_deref(), Some("it panicked: no such file"));
    assert_eq!(report.tasks[1].ended, Some(10.0));
}

#[test]
fn a_task_waits_for_its_release() {
    let mut tasks = [plain(0.0, "later", 1, 5.0), plain(0.0, "now", 1, 5.0)];
    tasks[0].task.release = 20.0;
    let (_, events) = run(&Fleet::new(Cluster::single("H100", 1)), &Makespan::default(), &tasks);
    assert_eq!(starts(&events), [(1, 0.0), (0, 20.0)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_every_task_runs_once_and_to_its_end(workload in workload(25), threshold in 0.0..0.5) {
        let fleet = Fleet { threshold, ..Fleet::new(mixed_cluster()) };
        for scheduler in schedulers() {
            let (report, events) = run(&fleet, &*scheduler, &workload);
            let overtaken = follow(&events, &fleet.cluster);
            prop_assert_eq!(overtaken.len(), workload.len());
            // On the clock a task takes exactly as long as it does; in the site's order they have other numbers.
            let fails = workload.iter().filter(|task| task.fails).count() as u64;
            prop_assert_eq!((report.totals.finished, report.totals.failed), (workload.len() as u64 - fails, fails));
            let plans = events.iter().filter(|event| matches!(event.kind, EventKind::Replanned(_))).count();
            prop_assert_eq!(report.totals.replans, plans as u64);
        }
    }
}
