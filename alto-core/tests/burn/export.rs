//! From training to PEFT's files and back.

use std::path::Path;

use alto_core::adapter::{Adapter, LoraPair};
use alto_core::backend::{Backend, JobState};
use alto_core::peft::{export, import};
use alto_core::tensor_file::TensorFile;

use super::setup::{ALL, alone, bits, job, join, losses, read, rejoin, small, some_rows, testdata, train};

/// The names and shapes in an adapter's file.
fn tensors(dir: &Path) -> Vec<(String, Vec<usize>)> {
    let file = TensorFile::open(&dir.join("adapter_model.safetensors")).unwrap();
    let mut tensors: Vec<_> =
        file.names().map(|name| (name.to_owned(), file.shape(name).expect("its own name").to_vec())).collect();
    tensors.sort();
    tensors
}

/// The largest entry of `scale b a`.
fn largest_delta(adapter: &Adapter, LoraPair { a, b }: &LoraPair) -> f64 {
    let entry = |row: usize, column: usize| -> f64 {
        let rank = 0..adapter.config.rank;
        rank.map(|r| f64::from(b.data()[row * b.columns() + r]) * f64::from(a.data()[r * a.columns() + column])).sum()
    };
    let entries = (0..b.rows()).flat_map(|row| (0..a.columns()).map(move |column| (row, column)));
    entries.map(|(row, column)| (adapter.config.scale() * entry(row, column)).abs()).fold(0.0, f64::max)
}

#[test]
fn a_trained_adapter_is_written_as_peft_writes_it_and_read_back_whole() {
    let rows = some_rows();
    // As wide as the recorded runs of rank 8.
    let trained = job("trained", 8, &ALL);
    let (_, state) = alone(&mut small(), &trained, &rows, 10);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("adapter");
    export(&state.adapter, &dir, "llama_untied").unwrap();
    assert_eq!(import(&dir).unwrap(), state.adapter);
    assert_eq!(tensors(&dir), tensors(&testdata("oracle/llama_untied/r8_linear/final")));
    for (path, pair) in &state.adapter.modules {
        let delta = largest_delta(&state.adapter, pair);
        assert!(delta > 1e-4, "{path}: the largest entry of the delta is {delta:e}");
    }
}

#[test]
fn an_adapter_read_back_goes_on_as_the_one_in_memory() {
    let rows = some_rows();
    let mut trained = job("trained", 5, &["q_proj", "down_proj"]);
    trained.adapter.rank_stabilized = true;
    let (_, state) = alone(&mut small(), &trained, &rows, 6);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("adapter");
    export(&state.adapter, &dir, "llama_untied").unwrap();
    let on = |adapter: Adapter| {
        let mut backend = small();
        let mut tenant = rejoin(&mut backend, &trained, &rows, Some(JobState::starting_from(adapter)));
        train(&mut backend, &mut [&mut tenant], 4);
        losses(&read(&mut backend), tenant.slot)
    };
    let (found, expected) = (on(import(&dir).unwrap()), on(state.adapter));
    assert_eq!(bits(&found), bits(&expected));
}

#[test]
fn a_job_that_trained_nothing_is_an_error_not_a_file() {
    let rows = some_rows();
    let fresh = job("fresh", 3, &ALL);
    let mut backend = small();
    let tenant = join(&mut backend, &fresh, &rows);
    let state = backend.snapshot(tenant.slot).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("adapter");
    export(&state.adapter, &dir, "llama_untied").unwrap_err();
    assert!(!dir.exists());
}
