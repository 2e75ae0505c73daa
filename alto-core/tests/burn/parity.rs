//! Recorded transformers + PEFT runs, replayed; and that the check notices what is off.

use std::fs;
use std::path::Path;

use alto_core::burn::BurnBackend;
use alto_core::matrix::Matrix;
use alto_core::model::{ModelConfig, ModelWeights, Rotary};
use alto_core::testing::parity::{CaseOutcome, Errors, TOLERANCE, cases, run_case};
use burn::tensor::Device;
use half::bf16;
use serde_json::{Value, json};

use super::setup::{recorded, testdata};

/// The errors of one supervised case.
fn errors(backend: &mut BurnBackend, case: &Path) -> Errors {
    match run_case(backend, case) {
        CaseOutcome::Compared(errors) => errors,
        other => panic!("{}: {other:?}", case.display()),
    }
}

/// Runs a model's supervised cases, each of which must be within tolerance; how many there are.
fn replay_all(backend: &mut BurnBackend, cases_of: &str, label: &str) -> usize {
    let mut compared = 0;
    for case in cases(&testdata("oracle").join(cases_of)).unwrap() {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        match run_case(backend, &case) {
            CaseOutcome::Compared(errors) => {
                println!("{label} {name}: {errors}");
                assert!(errors.within(&TOLERANCE), "{label} {name}: {errors}");
                assert_eq!(errors.adapter.is_none(), name == "r8_diverge", "only this one is chaotic: {errors}");
                assert!(errors.adapter.is_some() || errors.steps >= 2, "{errors}");
                compared += 1;
            }
            CaseOutcome::UnsupportedKind { kind } => assert_eq!((kind.as_str(), name.as_str()), ("dpo", "dpo_r8")),
            CaseOutcome::Failed(error) => panic!("{label} {name}: {error}"),
        }
    }
    compared
}

#[test]
fn every_supervised_run_is_replayed_within_tolerance_from_both_config_layouts() {
    for (model, expected) in [("llama_untied", 6), ("llama_tied", 3), ("llama3_rope", 3)] {
        let dir = testdata("oracle").join(model);
        for layout in ["config.json", "config_v4.json"] {
            let config = ModelConfig::read_file(&dir.join(layout)).unwrap();
            let weights = ModelWeights::read(&dir, &config).unwrap();
            let mut backend = BurnBackend::new(config, weights, &Device::flex());
            assert_eq!(replay_all(&mut backend, model, &format!("{model}/{layout}")), expected);
        }
    }
}

#[test]
fn the_sharded_model_replays_the_whole_ones_runs() {
    assert_eq!(replay_all(&mut recorded("llama_untied_sharded"), "llama_untied", "sharded"), 6);
}

/// The bf16 file is off by exactly what rounding the f32 weights to bf16 does, whatever that does to losses.
#[test]
fn the_bf16_model_is_off_by_the_rounding_of_its_weights_alone() {
    let dir = testdata("oracle/llama_untied");
    let config = ModelConfig::read(&dir).unwrap();
    let weights = rounded(ModelWeights::read(&dir, &config).unwrap());
    let mut rounded = BurnBackend::new(config, weights, &Device::flex());
    let mut stored = recorded("llama_untied_bf16");
    for case in cases(&dir).unwrap().iter().filter(|case| !case.ends_with("dpo_r8")) {
        let (rounded, stored) = (errors(&mut rounded, case), errors(&mut stored, case));
        println!("bf16 {}: {stored}", case.display());
        assert_eq!(stored, rounded);
        // bf16 has 8 bits: an entry is off by up to 2^-9 of itself, 0.2 %.
        assert!(stored.logits > TOLERANCE.logits && stored.gradient > TOLERANCE.gradient, "{stored}");
        assert!(stored.evaluation < 2e-3, "{stored}");
        // A chaotic run makes more of it.
        assert!(stored.adapter.is_none() || stored.loss < 4e-3, "{stored}");
    }
}

fn rounded(mut weights: ModelWeights) -> ModelWeights {
    let round = |entries: &mut [f32]| entries.iter_mut().for_each(|x| *x = bf16::from_f32(*x).to_f32());
    let mut matrices: Vec<&mut Matrix> = vec![&mut weights.embedding];
    matrices.extend(weights.head.as_mut());
    for block in &mut weights.blocks {
        round(&mut block.attention_norm);
        round(&mut block.feed_forward_norm);
        let attention = [&mut block.q, &mut block.k, &mut block.v, &mut block.o];
        matrices.extend(attention);
        matrices.extend([&mut block.gate, &mut block.up, &mut block.down]);
    }
    for matrix in matrices {
        round(matrix.data_mut());
    }
    round(&mut weights.norm);
    weights
}

