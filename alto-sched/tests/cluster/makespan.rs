//! The search: never over the least makespan where that is known, never over a list schedule.

use alto_sched::{Backfill, Choice, Cluster, FirstComeFirstServed, Makespan, Scheduler, Snapshot, Task};
use proptest::prelude::*;

use crate::lists::lists;
use crate::{brute_force, random};

fn steps(steps: u64) -> Makespan {
    Makespan { steps, ..Makespan::default() }
}

/// ALTO (arXiv:2604.05426), the example of its scheduling section.
#[test]
fn the_papers_example_is_planned_and_replanned() {
    let hour = 3600.0;
    let tasks = [(4, 5.0), (2, 3.0), (1, 2.0), (1, 2.0), (1, 1.0)];
    let waiting = tasks.iter().map(|&(width, hours)| Task::rigid("t", width, hours * hour)).collect();
    let mut snapshot = Snapshot { cluster: Cluster::single("H100", 8), waiting, ..Snapshot::default() };
    let plan = Makespan::default().plan(&snapshot).unwrap();
    plan.check(&snapshot).unwrap();
    assert_eq!((plan.makespan, plan.proven), (5.0 * hour, true));

    // All go as planned, but the first ends after 3 hours, when the others are done too.
    let ends: Vec<f64> = plan.placements.iter().flatten().map(|placement| placement.end).collect();
    assert_eq!(ends[1..].iter().copied().fold(3.0 * hour, f64::max), 3.0 * hour);

    // A task of 4 devices that arrives then starts then.
    snapshot = Snapshot { now: 3.0 * hour, waiting: vec![Task::rigid("new", 4, hour)], ..snapshot };
    let plan = Makespan::default().plan(&snapshot).unwrap();
    assert_eq!(plan.placements[0].as_ref().map(|placement| placement.start), Some(3.0 * hour));
}

#[test]
fn a_task_beside_which_nothing_fits_runs_alone() {
    // 7 + 2 > 8, so both 7 run alone; without seeing that, the best bound is 40.
    let tasks = [(7, 10.0), (7, 10.0), (2, 20.0), (2, 20.0)];
    let waiting = tasks.iter().map(|&(width, seconds)| Task::rigid("t", width, seconds)).collect();
    let snapshot = Snapshot { cluster: Cluster::single("H100", 8), waiting, ..Snapshot::default() };
    let plan = steps(0).plan(&snapshot).unwrap();
    plan.check(&snapshot).unwrap();
    assert_eq!((plan.makespan, plan.lower_bound), (40.0, 40.0));
}

/// So many cases, or those that the environment asks for.
fn cases(default: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default)
}

fn is_least(snapshot: &Snapshot) -> Result<(), TestCaseError> {
    let plan = steps(20_000).plan(snapshot).expect("a plan");
    prop_assert_eq!(plan.check(snapshot), Ok(()));
    prop_assert_eq!((plan.makespan, plan.proven), (brute_force::makespan(snapshot), true));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(300)))]

    #[test]
    fn it_is_as_good_as_brute_force(snapshot in random::snapshot(5, 9)) {
        is_least(&snapshot)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(2000)))]

    #[test]
    fn it_is_as_good_as_brute_force_for_rigid_tasks(snapshot in random::rigid(6, 12, 12)) {
        is_least(&snapshot)?;
    }
}

/// Tasks whose least makespan is known, by width and seconds. The search once held that some that run beside the longest
/// tasks left must also run beside the others.
#[test]
fn no_proof_is_wrong_where_long_tasks_must_overlap() {
    let ones = |lengths: &[u32]| lengths.iter().map(|&length| (1, length)).collect::<Vec<(u32, u32)>>();
    let graham = ones(&[11, 11, 10, 10, 9, 9, 8, 8, 7, 7, 6, 6, 6]);
    let cases = [(7, vec![(1, 4), (3, 2), (4, 7), (4, 10), (3, 9), (3, 10)], 20), (6, graham, 18)];
    for (devices, tasks, least) in cases {
        let waiting = tasks.iter().map(|&(width, seconds)| Task::rigid("t", width, f64::from(seconds))).collect();
        let snapshot = Snapshot { cluster: Cluster::single("H100", devices), waiting, ..Snapshot::default() };
        for seed in 0..3 {
            let plan = Makespan { seed, steps: 20_000, ..Makespan::default() }.plan(&snapshot).unwrap();
            plan.check(&snapshot).unwrap();
            assert_eq!((plan.makespan, plan.proven), (f64::from(least), true));
        }
    }
}

