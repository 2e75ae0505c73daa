//! How long planning takes and how good the plans are, by number of tasks and devices.
//!
//! `cargo bench -p alto-sched --bench plan`. The first table is of the list schedules, each beside the time that sorting
//! as many keys takes in the same run; the second of the search, whose gap falls with its steps.

use std::hint::black_box;

use alto_sched::{Cluster, Makespan, Plan, Running, Scheduler, Snapshot, Task};
use cpu_time::ProcessTime;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// Tasks of 1 to 64 devices for one second to two days, spread evenly over the logarithms; the same in every run.
fn snapshot(tasks: usize, devices: u32) -> Snapshot {
    let mut state = 1_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    let widest = f64::from(devices.min(64)).log2();
    let waiting = (0..tasks).map(|index| {
        let width = 1 << (next() * (widest + 1.0)).floor().min(widest) as u32;
        Task::rigid(&format!("task-{index}"), width, 172_800.0_f64.powf(next()).round())
    });
    Snapshot { waiting: waiting.collect(), cluster: Cluster::single("H100", devices), ..Snapshot::default() }
}

fn checked(scheduler: &Makespan, snapshot: &Snapshot) -> Plan {
    let plan = scheduler.plan(snapshot).expect("a plan");
    plan.check(snapshot).expect("a good plan");
    plan
}

/// The least of several times, in seconds of CPU time: other processes can only add to it.
fn time<T>(mut work: impl FnMut() -> T) -> f64 {
    let once = |_| {
        let begin = ProcessTime::now();
        black_box(work());
        begin.elapsed().as_secs_f64()
    };
    (0..15).map(once).fold(f64::INFINITY, f64::min)
}

fn lists(c: &mut Criterion) {
    println!("{:>8} {:>8} {:>10} {:>12} {:>8}", "tasks", "devices", "CPU ms", "x sorting", "gap, %");
    let mut group = c.benchmark_group("list schedule");
    for (tasks, devices) in [(1_000, 100), (10_000, 1_000), (100_000, 4_096)] {
        let snapshot = snapshot(tasks, devices);
        let lists = Makespan { steps: 0, ..Makespan::default() };
        let plan = checked(&lists, &snapshot);
        let planning = time(|| lists.plan(&snapshot));
        let keys: Vec<f64> = snapshot.waiting.iter().map(|task| task.options[0].duration).collect();
        let sorting = time(|| {
            let mut keys = keys.clone();
            keys.sort_by(f64::total_cmp);
            keys
        });
        println!(
            "{tasks:>8} {devices:>8} {:>10.3} {:>12.1} {:>8.3}",
            planning * 1e3,
            planning / sorting,
            plan.gap() * 1e2
        );
        group.bench_function(BenchmarkId::from_parameter(format!("{tasks} on {devices}")), |b| {
            b.iter(|| lists.plan(&snapshot));
        });
    }
    group.finish();
}

fn search(c: &mut Criterion) {
    println!("{:>8} {:>8} {:>8} {:>8} {:>8}", "tasks", "devices", "steps", "gap, %", "proven");
    let mut group = c.benchmark_group("search");
    group.sample_size(10);
    for (tasks, devices) in [(10, 8), (20, 8), (50, 16), (200, 16), (500, 64)] {
        let snapshot = snapshot(tasks, devices);
        for steps in [0, 1_000, 10_000] {
            let search = Makespan { steps, ..Makespan::default() };
            let plan = checked(&search, &snapshot);
            println!("{tasks:>8} {devices:>8} {steps:>8} {:>8.3} {:>8}", plan.gap() * 1e2, plan.proven);
            group.bench_function(BenchmarkId::new(format!("{tasks} on {devices}"), steps), |b| {
                b.iter(|| search.plan(&snapshot));
            });
        }
    }
    group.finish();
}

/// A cluster as time goes by: at each event a task ends, early or late, another arrives, and all is planned again.
fn replanning(_: &mut Criterion) {
    let arrivals = snapshot(1_020, 16).waiting;
    let mut snapshot = Snapshot { cluster: Cluster::single("H100", 16), ..Snapshot::default() };
    snapshot.waiting = arrivals[..20].to_vec();
    let mut times: Vec<f64> = Vec::new();
    for (event, arrival) in arrivals[20..].iter().enumerate() {
        let begin = ProcessTime::now();
        let plan = Makespan::default().plan(&snapshot).expect("a plan");
        times.push(begin.elapsed().as_secs_f64());
        plan.check(&snapshot).expect("a good plan");
        snapshot = after(snapshot, &plan, event, arrival.clone());
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[(share * (times.len() - 1) as f64) as usize] * 1e3;
    println!(
        "replanning 20 waiting tasks, CPU ms: median {:.2}, 99th percentile {:.2}, most {:.2}",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

/// The snapshot at the next end of a running task; of those that wait, what was to start by then has started.
fn after(snapshot: Snapshot, plan: &Plan, event: usize, arrival: Task) -> Snapshot {
    let Snapshot { cluster, mut running, waiting, .. } = snapshot;
    let starts = plan.placements.iter().flatten().map(|placement| placement.start).fold(f64::INFINITY, f64::min);
    // Every third task ends at half its time, every fifth runs longer than expected.
    let ends = running.iter().map(|task| task.until).fold(f64::INFINITY, f64::min);
    let now = if ends.is_finite() { ends.max(starts) } else { starts + 1.0 };
    let (mut left, mut previous) = (Vec::new(), Vec::new());
    running.retain(|task| task.until > now);
    for (task, placement) in waiting.into_iter().zip(plan.placements.iter().flatten()) {
        let free = |device| !running.iter().any(|task| task.devices.contains(device));
        if placement.start <= now && placement.devices.iter().all(free) {
            let share = if event.is_multiple_of(3) {
                0.5
            } else if event.is_multiple_of(5) {
                1.3
            } else {
                1.0
            };
            let until = now + share * (placement.end - placement.start);
            running.push(Running { name: task.name, devices: placement.devices.clone(), until });
        } else {
            left.push(task);
            previous.push(Some(placement.clone()));
        }
    }
    left.push(arrival);
    previous.push(None);
    while left.len() < 20 {
        left.push(left[left.len() - 1].clone());
        previous.push(None);
    }
    Snapshot { cluster, now, running, waiting: left, previous, ..Snapshot::default() }
}

criterion_group!(benches, lists, search, replanning);
criterion_main!(benches);
