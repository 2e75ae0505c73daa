//! What a backend says of its memory.

use alto_core::backend::{Backend, Memory};

use super::setup::{ALL, alone, job, small, some_rows};

#[test]
fn the_budget_is_what_was_set() {
    assert_eq!(small().memory().budget, None);
    assert_eq!(small().with_memory_budget(3 << 30).memory().budget, Some(3 << 30));
}

#[test]
fn the_peak_is_never_under_what_is_in_use() {
    let rows = some_rows();
    let mut backend = small();
    for _ in 0..3 {
        alone(&mut backend, &job("job", 8, &ALL), &rows, 2);
        let Memory { in_use, peak, .. } = backend.memory();
        assert!(peak >= in_use, "{peak} at the peak, {in_use} in use");
        // The weights in f32: two blocks of 45,056 entries, embedding and head of 16,384.
        assert!(in_use >= 4 * (2 * 43_008 + 2 * 16_384), "{in_use} bytes hold a model");
    }
}

/// Weights, gradients and two moments of four bytes each, for every entry of both factors.
#[test]
fn an_adapter_takes_sixteen_bytes_an_entry() {
    let backend = small();
    // Inputs and outputs of the seven layers of a block, and two blocks.
    let widths = (64 + 64) + 2 * (64 + 32) + (64 + 64) + 2 * (64 + 160) + (160 + 64);
    assert_eq!(backend.adapter_bytes(&job("all", 1, &ALL)), 16 * 2 * widths);
    assert_eq!(backend.adapter_bytes(&job("all", 100, &ALL)), 100 * 16 * 2 * widths);
    assert_eq!(backend.adapter_bytes(&job("two", 3, &["k_proj", "down_proj"])), 16 * 2 * 3 * (96 + 224));
}

/// The bytes that are promised are those of the state that comes out.
#[test]
fn a_state_has_as_many_entries_as_its_bytes_say() {
    let job = job("job", 5, &["q_proj", "v_proj", "up_proj"]);
    let (_, state) = alone(&mut small(), &job, &some_rows(), 1);
    let entries: usize = state.adapter.modules.values().map(|p| p.a.data().len() + p.b.data().len()).sum();
    assert_eq!(small().adapter_bytes(&job), 16 * entries as u64);
}
