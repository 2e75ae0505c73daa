//! What is promised holds whatever comes: odd times, odd expectations, odd schedulers.

use alto_core::fleet::{Event, Fleet, Replayed, Report, Timeline, Totals, Virtual};
use alto_sched::{
    Backfill, Choice, Cluster, FirstComeFirstServed, LongestFirst, Makespan, Scheduler, Second, ShortestFirst, Task,
};
use proptest::prelude::*;

use super::checker::{Promise, check};
use super::hostile::Whimsical;

#[derive(Debug, Clone)]
struct Coming {
    at: f64,
    task: Task,
    timeline: Timeline,
    panics: bool,
}

impl Coming {
    /// Whether it may bring others near the latest time that can be planned.
    fn is_huge(&self) -> bool {
        let times =
            self.task.options.iter().map(|option| option.duration).chain([self.task.release, self.timeline.end]);
        times.chain(self.timeline.expected.iter().map(|expected| expected.1)).any(|time| time > 1e6)
    }
}

/// Whole seconds, so that much comes together; or whatever.
fn time(most: u32) -> impl Strategy<Value = f64> {
    prop_oneof![6 => (0..most).prop_map(f64::from), 2 => 0.0..f64::from(most), 1 => (0..9_u32).prop_map(|n| 1.0 + f64::from(n) * 4e-7)]
}

/// What is no time, or hardly one.
fn odd() -> impl Strategy<Value = f64> {
    let odd = [0.0, -5.0, 1e-7, 1e-6, 1.4e-6, 1e5, 1e9, 2e9, 3e9, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    (0..odd.len()).prop_map(move |index| odd[index])
}

fn timeline(oddly: bool) -> impl Strategy<Value = Timeline> {
    let or_odd = move || prop_oneof![12 => time(40), u32::from(oddly) => odd()];
    let end = prop_oneof![9 => time(30), u32::from(oddly) => (0..4_u32).prop_map(|n| f64::from(n) * 5e-7), u32::from(oddly) => odd()];
    let fails = prop::option::weighted(0.1, Just("it was to fail".to_owned()));
    (prop::collection::vec((or_odd(), or_odd()), 0..5), end, fails).prop_map(|(expected, end, error)| Timeline {
        expected,
        end,
        error,
    })
}

fn choice() -> impl Strategy<Value = Choice> {
    let kind = prop_oneof![6 => Just(None), 4 => Just(Some("H100")), 4 => Just(Some("A100")), 1 => Just(Some("B200"))];
    let width = prop_oneof![20 => 1..=2_u32, 10 => 3..=4_u32, 1 => Just(0_u32), 1 => Just(7)];
    let duration = prop_oneof![30 => (1..25_u32).prop_map(f64::from), 10 => 0.001..20.0, 1 => odd()];
    (kind, width, duration).prop_map(|(kind, width, duration)| Choice {
        kind: kind.map(str::to_owned),
        width,
        duration,
        memory: 0,
    })
}

fn coming() -> impl Strategy<Value = Coming> {
    let release = prop_oneof![12 => Just(0.0), 6 => time(60), 1 => odd()];
    let options = prop::collection::vec(choice(), 1..=3);
    let panics = prop::bool::weighted(0.03);
    (time(40), release, options, 0..4_u32, timeline(true), panics).prop_map(
        |(at, release, options, weight, timeline, panics)| Coming {
            at,
            task: Task { name: "t".into(), release, weight: f64::from(weight), options },
            timeline,
            panics,
        },
    )
}

/// Tasks of one option that any device suits.
fn plain() -> impl Strategy<Value = Coming> {
    let release = prop_oneof![3 => Just(0.0), 1 => (0..60_u32).prop_map(f64::from)];
    ((0..40_u32).prop_map(f64::from), release, 1..=3_u32, 1..25_u32, timeline(false)).prop_map(
        |(at, release, width, duration, timeline)| Coming {
            at,
            task: Task { release, ..Task::rigid("t", width, f64::from(duration)) },
            timeline,
            panics: false,
        },
    )
}

fn cluster() -> impl Strategy<Value = Cluster> {
    prop_oneof![
        Just(Cluster::single("H100", 4)),
        Just(Cluster::default().with("H100", 4, 2).with("A100", 3, 3)),
        Just(Cluster::default().with("A100", 1, 1).with("H100", 6, 4)),
    ]
}

fn fleet(cluster: impl Strategy<Value = Cluster>) -> impl Strategy<Value = Fleet> {
    let bound = prop_oneof![Just(None), (0..4_u32).prop_map(Some)];
    let threshold = prop_oneof![Just(0.1), Just(0.0), Just(0.5), Just(20.0)];
    let planned = prop_oneof![Just(None), (1..6_usize).prop_map(Some)];
    (cluster, bound, threshold, planned).prop_map(|(cluster, overtaking, threshold, planned)| Fleet {
        cluster,
        threshold,
        overtaking,
        planned,
        skip_bad: true,
    })
}

fn site(tasks: &[Coming]) -> Virtual<'_> {
    let mut site = Virtual::default();
    for Coming { at, task, timeline, panics } in tasks {
        site.submit(*at, task.clone(), move |_| {
            assert!(!panics, "it was to panic");
            timeline.clone()
        });
    }
    site
}

