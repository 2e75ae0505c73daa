//! Plans the instances in a file: `cargo run --release -p alto-sched --example plan -- testdata/sched/rigid.json`.
//!
//! A JSON line for each on standard output, a summary on standard error. An instance that can't be planned is told of and
//! passed over; the exit status is then 1, as it is when a plan fails its check.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use alto_sched::{
    Backfill, FirstComeFirstServed, Instance, LongestFirst, Makespan, Plan, PlanError, Scheduler, ShortestFirst,
    Snapshot,
};
use clap::{Parser, ValueEnum};
use cpu_time::ProcessTime;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Parser)]
struct Args {
    /// A JSON list of instances, as in testdata/sched.
    file: PathBuf,
    /// How long the search may take for each instance; `inf` is no limit: until the plan is proven to be the best.
    #[arg(long, default_value = "1", value_parser = seconds, allow_negative_numbers = true)]
    seconds: Duration,
    /// Seed of the search's random choices.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[arg(long, value_enum, default_value = "makespan")]
    scheduler: Name,
    /// Count seconds of this process's CPU time: on a busy machine the same search as on an idle one.
    #[arg(long)]
    cpu: bool,
    /// Leave out tasks that can't be placed, and tell why, instead of the whole instance.
    #[arg(long)]
    skip_bad: bool,
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

fn main() -> ExitCode {
    let args = Args::parse();
    let instances = match read(&args.file) {
        Ok(instances) => instances,
        Err(error) => {
            eprintln!("{}: {}, expected a list of instances", args.file.display(), chain(&*error));
            return ExitCode::FAILURE;
        }
    };
    let (mut planned, mut proven, mut gaps) = (0, 0, 0.0);
    for (index, value) in instances.iter().enumerate() {
        let name = value["name"].as_str().map_or_else(|| format!("instance {index}"), str::to_owned);
        match run(&args, &name, value) {
            Ok(plan) => {
                planned += 1;
                proven += usize::from(plan.proven);
                gaps += plan.gap();
            }
            Err(error) => eprintln!("{name}: {}", chain(&*error)),
        }
    }
    let mean = 100.0 * gaps / f64::from(planned.max(1));
    eprintln!(
        "{planned} of {} instances, {proven} proven optimal, mean gap to our own bounds {mean:.3}%",
        instances.len()
    );
    if planned as usize == instances.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read(file: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?)
}

/// Plans an instance, checks the plan and prints it.
fn run(args: &Args, name: &str, value: &Value) -> Result<Plan, Box<dyn Error>> {
    let snapshot = Snapshot { skip_bad: args.skip_bad, ..Instance::deserialize(value)?.snapshot()? };
    let (plan, seconds) = plan(args, &snapshot)?;
    let check = plan.check(&snapshot);
    let Plan { makespan, lower_bound, proven, .. } = plan;
    println!(
        "{}",
        json!({
            "name": name, "makespan": makespan, "lower_bound": lower_bound, "proven": proven, "seconds": seconds,
            "checked": check.is_ok(),
        })
    );
    plan.refused.iter().for_each(|refused| eprintln!("{name}: task {} {}", refused.task, refused.reason));
    if args.gantt {
        eprint!("{}", plan.gantt(&snapshot));
    }
    check?;
    Ok(plan)
}

/// The plan, and the seconds that it took.
fn plan(args: &Args, snapshot: &Snapshot) -> Result<(Plan, f64), PlanError> {
    let (wall, cpu) = (Instant::now(), ProcessTime::now());
    let spent = || if args.cpu { cpu.elapsed() } else { wall.elapsed() };
    let search = Makespan { seed: args.seed, steps: u64::MAX, ..Makespan::default() };
    let plan = match args.scheduler {
        Name::Fcfs => FirstComeFirstServed.plan(snapshot)?,
        Name::Backfill => Backfill.plan(snapshot)?,
        Name::Shortest => ShortestFirst.plan(snapshot)?,
        Name::Longest => LongestFirst.plan(snapshot)?,
        Name::Makespan => search.plan_while(snapshot, &|| spent() < args.seconds)?,
    };
    Ok((plan, spent().as_secs_f64()))
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        // Past what a duration can be there is no limit.
        Ok(seconds) if seconds >= 0.0 => Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)),
        _ => Err("expected a number of at least 0, or `inf`".to_owned()),
    }
}

/// An error and what it comes from.
fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