/// Twelve tasks of eight ways each: seconds on one H100 and on one A100, and less on 2, 4 or 8 of them. A search that changes
/// modes one at a time stays three percent or more above.
#[test]
fn tasks_with_many_ways_to_run_find_the_right_ones() {
    let alone = [
        (39523, 79113),
        (27456, 54251),
        (3376, 6972),
        (55238, 108435),
        (32022, 66642),
        (9324, 19887),
        (28503, 62651),
        (30005, 62307),
        (4754, 9898),
        (12670, 27048),
        (3186, 6195),
        (12520, 24490),
    ];
    let options = |(h100, a100): (u32, u32)| {
        let kinds = [("H100", h100), ("A100", a100)].into_iter();
        let ways = [(1, 100), (2, 184), (4, 332), (8, 576)];
        let choice = |kind: &str, seconds: u32, (width, speed): (u32, u32)| {
            let duration = f64::from(seconds * 100 / speed);
            Choice { kind: Some(kind.to_owned()), width, duration, memory: 0 }
        };
        kinds.flat_map(|(kind, seconds)| ways.map(|way| choice(kind, seconds, way))).collect()
    };
    let task = |pair| Task { options: options(pair), ..Task::rigid("t", 1, 1.0) };
    let cluster = Cluster::default().with("H100", 8, 8).with("A100", 8, 8);
    let snapshot = Snapshot { cluster, waiting: alone.map(task).to_vec(), ..Snapshot::default() };
    for seed in 0..3 {
        let plan = Makespan { seed, steps: 100_000, ..Makespan::default() }.plan(&snapshot).unwrap();
        plan.check(&snapshot).unwrap();
        assert_eq!(plan.makespan, 25_222.0, "seed {seed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn it_is_as_good_as_brute_force_for_six_mixed_tasks(snapshot in random::snapshot(6, 9)) {
        is_least(&snapshot)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(128)))]

    #[test]
    fn it_is_never_worse_than_a_list_schedule(snapshot in random::snapshot(20, 50), some in 0..50_u64) {
        let plan = steps(some).plan(&snapshot).unwrap();
        prop_assert_eq!(plan.check(&snapshot), Ok(()));
        for list in lists() {
            let other = list.plan(&snapshot).unwrap();
            prop_assert!(plan.makespan <= other.makespan, "{} against {} of {:?}", plan.makespan, other.makespan, list);
        }
    }

    #[test]
    fn the_same_seed_and_steps_give_the_same_plan(snapshot in random::snapshot(12, 50), seed in any::<u64>()) {
        let scheduler = Makespan { seed, steps: 300, ..Makespan::default() };
        prop_assert_eq!(scheduler.plan(&snapshot), scheduler.plan(&snapshot));
    }

    #[test]
    fn another_order_of_the_input_gives_the_same_makespan(
        (snapshot, shuffled) in random::snapshot(12, 50).prop_flat_map(|snapshot| {
            let orders = (
                Just(snapshot.waiting.clone()).prop_shuffle(),
                Just(snapshot.cluster.nodes.clone()).prop_shuffle(),
                Just(snapshot.running.clone()).prop_shuffle(),
            );
            (Just(snapshot), orders)
        }),
    ) {
        let (waiting, nodes, running) = shuffled;
        let other = Snapshot { waiting, cluster: Cluster { nodes }, running, ..snapshot.clone() };
        let search = Makespan::default();
        let (one, two) = (search.plan(&snapshot).unwrap(), search.plan(&other).unwrap());
        // Only a list schedule in the order of arrival may be better than what the search finds, in whichever order.
        let in_order = |snapshot| {
            let plans = [FirstComeFirstServed.plan(snapshot).unwrap(), Backfill.plan(snapshot).unwrap()];
            plans.into_iter().map(|plan| plan.makespan).fold(f64::INFINITY, f64::min)
        };
        let (better, its) = if one.makespan < two.makespan { (&one, &snapshot) } else { (&two, &other) };
        prop_assert!(
            one.makespan == two.makespan || better.makespan == in_order(its),
            "{} and {}", one.makespan, two.makespan
        );
        prop_assert_eq!(one.lower_bound, two.lower_bound);
    }
}
