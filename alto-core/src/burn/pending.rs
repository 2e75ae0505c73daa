//! What was computed but not yet read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use burn::tensor::Tensor;

use super::transfer::Reads;
use crate::backend::{BackendError, Slot, StepReport};

/// Numbers that wait on the device for the next read, which takes them all at once.
#[derive(Debug, Default)]
pub(super) struct Unread {
    tensors: Vec<Tensor<1>>,
    entries: usize,
}

impl Unread {
    /// Adds a tensor; where its entries will be among all that are read.
    pub(super) fn push(&mut self, tensor: Tensor<1>) -> Range<usize> {
        let [entries] = tensor.dims();
        self.tensors.push(tensor);
        self.entries += entries;
        self.entries - entries..self.entries
    }

    /// Everything, in one transfer; nothing is left then, unless the device failed.
    pub(super) fn read(&mut self, reads: &Reads) -> Result<Vec<f32>, BackendError> {
        let numbers = reads.read(self.tensors.clone())?;
        *self = Self::default();
        Ok(numbers)
    }
}

/// A job's part of one micro-batch: log-probabilities among the unread numbers, and what their sum is divided by.
#[derive(Debug, Clone)]
pub(super) struct LossPart {
    pub(super) log_probs: Range<usize>,
    pub(super) divisor: f64,
}

/// The loss of one optimizer step of one job, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Loss {
    /// Of micro-batches that were read.
    known: f64,
    unread: Vec<LossPart>,
}

impl Loss {
    pub(super) fn push(&mut self, part: LossPart) {
        self.unread.push(part);
    }

    /// Takes its parts from the numbers that were just read; the loss so far.
    pub(super) fn resolve(&mut self, numbers: &[f32]) -> f64 {
        // No rows add nothing, whatever they would be divided by.
        for LossPart { log_probs, divisor } in self.unread.drain(..).filter(|part| !part.log_probs.is_empty()) {
            // Summed in f64: thousands of tokens would lose digits in f32.
            let sum: f64 = numbers[log_probs].iter().map(|&l| f64::from(l)).sum();
            self.known -= sum / divisor;
        }
        self.known
    }
}

/// An optimizer step whose numbers are still on the device.
#[derive(Debug)]
pub(super) struct PendingStep {
    pub(super) slot: Slot,
    pub(super) step: u64,
    pub(super) learning_rate: f64,
    pub(super) loss: Loss,
    /// The job's row of the optimizer's report, among the unread numbers.
    pub(super) optimizer: usize,
    /// What the optimizer's span indices stand for.
    pub(super) tensors: Arc<Vec<String>>,
}

impl PendingStep {
    /// The report, from the numbers that were just read.
    pub(super) fn report(mut self, numbers: &[f32]) -> StepReport {
        let loss = self.loss.resolve(numbers);
        let (grad_norm, span) = (f64::from(numbers[self.optimizer]), numbers[self.optimizer + 1]);
        let tensor = (span >= 0.0).then(|| self.tensors[span as usize].clone());
        let not_finite = if loss.is_finite() { tensor } else { Some("loss".to_string()) };
        StepReport {
            slot: self.slot,
            step: self.step,
            loss,
            grad_norm,
            learning_rate: self.learning_rate,
            not_finite,
            metrics: BTreeMap::new(),
        }
    }
}
