//! What planning again has won.

use alto_core::fleet::{Cause, Event, EventKind, Fleet, Replan};
use alto_sched::{Backfill, Choice, Cluster, FirstComeFirstServed, Makespan, Scheduler, ShortestFirst, Task};

use super::setup::{Submitted, plain, run};

/// The plan that was made at this time.
fn replan(fleet: &Fleet, scheduler: &dyn Scheduler, tasks: &[Submitted], at: f64) -> Replan {
    let (_, events) = run(fleet, scheduler, tasks);
    let plan = |event: Event| match event.kind {
        EventKind::Replanned(replan) if event.seconds == at => Some(replan),
        _ => None,
    };
    events.into_iter().find_map(plan).expect("a plan at this time")
}

fn numbers(replan: &Replan) -> (f64, f64, f64) {
    (replan.before, replan.after, replan.won())
}

#[test]
fn an_early_end_wins_what_another_place_does() {
    // The fourth was to follow the third on device 1, from 60 to 110. Device 0 is free at 20 instead of 100.
    let early = Submitted { factor: 0.2, ..plain(0.0, "a", 1, 100.0) };
    let tasks = [early, plain(0.0, "b", 1, 10.0), plain(0.0, "c", 1, 50.0), plain(0.0, "d", 1, 50.0)];
    let replan = replan(&Fleet::new(Cluster::single("H100", 2)), &Backfill, &tasks, 20.0);
    assert_eq!(replan.causes, [Cause::Ended { task: 0 }]);
    assert_eq!(numbers(&replan), (90.0, 50.0, 40.0));
    let words = "planned anew, since task 0 ended: 1 task moves, the last ends in 50.0 s, 40.0 s sooner than by the former plan";
    assert_eq!(replan.to_string(), words);
}

#[test]
fn a_late_end_makes_the_former_plan_late_too() {
    // At 2 it is known that device 0 is free at 50 instead of 10; the third was to follow there, and goes to device 1.
    let late = Submitted { factor: 5.0, known: 2.0 / 50.0, ..plain(0.0, "late", 1, 10.0) };
    let tasks = [late, plain(0.0, "b", 1, 12.0), plain(0.0, "c", 1, 5.0)];
    let replan = replan(&Fleet::new(Cluster::single("H100", 2)), &Backfill, &tasks, 2.0);
    assert_eq!(replan.causes, [Cause::Moved { task: 0, from: 10.0, to: 50.0 }]);
    assert_eq!(numbers(&replan), (53.0, 15.0, 38.0));
}

#[test]
fn who_comes_follows_behind_the_former_plan() {
    // Both devices are taken until 10 and then until 20; behind that, the new one ends at 40. It is better off beside.
    let tasks =
        [plain(0.0, "a", 2, 10.0), plain(0.0, "b", 1, 10.0), plain(0.0, "c", 1, 10.0), plain(1.0, "d", 1, 20.0)];
    let fleet = Fleet::new(Cluster::single("H100", 2));
    assert_eq!(numbers(&replan(&fleet, &Makespan::default(), &tasks, 1.0)), (39.0, 29.0, 10.0));
    assert_eq!(numbers(&replan(&fleet, &FirstComeFirstServed, &tasks, 1.0)), (39.0, 39.0, 0.0));
}

#[test]
fn who_comes_goes_where_it_ends_first() {
    // The A100 is free at once, and still the H100 is the sooner, at 10 + 20.
    let option = |kind: &str, duration| Choice { kind: Some(kind.to_owned()), width: 1, duration, memory: 0 };
    let task = Task { options: vec![option("H100", 20.0), option("A100", 40.0)], ..Task::rigid("b", 1, 1.0) };
    let tasks = [
        Submitted {
            task: Task { options: vec![option("H100", 10.0)], ..Task::rigid("a", 1, 1.0) },
            ..plain(0.0, "", 1, 1.0)
        },
        Submitted { at: 4.0, task, ..plain(0.0, "", 1, 1.0) },
    ];
    let fleet = Fleet::new(Cluster::default().with("H100", 1, 1).with("A100", 1, 1));
    assert_eq!(numbers(&replan(&fleet, &Makespan::default(), &tasks, 4.0)), (26.0, 26.0, 0.0));
}

#[test]
fn a_scheduler_with_other_aims_may_lose() {
    // Device 1 is free from 4 on. The short ones go first, and the long one doesn't start at once beside them.
    let tasks = [
        plain(0.0, "a", 2, 4.0),
        plain(1.0, "long", 1, 30.0),
        plain(2.0, "short", 1, 5.0),
        plain(2.0, "short", 1, 6.0),
    ];
    // Kept: long from 4 to 34, the short ones one after another on the other device until 15.
    let replan = replan(&Fleet::new(Cluster::single("H100", 2)), &ShortestFirst, &tasks, 2.0);
    assert_eq!(numbers(&replan), (32.0, 37.0, -5.0));
}

#[test]
fn a_release_holds_in_the_former_plan_too() {
    let mut later = plain(0.0, "later", 1, 5.0);
    later.task.release = 20.0;
    let tasks = [later, plain(3.0, "now", 1, 4.0)];
    let replan = replan(&Fleet::new(Cluster::single("H100", 1)), &Makespan::default(), &tasks, 3.0);
    // Behind it, the new one would end at 29.
    assert_eq!(numbers(&replan), (26.0, 22.0, 4.0));
}
