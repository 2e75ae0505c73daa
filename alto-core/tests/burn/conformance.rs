//! The suite that every backend has to pass.

use alto_core::backend::Backend;
use alto_core::job::AccumulationMode;
use alto_core::testing::backend_conformance;

use super::setup::{recorded, some_rows, unlike_jobs};

fn conforms(model: &str) {
    let mut jobs = unlike_jobs().to_vec();
    jobs[0].accumulation = 3;
    jobs[2].accumulation = 2;
    jobs[2].accumulation_mode = AccumulationMode::MeanOfMeans;
    let mut make = || -> Box<dyn Backend> { Box::new(recorded(model)) };
    backend_conformance(&mut make, &jobs, &some_rows().examples()[..5], 1e-5).unwrap();
}

#[test]
fn the_burn_backend_conforms_within_float_reordering() {
    conforms("llama_untied");
}

#[test]
fn a_model_whose_head_is_its_embedding_conforms_too() {
    conforms("llama_tied");
}
