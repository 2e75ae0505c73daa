//! Recorded runs of transformers and PEFT, replayed on the device.

use std::error::Error;
use std::path::{Path, PathBuf};

use alto_core::backend::BackendError;
use alto_core::burn::BurnBackend;
use alto_core::dtype::Dtype;
use alto_core::model::{ModelConfig, ModelError, ModelWeights};
use alto_core::testing::parity::{CaseOutcome, case_dtype, cases, run_case};
use burn::tensor::Device;

use crate::record::{Record, Table};

/// Replays the cases of every model in a directory: all, or in a rehearsal one of each dtype.
pub(crate) fn parity(record: &mut Record, device: &Device, oracle: &Path, rehearsal: bool) {
    let models = match models(oracle) {
        Ok(models) => models,
        Err(error) => return record.failures.push(format!("parity: {}: {error}", oracle.display())),
    };
    let (mut rows, mut rehearsed) = (Vec::new(), Vec::new());
    for model in models {
        record.part(&format!("parity of {}", model.display()), |record| {
            if let Err(error) = replay(record, &mut rows, device, &model, rehearsal.then_some(&mut rehearsed)) {
                record.failures.push(format!("parity of {}: {error}", model.display()));
            }
        });
    }
    if !rows.iter().any(|row| row[1] == "ok") {
        record.failures.push(format!("parity: no case of {} passes", oracle.display()));
    }
    record.tables.push(Table {
        title: "Parity with transformers + PEFT".to_owned(),
        note: "The largest error of each kind over a recorded run, as `examples/parity` gives them.".to_owned(),
        columns: vec!["case", "verdict", "errors"],
        rows,
    });
}

fn models(oracle: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut models = Vec::new();
    for entry in std::fs::read_dir(oracle)? {
        let path = entry?.path();
        if path.join("config.json").exists() {
            models.push(path);
        }
    }
    models.sort();
    Ok(models)
}

fn replay(
    record: &mut Record,
    rows: &mut Vec<Vec<String>>,
    device: &Device,
    model: &Path,
    mut rehearsed: Option<&mut Vec<Dtype>>,
) -> Result<(), Box<dyn Error>> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let cases = cases(model)?;
    for dtype in Dtype::ALL {
        let cases: Vec<&PathBuf> = cases.iter().filter(|case| case_dtype(case) == dtype).collect();
        if cases.is_empty() || rehearsed.as_ref().is_some_and(|rehearsed| rehearsed.contains(&dtype)) {
            continue;
        }
        let what = format!("{} in {dtype}", name(model));
        let loaded = ModelConfig::read(model).and_then(|config| Ok((ModelWeights::read(model, &config)?, config)));
        let (weights, config) = match loaded {
            Err(ModelError::UnsupportedModel { model_type, .. }) => {
                rows.push(vec![what, UNSUPPORTED.to_owned(), format!("model type {model_type}")]);
                continue;
            }
            loaded => loaded?,
        };
        let mut backend = match BurnBackend::with_dtype(config, weights, device, dtype) {
            Err(error @ BackendError::UnsupportedDtype { .. }) => {
                rows.push(vec![what, UNSUPPORTED.to_owned(), error.to_string()]);
                continue;
            }
            backend => backend?,
        };
        for case in cases {
            let label = format!("{}/{}", name(model), name(case));
            let (verdict, errors) = run(&mut backend, case);
            if matches!(verdict, "over" | "failed") {
                record.failures.push(format!("parity: {label}: {verdict}, {errors}"));
            }
            rows.push(vec![label, verdict.to_owned(), errors]);
            if let Some(rehearsed) = rehearsed.as_mut().filter(|_| verdict != UNSUPPORTED) {
                rehearsed.push(dtype);
                break;
            }
        }
    }
    Ok(())
}

const UNSUPPORTED: &str = "not supported";

fn run(backend: &mut BurnBackend, case: &Path) -> (&'static str, String) {
    let outcome = run_case(backend, case);
    match &outcome {
        CaseOutcome::Compared(errors) => (if outcome.passes() { "ok" } else { "over" }, errors.to_string()),
        CaseOutcome::UnsupportedKind { kind } => (UNSUPPORTED, format!("kind {kind}")),
        CaseOutcome::OtherDtype { case, backend } => {
            (UNSUPPORTED, format!("it is in {case}, the backend in {backend}"))
        }
        CaseOutcome::Failed(error) => ("failed", error.to_string()),
    }
}
