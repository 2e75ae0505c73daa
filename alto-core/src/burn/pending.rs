//! Steps that were queued but not yet read.

use std::collections::BTreeMap;

use burn::tensor::Tensor;

use crate::backend::{BackendError, Slot, StepReport};

/// One lane's part of a micro-batch's log-probabilities.
#[derive(Debug, Clone)]
pub(super) struct LossPart {
    /// Log-probabilities of the micro-batch's labelled tokens.
    pub(super) log_probs: Tensor<1>,
    /// The lane's among them.
    pub(super) range: std::ops::Range<usize>,
    /// What their sum is divided by.
    pub(super) divisor: f64,
}

/// An optimizer step whose numbers are still on the device.
#[derive(Debug)]
pub(super) struct PendingStep {
    pub(super) slot: Slot,
    pub(super) step: u64,
    pub(super) learning_rate: f64,
    pub(super) loss: Vec<LossPart>,
    /// The optimizer's report, and the job's row in it.
    pub(super) optimizer: (Tensor<2>, usize),
    /// What the optimizer's span indices stand for.
    pub(super) tensors: std::sync::Arc<Vec<String>>,
}

/// A tensor's entries, read from the device.
pub(super) fn read<const D: usize>(tensor: &Tensor<D>) -> Result<Vec<f32>, BackendError> {
    let data = tensor.to_data();
    data.try_into_vec().map_err(|error| BackendError::Device { source: format!("{error:?}").into() })
}

impl PendingStep {
    /// Waits for the device.
    pub(super) fn report(self) -> Result<StepReport, BackendError> {
        let mut loss = 0.0;
        // No rows add nothing, whatever they would be divided by.
        for LossPart { log_probs, range, divisor } in self.loss.iter().filter(|part| !part.range.is_empty()) {
            // Summed in f64: thousands of tokens would lose digits in f32.
            let sum: f64 = read(&log_probs.clone().slice([range.clone()]))?.iter().map(|&l| f64::from(l)).sum();
            loss -= sum / divisor;
        }
        let (report, row) = self.optimizer;
        let entries = read(&report)?;
        let (grad_norm, span) = (f64::from(entries[2 * row]), entries[2 * row + 1]);
        let tensor = (span >= 0.0).then(|| self.tensors[span as usize].clone());
        let not_finite = if loss.is_finite() { tensor } else { Some("loss".to_string()) };
        Ok(StepReport {
            slot: self.slot,
            step: self.step,
            loss,
            grad_norm,
            learning_rate: self.learning_rate,
            not_finite,
            metrics: BTreeMap::new(),
        })
    }
}
