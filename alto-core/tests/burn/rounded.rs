//! Models that are frozen in 16 bits: what they are compared with, and what says no.

use std::path::PathBuf;

use alto_core::burn::BurnBackend;
use alto_core::dtype::Dtype;
use alto_core::model::{ModelConfig, ModelWeights};
use alto_core::testing::parity::{CaseOutcome, TOLERANCE, case_dtype, cases, run_case};
use burn::tensor::Device;
use serde_json::json;

use super::parity::{errors, failure, tampered};
use super::setup::{recorded, testdata};

fn rounded_cases(model: &str) -> Vec<PathBuf> {
    let all = cases(&testdata("oracle").join(model)).unwrap();
    all.into_iter().filter(|case| case_dtype(case) == Dtype::Bf16).collect()
}

fn model(name: &str) -> (ModelConfig, ModelWeights) {
    let dir = testdata("oracle").join(name);
    let config = ModelConfig::read(&dir).unwrap();
    let weights = ModelWeights::read(&dir, &config).unwrap();
    (config, weights)
}

#[test]
fn a_case_in_bf16_is_not_run_in_f32() {
    for (model, count) in [("llama_untied", 2), ("llama_tied", 1)] {
        let cases = rounded_cases(model);
        assert_eq!(cases.len(), count);
        for case in cases {
            let outcome = run_case(&mut recorded(model), &case);
            let other = matches!(outcome, CaseOutcome::OtherDtype { case: Dtype::Bf16, backend: Dtype::F32 });
            assert!(other && !outcome.passes(), "{outcome:?}");
        }
    }
}

#[test]
fn flex_refuses_what_its_kernels_lack() {
    for dtype in [Dtype::F16, Dtype::Bf16] {
        let (config, weights) = model("llama_untied");
        let error = BurnBackend::with_dtype(config, weights, &Device::flex(), dtype).unwrap_err();
        assert_eq!(error.to_string(), format!("Flex(Cpu) can't compute in {dtype}, only in f32"));
    }
    let (config, weights) = model("llama_untied");
    assert!(BurnBackend::with_dtype(config, weights, &Device::flex(), Dtype::F32).is_ok());
}

/// The record in f32 is of the rounded weights: Flex, computing with those in f32, is as close to it as to any other.
#[test]
fn the_f32_record_of_a_case_in_bf16_is_replayed_with_the_rounded_weights() {
    for case in ["bf16_r4_cosine", "bf16_r8_qv_nowd"] {
        let case = tampered(case, "trace.json", |trace| {
            trace["dtype"] = json!("f32");
            trace["f64"] = trace["f32"].clone();
        });
        let found = errors(&mut recorded("llama_untied_bf16"), case.path());
        assert!(found.within(&TOLERANCE), "{found}");
        let found = errors(&mut recorded("llama_untied"), case.path());
        assert!(!found.within(&TOLERANCE), "unrounded weights give the same: {found}");
    }
}

#[test]
fn a_reference_that_is_far_from_itself_is_refused() {
    let mut backend = recorded("llama_untied");
    let stated = [("loss", 0.1), ("grad_norm", 0.5), ("gradient", 1.0), ("logits", 5.0), ("adapter", 0.1)];
    for (of, value) in stated {
        let case = tampered("bf16_r4_cosine", "trace.json", |trace| trace["bf16"]["maxdiff"][of] = json!(value));
        let found = failure(&mut backend, case.path());
        assert!(found.contains(&format!("maxdiff.{of} in bf16 is {value}")), "{found}");
    }
    for of in ["loss", "eval_loss", "grad_norm"] {
        let case = tampered("bf16_r4_cosine", "trace.json", |trace| {
            let first = &mut trace["bf16"][of][0];
            *first = json!(first.as_f64().unwrap() * 1.1);
        });
        let found = failure(&mut backend, case.path());
        assert!(found.contains("in bf16 is"), "{of}: {found}");
    }
    let case = tampered("bf16_r4_cosine", "trace.json", |trace| drop(trace.as_object_mut().unwrap().remove("bf16")));
    assert!(failure(&mut backend, case.path()).contains("missing field `bf16`"));
}
