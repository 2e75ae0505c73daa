//! Tunes LoRA adapters over a grid of hyperparameters, ends the hopeless ones early, and saves the best for PEFT.
//!
//! Without arguments it is the quick start: a small pretrained Llama and slices of GSM8K, which lie in this repository
//! (`testdata/quickstart`, found from any directory), the grid of `examples/quickstart.toml`, about a minute on two
//! cores; the adapter goes to `out/quickstart`, or `out/quickstart-2` and so on if that exists. On a model of yours:
//!
//! ```text
//! tune --model DIR --train FILE --val FILE --out DIR [--grid FILE]
//! ```
//!
//! `--out` becomes a directory that PEFT loads, with `report.json` beside the adapter: every job's settings, curve and
//! reason to end. Everything that can be checked is checked before training. Exit code 0 if an adapter was saved, 1 if
//! training didn't get to its end or no job learned anything (what there is is saved nevertheless), 2 if nothing was
//! trained because something is wrong with the input.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use alto_core::burn::BurnBackend;
use alto_core::data::{Dataset, Tokenizer};
use alto_core::peft;
use alto_core::search_space::SearchSpace;
use alto_core::trainer::{Candidate, TrainError, Trainer};
use alto_examples::{Progress, chain, check_new, fresh, write_new};
use alto_exit::LossAware;
use clap::Parser;

const QUICKSTART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/quickstart");

#[derive(Parser)]
#[command(about = "Tunes LoRA adapters over a grid; without arguments, the quick start")]
struct Arguments {
    /// Llama model in Hugging Face's layout, with its tokenizer.
    #[arg(long, value_name = "DIR", requires_all = ["train", "val", "out"])]
    model: Option<PathBuf>,
    /// Training rows, a JSONL file of {"prompt": "...", "completion": "..."}.
    #[arg(long, value_name = "FILE", requires = "val")]
    train: Option<PathBuf>,
    /// Validation rows, likewise.
    #[arg(long, value_name = "FILE", requires = "train")]
    val: Option<PathBuf>,
    /// Where the best adapter goes; must not exist.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Grid of hyperparameters in TOML; that of the quick start if not given.
    #[arg(long, value_name = "FILE")]
    grid: Option<PathBuf>,
    /// Where the report goes; OUT/report.json if not given.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Jobs that train at a time; as many as fit if not given.
    #[arg(long, value_name = "N")]
    slots: Option<usize>,
    /// What the process may take of memory; no limit if not given.
    #[arg(long, value_name = "GIB", value_parser = gib)]
    memory: Option<u64>,
    /// Rows of the validation set that count, the first; all if not given.
    #[arg(long, value_name = "N")]
    val_rows: Option<usize>,
    /// Progress between a job's evaluations.
    #[arg(long, value_name = "SHARE", default_value_t = 0.02)]
    interval: f64,
    /// Threads; one for each core if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

fn gib(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(gib) if gib.is_finite() && gib > 0.0 => Ok((gib * f64::from(1 << 30)) as u64),
        _ => Err("expected a finite positive number of GiB".to_owned()),
    }
}

fn main() -> ExitCode {
    match tune(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", chain(&*failure));
            // Training was interrupted or gave nothing, or else nothing was trained.
            ExitCode::from(if failure.is::<TrainError>() { 1 } else { 2 })
        }
    }
}

fn tune(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let quickstart = Path::new(QUICKSTART);
    let model = arguments.model.clone().unwrap_or(quickstart.join("gsm-nano"));
    let train = arguments.train.clone().unwrap_or(quickstart.join("data/train.jsonl"));
    let val = arguments.val.clone().unwrap_or(quickstart.join("data/val.jsonl"));
    let out = arguments.out.clone().unwrap_or_else(|| fresh("out/quickstart"));
    let report_file = arguments.report.clone().unwrap_or(out.join("report.json"));
    check_new(&out)?;
    check_new(&report_file)?;
    if let Some(threads) = arguments.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?;
    }
    let space = match &arguments.grid {
        Some(path) => SearchSpace::read(path)?,
        None => SearchSpace::from_toml(include_str!("quickstart.toml"))?,
    };
    let mut backend = BurnBackend::read(&model)?;
    let tokenizer = Tokenizer::read(&model)?;
    let (context, vocabulary) = (backend.config().context, backend.config().vocabulary);
    let train = Dataset::read(&train, &tokenizer, context)?;
    let val = Dataset::read(&val, &tokenizer, context)?;
    train.check_vocabulary(vocabulary)?;
    val.check_vocabulary(vocabulary)?;
    let val = match arguments.val_rows {
        Some(rows) => Dataset::from_examples(val.examples().iter().take(rows).cloned().collect())?,
        None => val,
    };
    let jobs = space.jobs(train.examples().len())?;
    if let Some(bytes) = arguments.memory { backend = backend.with_memory_budget(bytes); }
    let trainer = Trainer { slots: arguments.slots, interval: arguments.interval, ..Trainer::default() };
    let mut progress = Progress::new(&jobs);
    let candidates = jobs.into_iter().map(Candidate::from).collect();
    let outcome = trainer.run(&mut backend, &train, &val, candidates, &LossAware::default(), &mut |event| progress.observe(event))?;
    drop(progress);
    println!("{}", outcome.report.table());
    if let Some(winner) = outcome.report.winner {
        peft::export(outcome.adapters[winner].as_ref().unwrap(), &out, &model.display().to_string())?;
    }
    write_new(&report_file, &serde_json::to_vec_pretty(&outcome.report)?)?;
    Ok(())
}
