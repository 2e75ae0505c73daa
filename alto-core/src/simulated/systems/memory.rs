//! What fits on the devices.

use super::adapter_parallel;
use super::data_parallel;
use super::error::CostError;
use super::load::AdapterLoad;
use super::setup::{Setup, System};

impl Setup {
    /// Bytes that the fullest device needs to train these adapters.
    ///
    /// - *Model*: whole on each device where adapters are spread over devices, unless that takes more than half of
    ///   one; else each has its part.
    /// - *Adapters*: weight, gradient and two moments ([`Optimizer::bytes`](super::Optimizer::bytes)) on the device
    ///   that trains them, or spread like the model.
    /// - *Activations*: what backward reads of each token of a micro-batch, see
    ///   [`bytes_per_token`](Self::bytes_per_token).
    ///
    /// Systems that train one adapter after another need room for the largest alone.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn needed_bytes(&self, loads: &[AdapterLoad]) -> Result<u64, CostError> {
        self.check()?;
        let devices = self.devices as f64;
        let adapter = |load: &AdapterLoad| self.adapter_bytes(load);
        let activations = |load: &AdapterLoad| self.bytes_per_token() as f64 * load.tokens as f64;
        let both = |load: &AdapterLoad| self.trained_bytes(load);
        let largest = |bytes: &dyn Fn(&AdapterLoad) -> f64| loads.iter().map(bytes).fold(0.0, f64::max);
        let trained = match self.system {
            System::OneAfterAnother => largest(&both),
            System::AdapterParallel => {
                let (parts, _) = adapter_parallel::split(self, loads)?;
                parts.iter().map(|part| part.iter().map(both).sum()).fold(0.0, f64::max)
            }
            System::DataParallel => {
                largest(&|load| adapter(load) / devices + activations(&data_parallel::busiest(*load, self.devices)))
            }
            System::MLora | System::LoraFusion => loads.iter().map(both).sum::<f64>() / devices,
            System::Pipeline | System::TensorParallel => largest(&both) / devices,
        };
        Ok((self.base_bytes() + trained).ceil() as u64)
    }

    /// Whether these adapters fit.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn fits(&self, loads: &[AdapterLoad]) -> Result<bool, CostError> {
        Ok(self.needed_bytes(loads)? as f64 <= self.device.memory)
    }

    /// Bytes of an adapter: weights, gradients and moments.
    fn adapter_bytes(&self, load: &AdapterLoad) -> f64 {
        self.optimizer.bytes() as f64 * self.model.adapter_parameters(load.rank) as f64
    }

    /// Bytes of an adapter and of what is kept of its tokens.
    pub(super) fn trained_bytes(&self, load: &AdapterLoad) -> f64 {
        self.adapter_bytes(load) + self.bytes_per_token() as f64 * load.tokens as f64
    }

    /// Bytes of the model on each device.
    pub(super) fn base_bytes(&self) -> f64 {
        let is_whole = match self.system {
            System::OneAfterAnother => true,
            System::AdapterParallel => !adapter_parallel::is_cut(self),
            _ => false,
        };
        if is_whole { self.model_bytes() } else { self.model_bytes() / self.devices as f64 }
    }

    /// Bytes that are kept of each token from forward to backward, over all blocks: residual stream before and after
    /// each norm, queries, keys, values, attention's output, gate, up and their product. Where forward is
    /// [recomputed](Self::recompute), the input of every block and all of that of one.
    pub fn bytes_per_token(&self) -> u64 {
        let model = &self.model;
        let block = 4 * model.hidden + 2 * (model.queries() + model.keys()) + 3 * model.intermediate;
        let numbers = if self.recompute { model.layers * model.hidden + block } else { model.layers * block };
        (numbers * self.dtype.bytes()) as u64
    }
}
