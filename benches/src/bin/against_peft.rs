//! Tokens per second of `throughput` beside Hugging Face's PEFT, one run of each in turns.
//!
//! `against_peft PYTHON [--peer SCRIPT] [--rounds N] [--threads T] [--model ..] [--adapters N] [--rank R] [--batch B]
//! [--seq L] [--steps S] [--mode sequential|mixed]`; PYTHON has the packages of `testdata/oracle/requirements.lock.txt`.
//! `throughput` is expected beside this program. Prints a line per run, then the medians and the medians of the rounds'
//! ratios. PEFT's peak memory is that of its whole process, ours is that since the model was there.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use alto_benches::median;
use clap::Parser;
use serde_json::Value;

#[derive(Parser)]
struct Arguments {
    /// A Python interpreter that has PEFT.
    python: PathBuf,
    /// The script that trains with PEFT.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/oracle/peer_peft.py"))]
    peer: PathBuf,
    /// Runs of each.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// The model's shape.
    #[arg(long, default_value = "288x6x6x6x768x32000")]
    model: String,
    #[arg(long, default_value_t = 8)]
    adapters: usize,
    #[arg(long, default_value_t = 8)]
    rank: usize,
    /// Rows per adapter.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// Tokens per row.
    #[arg(long, default_value_t = 128)]
    seq: usize,
    /// Timed optimizer steps.
    #[arg(long, default_value_t = 10)]
    steps: usize,
    /// How PEFT trains: `sequential`, one adapter after another, or `mixed`, all in one batch.
    #[arg(long, default_value = "sequential")]
    mode: String,
}

/// What is compared, by the names that both programs print.
const FIGURES: [(&str, [&str; 2]); 3] = [
    ("tokens per second", ["tokens_per_s", "tokens_per_s"]),
    ("tokens per processor second", ["tokens_per_cpu_s", "tokens_per_cpu_s"]),
    ("peak memory, MiB", ["peak_mb", "rss_mb"]),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let throughput = std::env::current_exe()?.with_file_name("throughput");
    let mut runs: [Vec<Value>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..arguments.rounds {
        let mut ours = arguments.command(&throughput, "");
        ours.env("RAYON_NUM_THREADS", arguments.threads.to_string());
        let mut peft = arguments.command(&arguments.python, "random:");
        peft.args(["--mode", &arguments.mode, "--threads", &arguments.threads.to_string()]);
        for (command, runs) in [ours, peft].iter_mut().zip(&mut runs) {
            let run = run(command)?;
            println!("{run}");
            runs.push(run);
        }
    }
    println!("\n| {} threads | ours | PEFT, {} | ratio |\n|---|---:|---:|---:|", arguments.threads, arguments.mode);
    for (what, names) in FIGURES {
        let runs = &runs;
        let figures = [0, 1].map(|way| runs[way].iter().map(move |run| run[names[way]].as_f64().unwrap_or(f64::NAN)));
        let ratio = median(figures[0].clone().zip(figures[1].clone()).map(|(ours, peft)| ours / peft));
        let [ours, peft] = figures.map(median);
        println!("| {what} | {ours:.0} | {peft:.0} | {ratio:.2} |");
    }
    let share = median(runs[0].iter().map(|run| run["share_of_gemm_rate"].as_f64().unwrap_or(f64::NAN)));
    println!("\nOurs reaches {:.0}% of the rate of the step's frozen products alone.", 100.0 * share);
    Ok(())
}

impl Arguments {
    /// A program with the options that both share.
    fn command(&self, program: &Path, model_prefix: &str) -> Command {
        let mut command = Command::new(program);
        if program == self.python {
            command.arg(&self.peer);
        }
        command.args(["--model", &format!("{model_prefix}{}", self.model)]);
        for (option, value) in [
            ("--adapters", self.adapters),
            ("--rank", self.rank),
            ("--batch", self.batch),
            ("--seq", self.seq),
            ("--steps", self.steps),
        ] {
            command.args([option, &value.to_string()]);
        }
        command
    }
}

/// The JSON line that a program prints last.
fn run(command: &mut Command) -> Result<Value, Box<dyn Error>> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} ended with {}: {said}", output.status).into());
    }
    let said = String::from_utf8(output.stdout)?;
    let line =
        said.lines().rfind(|line| line.starts_with('{')).ok_or_else(|| format!("{command:?} printed no JSON"))?;
    Ok(serde_json::from_str(line)?)
}
