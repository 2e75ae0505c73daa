//! Measures every case beside the plain way, in turns, and writes the ratios down.
//!
//! `record [--rounds N] [--dir DIR]` prints a table, and writes it to `DIR/<processor>-<threads>-threads.md` with the
//! processor, compiler, commit and date. Times are the medians over the rounds of the time per call. A ratio is the
//! median over the rounds of the ratio within a round.

use std::fmt::Write;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;

use alto_benches::{Case, Cost, TrainStep, attention_cases, in_turns, log_probs_cases, lora_cases, median};
use clap::Parser;

#[derive(Parser)]
struct Arguments {
    /// Turns that each way takes.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Where the table goes.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/record"))]
    dir: PathBuf,
}

fn main() -> std::io::Result<()> {
    let Arguments { rounds, dir } = Arguments::parse();
    let device = Device::here();
    let mut table = format!(
        "# {}\n\n{} threads; {}; commit {}; {}; {rounds} rounds.\n\n\
         Milliseconds of processor time per call, on all threads together, then on the wall clock. *Plain* is Burn's own\n\
         operations. The floor is the frozen product alone, forward or with its backward. The ratios are of processor time.\n\n\
         | case | ours, cpu | plain, cpu | floor, cpu | ours, wall | plain, wall | plain / ours | ours / floor |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
        device.processor, device.threads, device.compiler, device.commit, device.date,
    );
    print!("{table}");
    for cases in [lora_cases, attention_cases, log_probs_cases] {
        for case in cases() {
            case.check();
            let row = row(&case, rounds);
            print!("{row}");
            table += &row;
        }
    }
    let steps = train_steps(rounds);
    print!("{steps}");
    table += &steps;
    std::fs::create_dir_all(&dir)?;
    let path = dir.join(device.file_name());
    std::fs::write(&path, table)?;
    eprintln!("written to {}", path.display());
    Ok(())
}

/// One line of the table of kernels.
fn row(case: &Case, rounds: usize) -> String {
    let ours = || drop(black_box((case.ours)()));
    let plain = || drop(black_box((case.plain)()));
    let floor = || drop(black_box(case.floor.as_ref().map(|run| run())));
    let mut calls: Vec<&dyn Fn()> = vec![&ours, &plain];
    if case.floor.is_some() {
        calls.push(&floor);
    }
    let costs = in_turns(rounds, &calls);
    let cpu = |way: usize| costs.get(way).map_or("".into(), |costs| ms(costs, |cost| cost.cpu));
    let wall = |way: usize| ms(&costs[way], |cost| cost.wall);
    let to_floor = costs.get(2).map_or("".into(), |floor| format!("{:.2}", ratio(&costs[0], floor, |cost| cost.cpu)));
    let gain = ratio(&costs[1], &costs[0], |cost| cost.cpu);
    let [ours, plain, floor] = [0, 1, 2].map(cpu);
    format!("| {} | {ours} | {plain} | {floor} | {} | {} | {gain:.2} | {to_floor} |\n", case.name, wall(0), wall(1))
}

/// The table of train steps, and what the number of adapters costs.
fn train_steps(rounds: usize) -> String {
    let mut table =
        "\nTokens per second of whole train steps of a small model, rank 8, rows of 128 tokens: per second of \
                     processor time, and on the wall clock.\n\n| step | cpu | wall |\n|---|---:|---:|\n"
            .to_owned();
    let steps = alto_benches::train_steps();
    steps.iter().for_each(TrainStep::check);
    let calls: Vec<Box<dyn Fn()>> = steps.iter().map(|step| Box::new(|| step.run()) as Box<dyn Fn()>).collect();
    let costs = in_turns(rounds, &calls.iter().map(AsRef::as_ref).collect::<Vec<_>>());
    for (step, costs) in steps.iter().zip(&costs) {
        let rate = |pick: fn(&Cost) -> f64| step.tokens as f64 / median(costs.iter().map(pick));
        writeln!(table, "| {} | {:.0} | {:.0} |", step.name, rate(|cost| cost.cpu), rate(|cost| cost.wall))
            .expect("memory");
    }
    let [few, many] = [1, 3].map(|i| &costs[i]);
    let (cpu, wall) = (ratio(few, many, |cost| cost.cpu), ratio(few, many, |cost| cost.wall));
    table
        + &format!("\n64 rows as 64 adapters reach {cpu:.3} (processor time; wall clock {wall:.3}) of the rate as 4.\n")
}

fn ms(costs: &[Cost], pick: impl Fn(&Cost) -> f64) -> String {
    format!("{:.2}", 1e3 * median(costs.iter().map(pick)))
}

/// The median of the rounds' ratios.
fn ratio(a: &[Cost], b: &[Cost], pick: impl Fn(&Cost) -> f64) -> f64 {
    median(a.iter().zip(b).map(|(a, b)| pick(a) / pick(b)))
}

/// What the figures are true of.
struct Device {
    processor: String,
    threads: usize,
    compiler: String,
    commit: String,
    date: String,
}

impl Device {
    fn here() -> Self {
        let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let mut fields = processors.lines().filter_map(|line| line.split_once(':'));
            fields.find(|(field, _)| field.trim() == name).map(|(_, value)| value.trim())
        };
        // Virtual machines may hide the model's name, but hardly its numbers.
        let processor = ["model name", "cpu family", "model"].map(field);
        let processor = match processor {
            [Some(name), Some(family), Some(model)] => format!("{name}, family {family}, model {model}"),
            _ => std::env::consts::ARCH.to_owned(),
        };
        Self {
            processor,
            threads: rayon::current_num_threads(),
            compiler: said(&["rustc", "--version"]),
            commit: said(&["git", "describe", "--always", "--dirty"]),
            date: said(&["date", "-u", "+%F"]),
        }
    }

    fn file_name(&self) -> String {
        let processor: Vec<&str> =
            self.processor.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
        format!("{}-{}-threads.md", processor.join("-").to_lowercase(), self.threads)
    }
}

/// What a command prints, or that it isn't known.
fn said(command: &[&str]) -> String {
    let output = Command::new(command[0]).args(&command[1..]).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let output = output.ok().filter(|output| output.status.success());
    output.map_or("unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
