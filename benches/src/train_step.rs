//! Whole train steps of a small model, at one, 4, 16 and 64 adapters.

use std::cell::RefCell;

use alto_core::backend::{Backend, Slot};
use alto_core::batch::{Batch, Lane, Objective};
use alto_core::burn::BurnBackend;
use burn::tensor::Device;

use crate::model::{Shape, job, training_batch};

const SHAPE: Shape = Shape { hidden: 128, layers: 2, heads: 4, kv_heads: 2, intermediate: 384, vocabulary: 4096 };
const RANK: usize = 8;
/// Tokens of a row, one fewer than are drawn: the last only ever is a target.
const LENGTH: usize = 128;

/// A backend with its adapters attached, and a batch for them.
pub struct TrainStep {
    /// Adapters, and rows of each.
    pub name: String,
    /// Tokens that one step trains on.
    pub tokens: usize,
    backend: RefCell<BurnBackend>,
    batch: Batch,
}

/// Steps of one, 4, 16 and 64 adapters over the same 64 rows, then of fewer with as many rows each as the 64 have.
pub fn train_steps() -> Vec<TrainStep> {
    let constant_rows = [1, 4, 16, 64].map(|adapters| TrainStep::new(adapters, 64 / adapters));
    let constant_share = [1, 4, 16].map(|adapters| TrainStep::new(adapters, 1));
    constant_rows.into_iter().chain(constant_share).collect()
}

impl TrainStep {
    /// This many adapters of rank 8 with this many rows of 128 tokens each.
    pub fn new(adapters: usize, rows: usize) -> Self {
        let mut backend = BurnBackend::new(SHAPE.config(), SHAPE.weights(), &Device::flex());
        let attach = |i: usize| backend.attach(&job(format!("job {i}"), RANK, rows), None).expect("a job that fits");
        let slots: Vec<Slot> = (0..adapters).map(attach).collect();
        let batch = training_batch(&slots, &SHAPE.rows(adapters * rows, LENGTH + 1), rows);
        let name = format!("adapters: {adapters}, rows of each: {rows}");
        Self { name, tokens: batch.tokens.len(), backend: RefCell::new(backend), batch }
    }

    /// One optimizer step of every adapter.
    ///
    /// # Panics
    /// If the backend fails.
    pub fn run(&self) {
        self.backend.borrow_mut().step(&self.batch).expect("a batch that fits");
    }

    /// Checks that the adapters start from the base model's losses, and that these fall.
    ///
    /// # Panics
    /// If they don't.
    pub fn check(&self) {
        let mut base = Batch { lanes: Vec::new(), ..self.batch.clone() };
        for Lane { rows, divisor, .. } in &self.batch.lanes {
            let objective = Objective::default();
            base.lanes.push(Lane { slot: None, rows: *rows, objective, divisor: *divisor, last: false });
        }
        let expected = self.backend.borrow_mut().evaluate(&base).expect("a batch that fits");
        self.run();
        self.run();
        let reports = self.backend.borrow_mut().read().expect("the device works");
        let (first, second) = reports.split_at(expected.len());
        for ((first, second), expected) in first.iter().zip(second).zip(expected) {
            let base = expected.sum / expected.count as f64;
            let error = (first.loss - base).abs() / base;
            assert!(error < 1e-5, "{}: first loss {}, the base model's is {base}", self.name, first.loss);
            assert!(second.loss < first.loss, "{}: losses {}, then {}", self.name, first.loss, second.loss);
        }
    }

    /// Takes the reports of the steps so far, which otherwise pile up.
    ///
    /// # Panics
    /// If the backend fails.
    pub fn forget(&self) {
        self.backend.borrow_mut().read().expect("the device works");
    }
}