/// A copy of a case with one of its JSON files changed.
fn tampered(case: &str, file: &str, edit: impl FnOnce(&mut Value)) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        for entry in fs::read_dir(from).unwrap() {
            let from = entry.unwrap().path();
            let to = to.join(from.file_name().unwrap());
            if from.is_dir() {
                fs::create_dir(&to).unwrap();
                copy(&from, &to);
            } else {
                fs::copy(&from, &to).unwrap();
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    copy(&testdata("oracle/llama_untied").join(case), dir.path());
    let path = dir.path().join(file);
    let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut value);
    fs::write(&path, serde_json::to_vec(&value).unwrap()).unwrap();
    dir
}

fn scale(number: &mut Value, factor: f64) {
    *number = json!(number.as_f64().unwrap() * factor);
}

#[test]
fn a_recorded_number_that_is_off_by_a_little_is_over() {
    let mut backend = recorded("llama_untied");
    let sound = errors(&mut backend, &testdata("oracle/llama_untied/r4_cosine"));
    let tamper = |backend: &mut BurnBackend, records: &[&str], of: &str, at: usize, factor: f64| {
        let edit = |trace: &mut Value| {
            records.iter().for_each(|record| scale(&mut trace[record][of][at], factor));
        };
        let found = errors(backend, tampered("r4_cosine", "trace.json", edit).path());
        assert!(!found.within(&TOLERANCE), "{of} of {records:?} at {at} times {factor}: {found}");
        found
    };
    for records in [&["f32", "f64"][..], &["f32"]] {
        for (at, factor) in [(0, 1.0 + 1e-4), (5, 1.0 + 1e-4), (11, 1.0 - 1e-4)] {
            let found = tamper(&mut backend, records, "loss", at, factor);
            assert_eq!(Errors { loss: sound.loss, ..found }, sound);
            assert!((found.loss - 1e-4).abs() < 5e-6, "{found}");
        }
        tamper(&mut backend, records, "grad_norm", 7, 1.001);
        tamper(&mut backend, records, "eval_loss", 3, 1.0 + 1e-4);
    }
}

#[test]
fn a_wrong_alpha_is_over() {
    let alpha = |settings: &mut Value| scale(&mut settings["lora_alpha"], 1.01);
    for case in ["r4_cosine", "r8_linear"] {
        let case = tampered(case, "init/adapter_config.json", alpha);
        let found = errors(&mut recorded("llama_untied"), case.path());
        assert!(found.loss > TOLERANCE.loss && found.gradient > TOLERANCE.gradient, "{found}");
        assert!(!found.within(&TOLERANCE));
    }
}

#[test]
fn a_wrong_learning_rate_is_over() {
    let rate = |trace: &mut Value| scale(&mut trace["case"]["lr"], 1.01);
    let found = errors(&mut recorded("llama_untied"), tampered("r8_linear", "trace.json", rate).path());
    assert!(found.adapter.unwrap() > TOLERANCE.adapter && !found.within(&TOLERANCE), "{found}");
    assert!(found.gradient <= TOLERANCE.gradient, "the first gradient doesn't depend on it: {found}");
}

#[test]
fn a_wrong_rotary_base_is_over() {
    let dir = testdata("oracle/llama_untied");
    let mut config = ModelConfig::read(&dir).unwrap();
    assert_eq!(config.rotary, Rotary::Default { theta: 10_000.0 });
    config.rotary = Rotary::Default { theta: 10_100.0 };
    let weights = ModelWeights::read(&dir, &config).unwrap();
    let mut backend = BurnBackend::new(config, weights, &Device::flex());
    for case in ["r4_cosine", "r8_linear", "r16_const_clip"] {
        let found = errors(&mut backend, &dir.join(case));
        println!("theta off by 1 %: {found}");
        assert!(!found.within(&TOLERANCE), "{case}: {found}");
        assert!(found.loss > TOLERANCE.loss || found.gradient > TOLERANCE.gradient, "{case}: {found}");
    }
}
