//! The suite that every backend has to pass.

use alto_core::backend::Backend;
use alto_core::job::AccumulationMode;
use alto_core::testing::backend_conformance;

use super::setup::{recorded, some_rows, unlike_jobs};

#[test]
fn the_burn_backend_conforms_within_float_reordering() {
    let mut jobs = unlike_jobs().to_vec();
    jobs[0].accumulation = 3;
    jobs[2].accumulation = 2;
    jobs[2].accumulation_mode = AccumulationMode::MeanOfMeans;
    for model in ["llama_untied", "llama_tied"] {
        let mut make = || -> Box<dyn Backend> { Box::new(recorded(model)) };
        backend_conformance(&mut make, &jobs, &some_rows().examples()[..5], 1e-5).unwrap();
    }
}
