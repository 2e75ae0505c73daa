//! Plans the instances in a file: `cargo run --release -p alto-sched --example plan -- testdata/sched/rigid.json`.
//!
//! A JSON line for each on standard output, a summary on standard error.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use alto_sched::{
    Backfill, FirstComeFirstServed, Instance, LongestFirst, Makespan, Plan, PlanError, Scheduler, ShortestFirst,
    Snapshot,
};
use clap::{Parser, ValueEnum};
use cpu_time::ProcessTime;
use serde_json::json;

#[derive(Parser)]
struct Args {
    /// A JSON list of instances, as in testdata/sched.
    file: PathBuf,
    /// How long the search may take for each instance.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Seed of the search's random choices.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[arg(long, value_enum, default_value = "makespan")]
    scheduler: Name,
    /// Count seconds of this process's CPU time: on a busy machine the same search as on an idle one.
    #[arg(long)]
    cpu: bool,
    /// Draw each plan in text, on standard error.
    #[arg(long)]
    gantt: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    Fcfs,
    Backfill,
    Shortest,
    Longest,
    Makespan,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let text = fs::read_to_string(&args.file).map_err(|error| format!("{}: {error}", args.file.display()))?;
    let instances: Vec<Instance> = serde_json::from_str(&text)
        .map_err(|error| format!("{}: {error}, expected a list of instances", args.file.display()))?;
    let (mut proven, mut gaps) = (0, 0.0);
    for instance in &instances {
        let snapshot = instance.snapshot()?;
        let (plan, seconds) = plan(&args, &snapshot).map_err(|error| format!("{}: {error}", instance.name))?;
        let checked = plan.check(&snapshot).inspect_err(|error| eprintln!("{}: {error}", instance.name)).is_ok();
        let Plan { makespan, lower_bound, proven: is_proven, .. } = plan;
        println!(
            "{}",
            json!({
                "name": instance.name, "makespan": makespan, "lower_bound": lower_bound, "proven": is_proven,
                "seconds": seconds, "checked": checked,
            })
        );
        if args.gantt {
            draw(&plan, &snapshot);
        }
        proven += usize::from(is_proven);
        gaps += plan.gap();
    }
    let mean = 100.0 * gaps / instances.len().max(1) as f64;
    eprintln!("{} instances, {proven} proven optimal, mean gap to our own bounds {mean:.3}%", instances.len());
    Ok(())
}

/// The plan, and the seconds that it took.
fn plan(args: &Args, snapshot: &Snapshot) -> Result<(Plan, f64), PlanError> {
    let (wall, cpu) = (Instant::now(), ProcessTime::now());
    let spent = || if args.cpu { cpu.elapsed() } else { wall.elapsed() };
    let limit = Duration::try_from_secs_f64(args.seconds).unwrap_or(Duration::MAX);
    let search = Makespan { seed: args.seed, steps: u64::MAX, ..Makespan::default() };
    let plan = match args.scheduler {
        Name::Fcfs => FirstComeFirstServed.plan(snapshot)?,
        Name::Backfill => Backfill.plan(snapshot)?,
        Name::Shortest => ShortestFirst.plan(snapshot)?,
        Name::Longest => LongestFirst.plan(snapshot)?,
        Name::Makespan => search.plan_while(snapshot, &|| spent() < limit)?,
    };
    Ok((plan, spent().as_secs_f64()))
}

/// A row for each device, 100 columns from now to the end; each task is a letter.
fn draw(plan: &Plan, snapshot: &Snapshot) {
    let column = plan.makespan / 100.0;
    for node in &snapshot.cluster.nodes {
        for device in &node.devices {
            let mut row = ['.'; 100];
            for (task, placement) in plan.placements.iter().enumerate() {
                let Some(placement) = placement.as_ref().filter(|p| p.devices.contains(device)) else { continue };
                let at = |time: f64| (((time - snapshot.now) / column).round() as usize).min(row.len());
                let (from, to) = (at(placement.start), at(placement.end));
                row[from..to].fill(char::from(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[task % 52]));
            }
            eprintln!("{:>8} {device:>4} {}", node.kind, row.iter().collect::<String>());
        }
    }
}
