//! ALTO's evaluation (arXiv:2604.05426) and larger clusters, on virtual clocks: the trainer runs every task on simulated
//! devices, the fleet runs the tasks.
//!
//! `cargo run --release -p alto-core --no-default-features --example cluster`, and with `-- --help` behind it what else
//! it can do. Durations follow from data sheets, exits from recorded runs; no number is fitted to the paper's.

mod ablation;
mod scale;
mod tables;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use alto_core::exit::LossAware;
use alto_core::sched::Cluster;
use alto_core::simulated::read_corpus;
use alto_core::simulated::systems::Device;
use alto_core::study::Trainings;
use clap::{Parser, Subcommand, ValueEnum};

#[derive(Debug, Parser)]
struct Arguments {
    /// A device that is shipped, or a TOML file of one.
    #[arg(long, global = true, default_value = "H100 SXM")]
    device: String,
    /// Recorded sweeps in JSON, which say how jobs exit; those of the repository if not given.
    #[arg(long, global = true, value_name = "FILE")]
    corpus: Vec<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The most that a cluster holds.
const MOST_DEVICES: i64 = Cluster::MOST_DEVICES as i64;

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// The paper's ablation alone.
    Ablation,
    /// The paper's end-to-end tables alone.
    Tables,
    /// Tasks that come by chance, on many devices, with each scheduler.
    Scale {
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
        tasks: u32,
        /// In machines of eight.
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=MOST_DEVICES))]
        devices: u32,
        /// Share of the devices that the tasks need.
        #[arg(long, default_value_t = 0.9, value_parser = over_zero)]
        load: f64,
        #[arg(long, value_enum, default_value_t = Coming::Poisson)]
        arrivals: Coming,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// The tasks of a trace in CSV, with each scheduler.
    Trace {
        file: PathBuf,
        /// In machines of eight.
        #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=MOST_DEVICES))]
        devices: u32,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Coming {
    Poisson,
    Bursty,
}

fn over_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "expected a finite number over 0".to_owned())
}

fn main() -> ExitCode {
    let Err(error) = run(Arguments::parse()) else { return ExitCode::SUCCESS };
    let chain = std::iter::successors(Some(&*error as &dyn Error), |&error| error.source());
    eprintln!("{}", chain.map(ToString::to_string).collect::<Vec<_>>().join(": "));
    ExitCode::FAILURE
}

fn run(Arguments { device, corpus, command }: Arguments) -> Result<(), Box<dyn Error>> {
    let device = match Path::new(&device).extension() {
        Some(extension) if extension == "toml" => Device::read(Path::new(&device))?,
        _ => Device::named(&device)?,
    };
    let corpora = if corpus.is_empty() { committed()? } else { corpus };
    let corpora = corpora.iter().map(read_corpus).collect::<Result<Vec<_>, _>>()?;
    let policy = LossAware::default();
    println!("{}; parameters: {}.\n", device.name, device.source);
    let mut trainings = Trainings::new(device, &corpora, &policy);
    match command {
        Some(Command::Ablation) => ablation::print(&mut trainings),
        Some(Command::Tables) => tables::print(&mut trainings, corpora.len()),
        Some(Command::Scale { tasks, devices, load, arrivals, seed }) => {
            scale::generated(&mut trainings, tasks as usize, devices, load, arrivals, seed)
        }
        Some(Command::Trace { file, devices }) => scale::traced(&mut trainings, &file, devices),
        None => {
            ablation::print(&mut trainings)?;
            tables::print(&mut trainings, corpora.len())
        }
    }
}

/// Recorded sweeps of this repository.
fn committed() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/curves/gsm-nano");
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{folder}: {error}"))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    Ok(paths)
}
