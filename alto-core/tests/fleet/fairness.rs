//! A bound on how often a task that waits may be overtaken.

use alto_core::fleet::{Cause, EventKind, Fleet};
use alto_sched::{Cluster, ShortestFirst};
use proptest::prelude::*;

use super::follow::follow;
use super::setup::{mixed_cluster, plain, run, schedulers, starts, workload};

/// A long task, and ten short ones that come one after another, on one device.
fn stream() -> Vec<super::setup::Submitted> {
    let short = (0..10).map(|index| plain(f64::from(index) * 4.0, "short", 1, 5.0));
    // It comes second, when the first short one has the device.
    let mut tasks: Vec<_> = short.collect();
    tasks.insert(1, plain(1.0, "long", 1, 50.0));
    tasks
}

#[test]
fn without_a_bound_a_stream_of_short_tasks_starves_a_long_one() {
    let (report, events) = run(&Fleet::new(Cluster::single("H100", 1)), &ShortestFirst, &stream());
    assert_eq!(report.tasks[1].overtaken, 9);
    assert_eq!(follow(&events, &report.fleet.cluster)[&1], 9);
}

#[test]
fn with_a_bound_it_starts_after_as_many_as_that() {
    for bound in 0..10 {
        let fleet = Fleet { overtaking: Some(bound), ..Fleet::new(Cluster::single("H100", 1)) };
        let (report, events) = run(&fleet, &ShortestFirst, &stream());
        assert_eq!(report.tasks[1].overtaken, bound.min(9), "bound {bound}");
        let place = starts(&events).iter().position(|start| start.0 == 1);
        assert_eq!(place, Some(1 + bound.min(9) as usize), "bound {bound}");
        follow(&events, &fleet.cluster);
    }
}

#[test]
fn who_may_be_overtaken_no_more_is_named() {
    let fleet = Fleet { overtaking: Some(2), ..Fleet::new(Cluster::single("H100", 1)) };
    let mut tasks = vec![plain(0.0, "first", 1, 10.0), plain(1.0, "long", 1, 50.0)];
    tasks.extend((2..5).map(|at| plain(f64::from(at), "short", 1, 3.0 + f64::from(at))));
    let (_, events) = run(&fleet, &ShortestFirst, &tasks);
    let causes = |at: f64| {
        let planned = events.iter().filter(|event| event.seconds == at);
        let causes = planned.filter_map(|event| match &event.kind {
            EventKind::Replanned(replan) => Some(replan.causes.clone()),
            _ => None,
        });
        causes.flatten().collect::<Vec<_>>()
    };
    assert_eq!(causes(10.0), [Cause::Ended { task: 0 }]);
    assert_eq!(causes(15.0), [Cause::Ended { task: 2 }, Cause::Held { task: 1 }]);
    assert_eq!(causes(21.0), [Cause::Ended { task: 3 }, Cause::Passed { task: 1 }]);
}

#[test]
fn with_a_bound_of_none_all_start_in_the_order_in_which_they_come() {
    let workload: Vec<_> =
        (0..40).map(|index| plain(f64::from(index / 3), "t", 1 + index % 5, f64::from(1 + 7 * index % 13))).collect();
    let fleet = Fleet { overtaking: Some(0), ..Fleet::new(Cluster::single("H100", 6)) };
    for scheduler in schedulers() {
        let (_, events) = run(&fleet, &*scheduler, &workload);
        let order: Vec<usize> = starts(&events).into_iter().map(|start| start.0).collect();
        assert_eq!(order, (0..40).collect::<Vec<_>>(), "{scheduler:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_task_is_overtaken_more_often_than_the_bound_says(workload in workload(30), bound in 0..5_u32) {
        let fleet = Fleet { overtaking: Some(bound), ..Fleet::new(mixed_cluster()) };
        for scheduler in schedulers() {
            let (report, events) = run(&fleet, &*scheduler, &workload);
            let overtaken = follow(&events, &fleet.cluster);
            prop_assert!(overtaken.values().all(|&count| count <= bound), "{:?}: {:?}", scheduler, overtaken);
            for (task, count) in overtaken {
                prop_assert_eq!(report.tasks[task].overtaken, count);
            }
        }
    }

    #[test]
    fn a_bound_that_nobody_reaches_changes_nothing(workload in workload(12)) {
        let fleet = Fleet::new(mixed_cluster());
        let bound = Fleet { overtaking: Some(12), ..fleet.clone() };
        for scheduler in schedulers() {
            prop_assert_eq!(run(&fleet, &*scheduler, &workload).1, run(&bound, &*scheduler, &workload).1);
        }
    }
}

#[test]
fn without_a_bound_random_workloads_pass_the_bounds_that_are_tested() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    for scheduler in schedulers() {
        // It needs no bound.
        let is_fair = format!("{scheduler:?}") == "FirstComeFirstServed";
        let most = (0..30).filter_map(|_| {
            let workload = workload(30).new_tree(&mut runner).expect("a workload").current();
            let (_, events) = run(&Fleet::new(mixed_cluster()), &*scheduler, &workload);
            follow(&events, &mixed_cluster()).into_values().max()
        });
        assert!(is_fair || most.max() > Some(4), "{scheduler:?}");
    }
}
