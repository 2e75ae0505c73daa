//! How long it takes to simulate 10,000 tasks with Poisson arrivals on 1,000 devices, by scheduler, and what a plan costs
//! early and late in the run, beside how many tasks wait then: the history costs nothing, the queue does.
//!
//! `cargo bench -p alto-core --no-default-features --bench fleet -- [TASKS] [LOAD] [SCHEDULER]`; at a load of `inf` all
//! tasks come at once, and no plan is made of all of them. One thread, in seconds of CPU time, so that a busy machine
//! counts as an idle one.

use alto_core::fleet::{EventKind, Fleet, Timeline, Virtual};
use alto_sched::{Backfill, Cluster, FirstComeFirstServed, LongestFirst, Makespan, Scheduler, ShortestFirst, Task};
use cpu_time::ProcessTime;

/// Machines of eight devices each.
const MACHINES: u32 = 125;

/// Numbers in `0..1`, the same in every run.
fn numbers() -> impl FnMut() -> f64 {
    let mut state = 1_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    }
}

/// Tasks of 1, 2, 4 or 8 devices for 10 minutes to a day, spread evenly over the logarithms, that take half to all of the
/// time that they say, as is known half-way. They keep this share of the devices busy on average.
fn site(tasks: usize, load: f64) -> Virtual<'static> {
    let (mut site, mut next, mut at) = (Virtual::default(), numbers(), 0.0);
    let (mut arrivals, mut work) = (vec![], 0.0);
    for _ in 0..tasks {
        let (width, seconds) = (1 << (4.0 * next()) as u32, 600.0 * 144_f64.powf(next()));
        let share = 0.5 + 0.5 * next();
        work += f64::from(width) * seconds * share;
        // The distance to the next arrival, for a mean of 1.
        at -= (1.0 - next()).ln();
        arrivals.push((at, width, seconds, share));
    }
    let mean = work / tasks as f64 / (load * f64::from(8 * MACHINES));
    for (at, width, seconds, share) in arrivals {
        site.submit(mean * at, Task::rigid("", width, seconds), move |_| {
            let end = share * seconds;
            Timeline { expected: vec![(0.5 * end, end)], end, error: None }
        });
    }
    site
}

/// A span of a run, from this share of its plans to that.
struct Span {
    /// Milliseconds from one plan to the next.
    cost: f64,
    /// How many tasks wait after a plan, on average.
    waiting: f64,
}

impl Span {
    /// `plans` tells when each was made, in seconds, and how many waited then.
    fn new(plans: &[(f64, usize)], from: f64, to: f64) -> Self {
        let at = |share: f64| (share * (plans.len() - 1) as f64) as usize;
        let (plans, count) = (&plans[at(from)..=at(to)], (at(to) - at(from)) as f64);
        let waiting = plans[1..].iter().map(|plan| plan.1 as f64).sum::<f64>() / count;
        Self { cost: 1e3 * (plans[plans.len() - 1].0 - plans[0].0) / count, waiting }
    }
}

fn main() {
    let arguments = || std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let mut numbers = arguments().filter_map(|argument| argument.parse::<f64>().ok());
    let only = arguments().find(|argument| argument.parse::<f64>().is_err()).unwrap_or_default();
    // Cargo says so when it benches; as a test it only runs through.
    let most = if std::env::args().any(|argument| argument == "--bench") { 10_000.0 } else { 100.0 };
    let (tasks, load) = (numbers.next().unwrap_or(most) as usize, numbers.next().unwrap_or(0.9));
    let cluster = Cluster::default().with("H100", 8 * MACHINES, 8);
    let makespan = |steps| Makespan { steps, ..Makespan::default() };
    let schedulers: [(&str, Box<dyn Scheduler>); 6] = [
        ("first come, first served", Box::new(FirstComeFirstServed)),
        ("backfill", Box::new(Backfill)),
        ("shortest first", Box::new(ShortestFirst)),
        ("longest first", Box::new(LongestFirst)),
        ("makespan, no search", Box::new(makespan(0))),
        ("makespan, 100 steps", Box::new(makespan(100))),
    ];
    println!("{tasks} tasks on {} devices at load {load}", 8 * MACHINES);
    println!(
        "{:<25}{:>10}{:>8}{:>9}{:>8} {:>16} {:>16}{:>8}{:>9}{:>9}{:>10}",
        "scheduler",
        "overtaking",
        "planned",
        "seconds",
        "plans",
        "early ms @ queue",
        "late ms @ queue",
        "in use",
        "wait h",
        "most h",
        "makespan h"
    );
    for (name, scheduler) in schedulers.into_iter().filter(|(name, _)| name.contains(&only)) {
        let all = [(None, None), (Some(50), None), (None, Some(100)), (Some(50), Some(100))];
        for &(overtaking, planned) in if load.is_finite() { &all[..3] } else { &all[2..] } {
            let fleet = Fleet { overtaking, planned, ..Fleet::new(cluster.clone()) };
            let (mut site, began, mut waiting, mut plans) = (site(tasks, load), ProcessTime::now(), 0, vec![]);
            let report = fleet.run(&*scheduler, &mut site, &mut |event| match event.kind {
                EventKind::Arrived { .. } => waiting += 1,
                EventKind::Started { .. } => waiting -= 1,
                EventKind::Replanned(_) => plans.push((began.elapsed().as_secs_f64(), waiting)),
                _ => {}
            });
            let (totals, seconds) = (report.expect("a run without faults").totals, began.elapsed().as_secs_f64());
            assert_eq!(totals.finished, tasks as u64);
            // The first plans fill the cluster, the last empty it.
            let [early, late] = [Span::new(&plans, 0.05, 0.1), Span::new(&plans, 0.8, 0.9)];
            let number = |bound: Option<u32>| bound.map_or_else(|| "all".to_owned(), |bound| bound.to_string());
            println!(
                "{name:<25}{:>10}{:>8}{seconds:>9.2}{:>8} {:>9.3} @{:>5.0} {:>9.3} @{:>5.0}{:>7.1}%{:>9.2}{:>9.2}{:>10.1}",
                number(overtaking),
                number(planned.map(|count| count as u32)),
                plans.len(),
                early.cost,
                early.waiting,
                late.cost,
                late.waiting,
                100.0 * totals.utilization,
                totals.mean_wait / 3600.0,
                totals.longest_wait / 3600.0,
                totals.makespan / 3600.0
            );
        }
    }
}
