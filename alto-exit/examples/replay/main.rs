//! Replays recorded runs under exit policies: `cargo run --release -p alto-exit --example replay -- testdata/curves/gsm-nano/*.json`.
//!
//! Prints what each policy saves, by reason, and what it gives up. Files hold the runs of a task each, or one run each:
//! those of one folder are then the runs of one task.

mod bound;
mod read;
mod shipped;
mod sweep;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use alto_exit::replay::{PolicyReport, Replay, comparison};
use alto_exit::{Policy, PolicyFile};
use clap::Parser;

#[derive(Parser)]
struct Args {
    /// Corpora, or recorded runs, in JSON.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The policy to replay, in JSON; the shipped ones if not given.
    #[arg(long, conflicts_with = "sweep")]
    policy: Option<PathBuf>,
    /// Jobs that train at a time; all of them if not given.
    #[arg(long)]
    slots: Option<usize>,
    /// What the ranking at a rung is worth, for rungs from 1% to 20% of the budget and several shares that stay.
    #[arg(long)]
    sweep: bool,
    /// How often the adaptive rung loses the best job on so many resampled sweeps of each task, beside what it promises.
    #[arg(long, value_name = "SWEEPS", conflicts_with_all = ["sweep", "policy", "json"])]
    bound: Option<usize>,
    /// With `--bound`: what it promises.
    #[arg(long, default_value_t = 0.01, requires = "bound")]
    risk: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match replay(&Args::parse()) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn replay(args: &Args) -> Result<String, String> {
    let corpora = read::corpora(&args.files)?;
    let replay = Replay { slots: args.slots, ..Replay::default() };
    if args.sweep {
        return sweep::table(&replay, &corpora, args.json);
    }
    if let Some(sweeps) = args.bound {
        return bound::table(&replay, &corpora, args.risk, sweeps);
    }
    let policies: Vec<(String, Policy)> = match &args.policy {
        Some(path) => {
            let PolicyFile { policy, .. } = read::parse(path, &read::text(path)?, "a policy")?;
            vec![(path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), policy)]
        }
        None => shipped::policies(),
    };
    let report = |(name, policy): &(String, Policy)| replay.report(name.as_str(), policy, &corpora);
    let reports: Vec<PolicyReport> =
        policies.iter().map(report).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    if args.json {
        return serde_json::to_string_pretty(&reports).map(|text| text + "\n").map_err(|error| error.to_string());
    }
    let tables: Vec<String> = reports.iter().map(|report| report.table().to_string()).collect();
    let together = if reports.len() > 1 { format!("\n{}", comparison(&reports)) } else { String::new() };
    Ok(tables.join("\n") + &together)
}
