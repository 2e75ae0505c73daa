//! How long it takes to simulate 10,000 tasks with Poisson arrivals on 1,000 devices, by scheduler, and whether a plan
//! costs more the longer the history.
//!
//! `cargo bench -p alto-core --no-default-features --bench fleet -- [TASKS] [LOAD]`; one thread, in
//! seconds of CPU time, so that a busy machine counts as an idle one.

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

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<f64>().ok());
    // Cargo says so when it benches; as a test it only runs through.
    let most = if std::env::args().any(|argument| argument == "--bench") { 10_000.0 } else { 100.0 };
    let (tasks, load) = (numbers.next().unwrap_or(most) as usize, numbers.next().unwrap_or(0.9));
    let cluster = Cluster::default().with("H100", 8 * MACHINES, 8);
    let makespan = |steps| Makespan { steps, ..Makespan::default() };
    let schedulers: [(&str, Box<dyn Scheduler>); 7] = [
        ("first come, first served", Box::new(FirstComeFirstServed)),
        ("backfill", Box::new(Backfill)),
        ("shortest first", Box::new(ShortestFirst)),
        ("longest first", Box::new(LongestFirst)),
        ("makespan, no search", Box::new(makespan(0))),
        ("makespan, 20 steps", Box::new(makespan(20))),
        ("makespan, 100 steps", Box::new(makespan(100))),
    ];
    println!("{tasks} tasks on {} devices at load {load}", 8 * MACHINES);
    println!(
        "{:<26} {:>8} {:>8} {:>8} {:>10} {:>10} {:>8} {:>10} {:>10}",
        "scheduler", "bound", "seconds", "replans", "early ms", "late ms", "in use", "mean wait", "longest"
    );
    for (name, scheduler) in schedulers {
        for overtaking in [None, Some(50)] {
            let fleet = Fleet { overtaking, ..Fleet::new(cluster.clone()) };
            let (mut site, began, mut turns) = (site(tasks, load), ProcessTime::now(), vec![]);
            let report = fleet.run(&*scheduler, &mut site, &mut |event| {
                if matches!(event.kind, EventKind::Replanned(_)) {
                    turns.push(began.elapsed().as_secs_f64());
                }
            });
            let (report, seconds) = (report.expect("a run without faults"), began.elapsed().as_secs_f64());
            assert_eq!(report.totals.finished, tasks as u64);
            // Arrivals decide how many turns there are; the first fifth fills the cluster, the last empties it.
            let each = |from: f64, to: f64| {
                let at = |share: f64| (share * (turns.len() - 1) as f64) as usize;
                1e3 * (turns[at(to)] - turns[at(from)]) / (at(to) - at(from)) as f64
            };
            let totals = report.totals;
            println!(
                "{name:<26} {:>8} {seconds:>8.2} {:>8} {:>10.3} {:>10.3} {:>7.1}% {:>9.0}s {:>9.0}s",
                overtaking.map_or_else(|| "none".to_owned(), |bound| bound.to_string()),
                totals.replans,
                each(0.1, 0.2),
                each(0.8, 0.9),
                100.0 * totals.utilization,
                totals.mean_wait,
                totals.longest_wait
            );
        }
    }
}