fn run(fleet: &Fleet, scheduler: &dyn Scheduler, tasks: &[Coming]) -> (Report, Vec<Event>) {
    let mut events: Vec<Event> = vec![];
    let report = fleet.run(scheduler, &mut site(tasks), &mut |event| {
        assert!(events.len() < 20_000, "it never ends: {:#?}", &events[19_000..19_050]);
        events.push(event.clone());
    });
    (report.expect("a run without faults"), events)
}

/// Every way out of a log gives the same log: out of memory, out of JSON, and out of its first part.
fn check_replay(fleet: &Fleet, scheduler: &dyn Scheduler, report: &Report, log: &[Event], cut: usize) {
    let text = serde_json::to_string(log).expect("JSON");
    let stored: Vec<Event> = serde_json::from_str(&text).expect("the log again");
    assert_eq!(stored, log);
    let mut again = vec![];
    let replayed = fleet
        .run(scheduler, &mut Replayed::new(stored), &mut |event| again.push(event.clone()))
        .expect("a replay without faults");
    assert_eq!(again, log);
    assert_eq!(replayed.tasks, report.tasks);
    let cut = &log[..cut % (log.len() + 1)];
    check_part(fleet, scheduler, cut);
    let mut again = vec![];
    let _ = fleet.run(scheduler, &mut Replayed::new(cut.to_vec()), &mut |event| again.push(event.clone()));
    assert!(again.len() >= cut.len() && again[..cut.len()] == *cut, "a log cut after {} events", cut.len());
}

/// The report of the first events counts every task once, and what it says is in the range that it promises.
fn check_part(fleet: &Fleet, scheduler: &dyn Scheduler, cut: &[Event]) {
    let report = Report::from_events(fleet, scheduler, cut).expect("events in order");
    let Totals { finished, failed, refused, unfinished, makespan, utilization, mean_wait, longest_wait, .. } =
        report.totals;
    assert_eq!(finished + failed + refused + unfinished, report.tasks.len() as u64, "{report:?}");
    assert!(makespan >= 0.0 && (0.0..=1.0 + 1e-9).contains(&utilization), "{:?}", report.totals);
    assert!((0.0..=longest_wait + 1e-9).contains(&mean_wait), "{:?}", report.totals);
    let text = serde_json::to_string(&report).expect("JSON");
    assert_eq!(serde_json::from_str::<Report>(&text).expect("the report again"), report);
}

fn shipped() -> Vec<(Promise, Box<dyn Scheduler>)> {
    let makespan = Makespan { steps: 40, ..Makespan::default() };
    let weighted = Makespan { second: Second::WeightedCompletion, ..makespan.clone() };
    vec![
        (Promise::InOrder, Box::new(FirstComeFirstServed)),
        (Promise::Busy, Box::new(Backfill)),
        (Promise::Busy, Box::new(ShortestFirst)),
        (Promise::Busy, Box::new(LongestFirst)),
        (Promise::None, Box::new(makespan)),
        (Promise::None, Box::new(weighted)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn odd_tasks_under_every_scheduler(
        fleet in fleet(cluster()), tasks in prop::collection::vec(coming(), 0..14), cut in 0..1000_usize,
    ) {
        for (promise, scheduler) in shipped() {
            // Near the latest time there is, what still ends by then goes first.
            let in_order = promise == Promise::InOrder && !tasks.iter().any(Coming::is_huge);
            let promise = if in_order { promise } else { Promise::None };
            let (report, log) = run(&fleet, &*scheduler, &tasks);
            check(&fleet, promise, true, &log, &report);
            check_replay(&fleet, &*scheduler, &report, &log, cut);
        }
    }

    #[test]
    fn plain_tasks_leave_no_device_idle(
        fleet in fleet(prop_oneof![Just(Cluster::single("H100", 4)), Just(Cluster::default().with("H100", 8, 4))]),
        tasks in prop::collection::vec(plain(), 0..14),
        cut in 0..1000_usize,
    ) {
        for (promise, scheduler) in shipped() {
            let (report, log) = run(&fleet, &*scheduler, &tasks);
            check(&fleet, promise, true, &log, &report);
            check_replay(&fleet, &*scheduler, &report, &log, cut);
        }
    }

    #[test]
    fn odd_tasks_under_odd_schedulers(
        fleet in fleet(cluster()),
        tasks in prop::collection::vec(coming(), 0..14),
        cut in 0..1000_usize,
        (seed, idle, reversed) in (any::<u64>(), prop_oneof![Just(0.0), Just(3.0), Just(1e5)], any::<bool>()),
        beside in prop_oneof![Just(0.0), Just(4e-7), Just(-4e-7)],
    ) {
        // No such plan knows the latest time there is.
        let tasks: Vec<Coming> = tasks.into_iter().filter(|task| !task.is_huge()).collect();
        let scheduler = Whimsical { seed, idle, reversed, beside };
        let (report, log) = run(&fleet, &scheduler, &tasks);
        check(&fleet, Promise::None, beside == 0.0, &log, &report);
        check_replay(&fleet, &scheduler, &report, &log, cut);
    }
}
