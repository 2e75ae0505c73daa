//! Recorded transformers + PEFT runs, replayed; and that the check notices what is off.

use std::error::Error;
use std::fs;
use std::iter::successors;
use std::path::{Path, PathBuf};

use alto_core::burn::BurnBackend;
use alto_core::dtype::Dtype;
use alto_core::matrix::Matrix;
use alto_core::model::{ModelConfig, ModelWeights, Rotary};
use alto_core::testing::parity::{CaseOutcome, Errors, TOLERANCE, case_dtype, cases, run_case};
use half::bf16;
use serde_json::{Value, json};

use super::device::device;
use super::setup::{recorded, testdata};

/// The errors of one supervised case.
pub(crate) fn errors(backend: &mut BurnBackend, case: &Path) -> Errors {
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
            CaseOutcome::OtherDtype { case, .. } => assert!(name.starts_with(case.name()), "{name} is in {case}"),
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
            let mut backend = BurnBackend::new(config, weights, &device());
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
    let mut rounded = BurnBackend::new(config, weights, &device());
    let mut stored = recorded("llama_untied_bf16");
    let in_f32 = |case: &&PathBuf| !case.ends_with("dpo_r8") && case_dtype(case) == Dtype::F32;
    for case in cases(&dir).unwrap().iter().filter(in_f32) {
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
pub(crate) fn tampered(case: &str, file: &str, edit: impl FnOnce(&mut Value)) -> tempfile::TempDir {
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

/// r4_cosine, whose references end together, changed to say that they don't.
fn said_to_be_chaotic(backend: &mut BurnBackend, record: &str, of: &str, at: usize, factor: f64) -> Errors {
    let edit = |trace: &mut Value| {
        trace["final_maxdiff_f32_f64"] = json!(1.0);
        scale(&mut trace[record][of][at], factor);
    };
    errors(backend, tampered("r4_cosine", "trace.json", edit).path())
}

#[test]
fn no_run_is_chaotic_before_its_first_update() {
    let mut backend = recorded("llama_untied");
    for (of, factor) in [("loss", 1.001), ("grad_norm", 1.005)] {
        let found = said_to_be_chaotic(&mut backend, "f32", of, 0, factor);
        assert!(found.adapter.is_some() && found.steps == 12 && !found.within(&TOLERANCE), "{of}: {found}");
        // Also where the other precision's number is off.
        let found = said_to_be_chaotic(&mut backend, "f64", of, 0, factor);
        assert!(found.adapter.is_some() && found.steps == 12 && found.within(&TOLERANCE), "{of}: {found}");
    }
}

#[test]
fn references_that_are_suddenly_far_apart_do_not_end_the_comparison() {
    let mut backend = recorded("llama_untied");
    for (of, narrow, wide) in [("loss", 1.0019, 1.0021), ("grad_norm", 1.0095, 1.0105)] {
        let found = said_to_be_chaotic(&mut backend, "f32", of, 3, narrow);
        assert!(found.adapter.is_none() && found.steps == 4 && found.within(&TOLERANCE), "{of}: {found}");
        let found = said_to_be_chaotic(&mut backend, "f32", of, 3, wide);
        assert!(found.adapter.is_some() && found.steps == 12 && !found.within(&TOLERANCE), "{of}: {found}");
        let found = said_to_be_chaotic(&mut backend, "f64", of, 3, 2.0);
        assert!(found.adapter.is_some() && found.steps == 12 && found.within(&TOLERANCE), "{of}: {found}");
    }
}

/// Why a case can't be run, with causes.
pub(crate) fn failure(backend: &mut BurnBackend, case: &Path) -> String {
    match run_case(backend, case) {
        outcome @ CaseOutcome::Failed(_) if outcome.passes() => panic!("a failed case passes: {outcome:?}"),
        CaseOutcome::Failed(error) => {
            let error: &dyn Error = &error;
            let causes = successors(Some(error), |&error| error.source());
            causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
        }
        other => panic!("{}: {other:?}", case.display()),
    }
}

type Edit = fn(&mut Value);

/// Each edit of r4_cosine's trace makes a case that fails, for the reason given.
fn each_fails(edits: &[(Edit, &str)]) {
    let mut backend = recorded("llama_untied");
    for (edit, reason) in edits {
        let case = tampered("r4_cosine", "trace.json", edit);
        let found = failure(&mut backend, case.path());
        let file = case.path().join("trace.json");
        assert!(found.starts_with(&file.display().to_string()) && found.contains(reason), "{found}, not {reason}");
    }
}

#[test]
fn an_evaluation_that_would_never_be_compared_is_refused() {
    each_fails(&[
        (|trace| trace["f32"]["eval_step"] = json!([0, 4, 8, 999]), "f32.eval_step[3] is 999"),
        (|trace| trace["f32"]["eval_step"] = json!([0, 4, 8, 13]), "of at most 12"),
        (|trace| trace["f32"]["eval_step"] = json!([0, 4, 4, 12]), "f32.eval_step[2] is 4"),
        (|trace| trace["f64"]["eval_step"] = json!([0, 8, 4, 12]), "f64.eval_step[2] is 4"),
    ]);
}

#[test]
fn only_a_named_kind_is_unsupported() {
    each_fails(&[
        (|trace| drop(trace.as_object_mut().unwrap().remove("kind")), "missing field `kind`"),
        (|trace| *trace = json!({}), "missing field `kind`"),
        (|trace| trace["kind"] = json!(5), "invalid type: integer `5`, expected a string"),
        (|trace| trace["kind"] = json!(null), "invalid type: null, expected a string"),
        (|trace| *trace = json!([]), "invalid type: sequence, expected a map"),
        (|trace| *trace = json!(["dpo"]), "invalid type: sequence, expected a map"),
        (|trace| *trace = json!(0), "invalid type: integer `0`, expected a map"),
    ]);
    let case = tampered("r4_cosine", "trace.json", |trace| trace["kind"] = json!("grpo"));
    let outcome = run_case(&mut recorded("llama_untied"), case.path());
    assert!(matches!(&outcome, CaseOutcome::UnsupportedKind { kind } if kind == "grpo"), "{outcome:?}");
}

fn push(list: &mut Value, entry: i64) {
    list.as_array_mut().unwrap().push(json!(entry));
}

#[test]
fn a_row_whose_lists_do_not_fit_together_is_refused() {
    each_fails(&[
        (|trace| push(&mut trace["eval"][0]["attention_mask"][0], 1), "row 0 of eval[0]: attention_mask has "),
        (|trace| trace["eval"][0]["input_ids"][0] = json!([]), "row 0 of eval[0]: labels has "),
        (|trace| push(&mut trace["train"][3][0]["labels"][0], 7), "row 0 of train[3][0]: labels has "),
        (|trace| push(&mut trace["eval"][1]["input_ids"][2], 7), "row 2 of eval[1]: labels has "),
        (
            |trace| trace["train"][1][0]["attention_mask"][0][0] = json!(0),
            "row 0 of train[1][0]: attention_mask[1] is 1",
        ),
        (|trace| trace["eval"][0]["attention_mask"][1][2] = json!(2), "row 1 of eval[0]: attention_mask[2] is 2"),
    ]);
}

#[test]
fn a_first_evaluation_row_without_tokens_is_refused() {
    each_fails(&[
        (
            |trace| {
                let list = trace["eval"][0]["attention_mask"][0].as_array_mut().unwrap();
                list.iter_mut().for_each(|seen| *seen = json!(0));
            },
            "row 0 of eval[0]: it has no tokens",
        ),
        (
            |trace| {
                for list in ["input_ids", "labels", "attention_mask"] {
                    trace["eval"][0][list][0] = json!([]);
                }
            },
            "row 0 of eval[0]: it has no tokens",
        ),
        (|trace| trace["eval"] = json!([]), "row 0 of eval[0]: it has no tokens"),
    ]);
}

#[test]
fn a_label_that_no_token_id_can_be_is_refused() {
    let large = "labels[0] is 4294967296, expected a token id of at most 4294967295";
    each_fails(&[
        (|trace| trace["train"][0][0]["labels"][0][0] = json!(1_u64 << 32), large),
        (|trace| trace["eval"][0]["labels"][0][0] = json!(1_u64 << 32), large),
    ]);
    // Whatever else isn't in the vocabulary, the backend notices.
    let edit = |trace: &mut Value| trace["train"][0][0]["labels"][0][1] = json!(u32::MAX);
    let found = failure(&mut recorded("llama_untied"), tampered("r4_cosine", "trace.json", edit).path());
    assert!(found.contains("4294967295"), "{found}");
}

#[test]
fn a_case_that_lost_its_trace_fails() {
    let dir = tempfile::tempdir().unwrap();
    for (folder, inside) in [("a_good", "init"), ("b_lost", "init"), ("no_case", "else")] {
        fs::create_dir_all(dir.path().join(folder).join(inside)).unwrap();
    }
    fs::write(dir.path().join("a_good/trace.json"), "{}").unwrap();
    let lost = dir.path().join("b_lost");
    assert_eq!(cases(dir.path()).unwrap(), [dir.path().join("a_good"), lost.clone()]);
    let found = failure(&mut recorded("llama_untied"), &lost);
    assert!(found.contains("can't read") && found.contains("b_lost/trace.json"), "{found}");
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
    let mut backend = BurnBackend::new(config, weights, &device());
    for case in ["r4_cosine", "r8_linear", "r16_const_clip"] {
        let found = errors(&mut backend, &dir.join(case));
        println!("theta off by 1 %: {found}");
        assert!(!found.within(&TOLERANCE), "{case}: {found}");
        assert!(found.loss > TOLERANCE.loss || found.gradient > TOLERANCE.gradient, "{case}: {found}");
    }
}
