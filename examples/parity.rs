//! Does this machine compute what transformers and PEFT computed? `parity [--cases DIR] MODEL_DIR...`
//!
//! Replays every recorded case in each model directory (or, with `--cases`, in that directory on each model's weights), once
//! per configuration file that is there, and prints the largest error of each kind. Exit code 0 if all is within tolerance, 1
//! if an error is over or no case was found, 2 if nothing is over but a case can't be run: a kind other than `sft`, or a
//! model type other than Llama.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use alto_core::burn::BurnBackend;
use alto_core::model::{ModelConfig, ModelError, ModelWeights};
use alto_core::testing::parity::{CaseOutcome, TOLERANCE, cases, run_case};
use alto_examples::chain;
use burn::tensor::Device;
use clap::Parser;

#[derive(Parser)]
#[command(about = "Replays recorded transformers + PEFT runs and compares")]
struct Arguments {
    /// Model directories.
    #[arg(required = true)]
    models: Vec<PathBuf>,
    /// Takes the cases from here, not from the model directories.
    #[arg(long)]
    cases: Option<PathBuf>,
}

#[derive(Default)]
struct Tally {
    passed: usize,
    over: usize,
    unsupported: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut tally = Tally::default();
    for model in &arguments.models {
        let configs = ["config.json", "config_v4.json"].map(|name| model.join(name));
        let found: Vec<&PathBuf> = configs.iter().filter(|path| path.exists()).collect();
        // Without any, the first one's absence is the error to show.
        for config in if found.is_empty() { vec![&configs[0]] } else { found } {
            run_model(model, config, arguments.cases.as_deref().unwrap_or(model), &mut tally);
        }
    }
    let Tally { passed, over, unsupported } = tally;
    println!("{passed} within tolerance, {over} over or failed, {unsupported} of a kind that can't be run");
    if over > 0 || passed + unsupported == 0 {
        ExitCode::from(1)
    } else if unsupported > 0 {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}

fn run_model(dir: &Path, config: &Path, cases_dir: &Path, tally: &mut Tally) {
    let fail = |what: &dyn std::error::Error| {
        println!("FAIL  {}: {}", config.display(), chain(what));
    };
    let cases = match cases(cases_dir) {
        Ok(cases) => cases,
        Err(error) => {
            return {
                tally.over += 1;
                fail(&error)
            };
        }
    };
    if cases.is_empty() {
        println!("none  {}: no case in {}", config.display(), cases_dir.display());
        return;
    }
    let loaded = ModelConfig::read_file(config).and_then(|config| Ok((ModelWeights::read(dir, &config)?, config)));
    let mut backend = match loaded {
        Ok((weights, config)) => BurnBackend::new(config, weights, &Device::flex()),
        Err(ModelError::UnsupportedModel { model_type, .. }) => {
            println!("skip  {}: {} cases, model type {model_type} is not supported", config.display(), cases.len());
            tally.unsupported += cases.len();
            return;
        }
        Err(error) => {
            return {
                tally.over += 1;
                fail(&error)
            };
        }
    };
    for case in cases {
        let outcome = run_case(&mut backend, &case);
        let label = format!("{} {}", config.display(), case.file_name().unwrap_or_default().to_string_lossy());
        match &outcome {
            CaseOutcome::Compared(errors) if outcome.passes(&TOLERANCE) => {
                tally.passed += 1;
                println!("ok    {label}: {errors}");
            }
            CaseOutcome::Compared(errors) => {
                tally.over += 1;
                println!("OVER  {label}: {errors}");
            }
            CaseOutcome::UnsupportedKind { kind } => {
                tally.unsupported += 1;
                println!("skip  {label}: kind {kind} is not supported");
            }
            CaseOutcome::Failed(error) => {
                tally.over += 1;
                println!("FAIL  {label}: {}", chain(error));
            }
        }
    }
}
