//! What a simulated backend is charged with.

use alto_sched::{Coefficients, MemoryModel};

use super::error::CostError;
use super::load::AdapterLoad;
use super::setup::{Setup, System};
use crate::simulated::CostModel;

impl Setup {
    /// The linear cost model that agrees with this setup on a pass and update of these adapters, and on a pass of one
    /// token of each: between them it's off by what a roofline bends.
    ///
    /// Memory is that of all devices together. An evaluation is a pass without its backward, half the time of
    /// one that recomputes nothing: a frozen layer's backward costs what its forward does.
    /// [`SimulatedBackend::timed_by`](crate::simulated::SimulatedBackend::timed_by) is charged exactly instead.
    ///
    /// # Errors
    /// As [`check`](Setup::check).
    pub fn cost_model(&self, loads: &[AdapterLoad]) -> Result<CostModel, CostError> {
        let tokens: u64 = loads.iter().map(|load| load.tokens).sum();
        let small: Vec<AdapterLoad> = loads.iter().map(|load| AdapterLoad { rows: 1, tokens: 1, ..*load }).collect();
        let most = self.pass(loads)?.seconds();
        let least = self.pass(&small)?.seconds();
        let more = tokens.saturating_sub(small.len() as u64).max(1) as f64;
        let per_token = (most - least).max(0.0) / more;
        let launch = (most - per_token * tokens as f64).max(0.0) + self.update(loads)?.seconds();
        let forward = Setup { recompute: false, ..self.clone() };
        let evaluated = (forward.pass(loads)?.seconds() - forward.pass(&small)?.seconds()).max(0.0) / more / 2.0;
        let devices = self.devices as f64;
        let per_rank = self.optimizer.bytes() as f64 * self.model.adapter_parameters(1) as f64 / 7.0;
        Ok(CostModel {
            evaluation_launch_seconds: None,
            launch_seconds: launch,
            seconds_per_token: per_token,
            seconds_per_evaluated_token: evaluated,
            fixed_bytes: (devices * self.base_bytes()).ceil() as u64,
            bytes_per_token: self.bytes_per_token(),
            adapter_bytes_per_rank: per_rank.ceil() as u64,
            budget: Some((devices * self.device.memory) as u64),
        })
    }

    /// What tells a trainer which of these adapters fit together, out of the memory of all devices.
    ///
    /// Adapters are dealt out whole, by their bytes where memory is scarce, so that the fullest device has at most `1 / d`
    /// of all and `(d - 1) / d` of the largest (list scheduling; Graham, 1969): the margin.
    ///
    /// # Errors
    /// As [`check`](Setup::check).
    pub fn memory_model(&self, loads: &[AdapterLoad]) -> Result<MemoryModel, CostError> {
        self.check()?;
        let per_token = self.bytes_per_token() as f64;
        let bytes = |load: &AdapterLoad| self.trained_bytes(load);
        let margin = match self.system {
            System::AdapterParallel => (self.devices as f64 - 1.0) * loads.iter().map(bytes).fold(0.0, f64::max),
            _ => 0.0,
        };
        let fixed = self.devices as f64 * self.base_bytes();
        let coefficients = Coefficients { fixed, per_token, per_squared_token: 0.0, margin };
        Ok(MemoryModel::from_coefficients(coefficients).expect("sums of finite positive numbers"))
    }
}
