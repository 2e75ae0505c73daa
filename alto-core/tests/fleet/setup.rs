//! Workloads that the tests are made of.

use alto_core::fleet::{Event, EventKind, Fleet, Report, Timeline, Virtual};
use alto_sched::{
    Backfill, Choice, Cluster, FirstComeFirstServed, LongestFirst, Makespan, Scheduler, Second, ShortestFirst, Task,
};
use proptest::prelude::*;

/// A task as a virtual site gets it.
#[derive(Debug, Clone)]
pub(crate) struct Submitted {
    pub(crate) at: f64,
    pub(crate) task: Task,
    /// How long it takes, as a multiple of what its option says.
    pub(crate) factor: f64,
    /// When the truth becomes known, as a share of how long it takes; from 1 on never.
    pub(crate) known: f64,
    pub(crate) fails: bool,
}

/// A task of one option that takes as long as it says.
pub(crate) fn plain(at: f64, name: &str, width: u32, seconds: f64) -> Submitted {
    Submitted { at, task: Task::rigid(name, width, seconds), factor: 1.0, known: 1.0, fails: false }
}

/// A site with these tasks.
pub(crate) fn site(workload: &[Submitted]) -> Virtual<'static> {
    let mut site = Virtual::default();
    for Submitted { at, task, factor, known, fails } in workload.iter().cloned() {
        site.submit(at, task, move |placement| {
            let end = factor * (placement.end - placement.start);
            let error = fails.then(|| "it was to fail".to_owned());
            Timeline { expected: vec![(known * end, end)], end, error }
        });
    }
    site
}

/// Runs these tasks, and gives what happened.
pub(crate) fn run(fleet: &Fleet, scheduler: &dyn Scheduler, workload: &[Submitted]) -> (Report, Vec<Event>) {
    let mut events = vec![];
    let report = fleet.run(scheduler, &mut site(workload), &mut |event| events.push(event.clone()));
    (report.expect("a run without faults"), events)
}

/// The tasks in the order in which they started, with the times.
pub(crate) fn starts(events: &[Event]) -> Vec<(usize, f64)> {
    let start = |event: &Event| match event.kind {
        EventKind::Started { task, .. } => Some((task, event.seconds)),
        _ => None,
    };
    events.iter().filter_map(start).collect()
}

/// Every scheduler that ships, with a small budget.
pub(crate) fn schedulers() -> Vec<Box<dyn Scheduler>> {
    let makespan = Makespan { steps: 60, ..Makespan::default() };
    let weighted = Makespan { second: Second::WeightedCompletion, ..makespan.clone() };
    vec![
        Box::new(FirstComeFirstServed),
        Box::new(Backfill),
        Box::new(ShortestFirst),
        Box::new(LongestFirst),
        Box::new(makespan),
        Box::new(weighted),
    ]
}

/// Six devices of one kind and four of another, in two machines.
pub(crate) fn mixed_cluster() -> Cluster {
    Cluster::default().with("H100", 6, 6).with("A100", 4, 2)
}

fn option() -> impl Strategy<Value = Choice> {
    (0..3_u8, 1..=6_u32, 1..60_u32).prop_map(|(kind, width, duration)| {
        let (kind, most) = [(None, 6), (Some("H100"), 6), (Some("A100"), 2)][usize::from(kind)];
        Choice { kind: kind.map(str::to_owned), width: width.min(most), duration: f64::from(duration), memory: 0 }
    })
}

fn submitted() -> impl Strategy<Value = Submitted> {
    let ways = prop::collection::vec(option(), 1..=2);
    let release = prop_oneof![4 => Just(0.0), 1 => (0..100_u32).prop_map(f64::from)];
    let factor = prop_oneof![Just(1.0), 0.05..1.0, 1.0..2.0];
    let known = prop_oneof![Just(1.0), 0.0..1.0];
    (0..200_u32, ways, release, factor, known, prop::bool::weighted(0.1)).prop_map(
        |(at, options, release, factor, known, fails)| Submitted {
            at: f64::from(at) / 2.0,
            task: Task { name: "t".to_owned(), release, weight: 1.0, options },
            factor,
            known,
            fails,
        },
    )
}

/// Up to so many tasks for [`mixed_cluster`], which take longer or shorter than they say, or fail.
pub(crate) fn workload(most: usize) -> impl Strategy<Value = Vec<Submitted>> {
    prop::collection::vec(submitted(), 1..=most)
}
