//! How the search fares on recorded instances, beside what one CP-SAT worker reached in the same time.
//!
//! `cargo bench -p alto-sched --bench instances [-- --seeds 10]` (about ten minutes): each instance of
//! `testdata/sched/rigid.json` for 1 and for 0.1 seconds of CPU time, each of `heterogeneous.json` for 10, one thread,
//! every plan checked. With `--features exact` the constraint engine helps.

use std::fs;
use std::path::Path;
use std::time::Duration;

use alto_sched::{Instance, Makespan};
use clap::Parser;
use cpu_time::ProcessTime;
use serde::Deserialize;

#[derive(Parser)]
struct Args {
    #[arg(long, default_value_t = 10)]
    seeds: u64,
    /// Cargo says so when it benches; without it each instance is only planned once and checked.
    #[arg(long)]
    bench: bool,
}

/// An instance, and the makespans of CP-SAT after 0.1, 1 and 10 seconds of wall time.
#[derive(Deserialize)]
struct Recorded {
    #[serde(flatten)]
    instance: Instance,
    #[serde(default)]
    cp_sat_single_worker: CpSat,
}

#[derive(Default, Deserialize)]
struct CpSat {
    #[serde(rename = "0.1")]
    tenth: Option<f64>,
    #[serde(rename = "1")]
    one: Option<f64>,
}

/// What came of one instance and seed.
struct Run {
    makespan: f64,
    proven: bool,
    seconds: f64,
}

fn main() {
    let args = Args::parse();
    let (rigid, mixed) = (read("rigid"), read("heterogeneous"));
    if !args.bench {
        for recorded in rigid.iter().chain(&mixed) {
            run(&recorded.instance, 0, 100, Duration::MAX);
        }
        return;
    }
    println!("{} seeds each, CPU seconds, one thread", args.seeds);
    let second = Duration::from_secs(1);
    table("rigid, 1 s, against CP-SAT after 1 s", &rigid, args.seeds, second, |r| r.cp_sat_single_worker.one);
    table("rigid, 0.1 s, against CP-SAT after 0.1 s", &rigid, args.seeds, second / 10, |r| {
        r.cp_sat_single_worker.tenth
    });
    table("mixed, 10 s, against the best known", &mixed, args.seeds, second * 10, |r| r.instance.best_known);
}

fn read(name: &str) -> Vec<Recorded> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/sched").join(name).with_extension("json");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn run(instance: &Instance, seed: u64, steps: u64, time: Duration) -> Run {
    let snapshot = instance.snapshot().expect("a recorded instance");
    let begin = ProcessTime::now();
    let search = Makespan { seed, steps, ..Makespan::default() };
    let plan = search.plan_while(&snapshot, &|| begin.elapsed() < time).expect("a plan");
    let seconds = begin.elapsed().as_secs_f64();
    plan.check(&snapshot).expect("a good plan");
    Run { makespan: plan.makespan, proven: plan.proven, seconds }
}

fn table(title: &str, all: &[Recorded], seeds: u64, time: Duration, other: impl Fn(&Recorded) -> Option<f64>) {
    println!("\n{title}");
    println!(
        "{:<26} {:>6} {:>14} {:>9} {:>9} {:>7} {:>9}",
        "instance", "tasks", "other", "worst", "bound", "proven", "slowest"
    );
    let (mut over, mut proven, mut excesses) = (0, 0, vec![]);
    for recorded in all {
        let instance = &recorded.instance;
        let runs: Vec<Run> = (0..seeds).map(|seed| run(instance, seed, u64::MAX, time)).collect();
        let worst = runs.iter().map(|run| run.makespan).fold(0.0, f64::max);
        let slowest = runs.iter().map(|run| run.seconds).fold(0.0, f64::max);
        // What found nothing is beaten by anything.
        let other = other(recorded).unwrap_or(f64::INFINITY);
        let bound = instance.lower_bound.unwrap_or(f64::NAN);
        let times = runs.iter().filter(|run| run.proven).count();
        over += usize::from(worst > other);
        proven += usize::from(times == runs.len());
        if instance.tasks.len() >= 100 {
            excesses.push(runs.iter().map(|run| run.makespan / bound - 1.0).sum::<f64>() / runs.len() as f64);
        }
        println!(
            "{:<26} {:>6} {other:>14} {:>8.3}% {:>8.3}% {times:>3}/{:<3} {slowest:>8.4}s",
            instance.name,
            instance.tasks.len(),
            100.0 * (worst / other - 1.0),
            100.0 * (worst / bound - 1.0),
            runs.len(),
        );
    }
    println!("above the other with any seed: {over}; proven with every seed: {proven} of {}", all.len());
    if !excesses.is_empty() {
        let mean = excesses.iter().sum::<f64>() / excesses.len() as f64;
        println!("of 100 tasks and more: mean gap to the recorded bound {:.4}%", 100.0 * mean);
    }
}
