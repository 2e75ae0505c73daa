//! Does this machine compute what transformers and PEFT computed? `parity [--device DEVICE] [--cases DIR]
//! MODEL_DIR...`
//!
//! Replays every recorded case in each model directory (or, with `--cases`, in that directory on each model's weights), once
//! per configuration file that is there, and prints the largest error of each kind. Exit code 0 if all is within tolerance, 1
//! if an error is over or no case was found, 2 if nothing is over but a case can't be run: a kind other than `sft`, a model
//! type other than Llama, or a dtype that the device lacks.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use alto_core::backend::BackendError;
use alto_core::burn::BurnBackend;
use alto_core::dtype::Dtype;
use alto_core::model::{ModelConfig, ModelError, ModelWeights};
use alto_core::testing::parity::{CaseOutcome, case_dtype, cases, run_case};
use alto_examples::{DeviceName, chain};
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
    /// What it runs on: flex (the CPU), cpu (CubeCL's), wgpu, or cuda, commonly with a number, as cuda:1.
    #[arg(long, default_value = "flex")]
    device: DeviceName,
}

#[derive(Default)]
struct Tally {
    passed: usize,
    over: usize,
    unsupported: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let device = match arguments.device.open() {
        Ok(device) => device,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(1);
        }
    };
    let mut tally = Tally::default();
    for model in &arguments.models {
        let configs = ["config.json", "config_v4.json"].map(|name| model.join(name));
        let found: Vec<&PathBuf> = configs.iter().filter(|path| path.exists()).collect();
        // Without any, the first one's absence is the error to show.
        for config in if found.is_empty() { vec![&configs[0]] } else { found } {
            let cases_dir = arguments.cases.as_deref().unwrap_or(model);
            if let Err(error) = run_model(model, config, cases_dir, &device, &mut tally) {
                tally.over += 1;
                println!("FAIL  {}: {}", config.display(), chain(&*error));
            }
        }
    }
    let Tally { passed, over, unsupported } = tally;
    println!("{passed} within tolerance, {over} over or failed, {unsupported} that can't be run");
    if over > 0 || passed + unsupported == 0 {
        ExitCode::from(1)
    } else if unsupported > 0 {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}

fn run_model(
    dir: &Path,
    config: &Path,
    cases_dir: &Path,
    device: &Device,
    tally: &mut Tally,
) -> Result<(), Box<dyn Error>> {
    let cases = cases(cases_dir)?;
    if cases.is_empty() {
        println!("none  {}: no case in {}", config.display(), cases_dir.display());
    }
    for dtype in Dtype::ALL {
        let cases: Vec<&PathBuf> = cases.iter().filter(|case| case_dtype(case) == dtype).collect();
        if cases.is_empty() {
            continue;
        }
        let loaded = ModelConfig::read_file(config).and_then(|config| Ok((ModelWeights::read(dir, &config)?, config)));
        let (weights, shape) = match loaded {
            Err(ModelError::UnsupportedModel { model_type, .. }) => {
                println!("skip  {}: {} cases, model type {model_type} is not supported", config.display(), cases.len());
                tally.unsupported += cases.len();
                continue;
            }
            loaded => loaded?,
        };
        match BurnBackend::with_dtype(shape, weights, device, dtype) {
            Err(error @ BackendError::UnsupportedDtype { .. }) => {
                for case in cases {
                    println!("skip  {}: {error}", label(config, case));
                    tally.unsupported += 1;
                }
            }
            backend => {
                let mut backend = backend?;
                cases.into_iter().for_each(|case| run(&mut backend, case, &label(config, case), tally));
            }
        }
    }
    Ok(())
}

fn label(config: &Path, case: &Path) -> String {
    format!("{} {}", config.display(), case.file_name().unwrap_or_default().to_string_lossy())
}

fn run(backend: &mut BurnBackend, case: &Path, label: &str, tally: &mut Tally) {
    let outcome = run_case(backend, case);
    match &outcome {
        CaseOutcome::Compared(errors) if outcome.passes() => {
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
        CaseOutcome::OtherDtype { case, backend } => {
            tally.unsupported += 1;
            println!("skip  {label}: it is in {case}, the backend in {backend}");
        }
        CaseOutcome::Failed(error) => {
            tally.over += 1;
            println!("FAIL  {label}: {}", chain(error));
        }
    }
}
