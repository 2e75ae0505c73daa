//! Is a device right, and how fast is it? Parity with transformers + PEFT, every kernel beside its reference, then times of
//! the products, the grouped launches and whole steps beside PyTorch's on the same machine.
//!
//! `gpu/check` finds what this needs and runs it. Prints one table; exit code 1 if parity, a kernel or a measurement fails,
//! 2 if the device can't be used at all. A target that is missed is no failure: it stands in the table.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use burn::tensor::DType;
use clap::{Parser, ValueEnum};

use crate::device::{Place, facts, named};
use crate::record::Record;
use crate::run::Run;
use crate::sizes::Sizes;
use crate::torch::TorchTimes;

mod clock;
mod device;
mod grouped;
mod kernels;
mod launches;
mod layer;
mod others;
mod parity;
mod products;
mod random;
mod record;
mod run;
mod sizes;
mod step;
mod targets;
mod torch;

#[derive(Parser)]
#[command(about = "Checks kernels and trainer on a device, and times them beside PyTorch")]
struct Arguments {
    /// flex, cpu, wgpu, cuda or cuda:N.
    #[arg(long, default_value = "cuda")]
    device: Place,
    /// Prints the device's name and does nothing else.
    #[arg(long)]
    name: bool,
    /// Tiny sizes and few cases, to see that everything runs.
    #[arg(long)]
    rehearse: bool,
    /// Directory of models with recorded cases.
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/oracle"))]
    oracle: PathBuf,
    /// What torch_times.py wrote on this machine.
    #[arg(long, value_name = "FILE")]
    torch_times: Option<PathBuf>,
    /// Where the table goes besides standard output; the same as JSON beside it.
    #[arg(long, value_name = "FILE.md")]
    out: Option<PathBuf>,
    /// Only these parts, where time on a device is short.
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<Part>,
}

/// A part of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Parity,
    Kernels,
    Products,
    Others,
    Steps,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let device = match arguments.device.open() {
        Ok(device) => device,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    // Panics are caught and taken down; a line each is enough to follow.
    std::panic::set_hook(Box::new(|panic| eprintln!("{}", record::message(panic.payload()))));
    let [name, driver] = facts(arguments.device, &device);
    if arguments.name {
        println!("{name}");
        return ExitCode::SUCCESS;
    }
    let dtypes = arguments.device.dtypes(&device);
    let fastest = [DType::BF16, DType::F16].into_iter().find(|dtype| dtypes.contains(dtype)).unwrap_or(DType::F32);
    let mut record = Record::new(BTreeMap::from([
        ("device", name),
        ("driver", driver),
        ("runs on", arguments.device.to_string()),
        ("commit", option_env!("ALTO_COMMIT").unwrap_or("unknown").to_owned()),
        ("timed in", named(fastest).to_string()),
    ]));
    if arguments.rehearse {
        record.facts.insert("sizes", "of a rehearsal: times mean nothing".to_owned());
    }
    let torch = torch_times(&mut record, &arguments);
    let sizes = Sizes::read(arguments.rehearse);
    let run = Run { place: arguments.device, device, dtype: fastest, sizes, torch };
    let asked = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    for (part, what) in [
        (Part::Parity, "parity"),
        (Part::Kernels, "kernels"),
        (Part::Products, "products and grouped launches"),
        (Part::Others, "other kernels"),
        (Part::Steps, "whole steps"),
    ] {
        if !asked(part) {
            record.missing.push(format!("{what}: not asked for"));
            continue;
        }
        record.part(what, |record| match part {
            Part::Parity => parity::parity(record, &run.device, &arguments.oracle, arguments.rehearse),
            Part::Kernels => kernels::kernels(record, &run.device, &dtypes, arguments.rehearse),
            Part::Products => products::products(record, &run),
            Part::Others => others::others(record, &run),
            Part::Steps => step::steps(record, &run),
        });
    }
    targets::targets(&mut record, run.sizes.batches[0], arguments.rehearse);
    let table = record.markdown();
    print!("{table}");
    if let Some(out) = &arguments.out {
        let json = serde_json::to_string_pretty(&record).expect("numbers and text");
        let written =
            std::fs::write(out, &table).and_then(|()| std::fs::write(out.with_extension("json"), json + "\n"));
        if let Err(error) = written {
            eprintln!("can't write {}: {error}", out.display());
            return ExitCode::from(1);
        }
    }
    if record.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// What PyTorch took, as far as it is known.
fn torch_times(record: &mut Record, arguments: &Arguments) -> TorchTimes {
    let Some(path) = &arguments.torch_times else {
        record.missing.push("PyTorch: no --torch-times".to_owned());
        return TorchTimes::default();
    };
    match TorchTimes::read(path, arguments.rehearse) {
        Ok(times) => {
            let facts: Vec<String> = times.facts.iter().map(|(name, fact)| format!("{name} {fact}")).collect();
            record.facts.insert("PyTorch", facts.join(", "));
            record.figures.extend(times.figures());
            record.missing.extend(times.missing.iter().map(|missing| format!("PyTorch: {missing}")));
            times
        }
        Err(error) => {
            record.failures.push(format!("PyTorch's times: {error}"));
            TorchTimes::default()
        }
    }
}
