//! What a simulated device charges.

use serde::{Deserialize, Serialize};

use super::backend::SimulationError;

/// Time and memory as linear functions of what a batch holds; everything costs nothing by default.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CostModel {
    /// Seconds that each step and each evaluation takes whatever its batch.
    pub launch_seconds: f64,
    /// The same for an evaluation, if it isn't that.
    pub evaluation_launch_seconds: Option<f64>,
    /// Seconds per trained token.
    pub seconds_per_token: f64,
    /// Seconds per evaluated token.
    pub seconds_per_evaluated_token: f64,
    /// Bytes always in use: the base model.
    pub fixed_bytes: u64,
    /// Bytes per token of a batch, while it runs.
    pub bytes_per_token: u64,
    /// Bytes of an attached adapter, per rank and target module: weights, gradients and optimizer state.
    pub adapter_bytes_per_rank: u64,
    /// Bytes that may be used; what goes beyond is refused. `None` is no limit.
    pub budget: Option<u64>,
}

impl CostModel {
    /// Seconds that each evaluation takes whatever its batch.
    pub(super) fn evaluation_launch(&self) -> f64 {
        self.evaluation_launch_seconds.unwrap_or(self.launch_seconds)
    }

    /// Checks that no time is negative or no number.
    pub(super) fn check(&self) -> Result<(), SimulationError> {
        let times = [
            ("launch_seconds", self.launch_seconds),
            ("evaluation_launch_seconds", self.evaluation_launch()),
            ("seconds_per_token", self.seconds_per_token),
            ("seconds_per_evaluated_token", self.seconds_per_evaluated_token),
        ];
        match times.into_iter().find(|(_, value)| !value.is_finite() || *value < 0.0) {
            Some((setting, value)) => Err(SimulationError::BadCost { setting, value }),
            None => Ok(()),
        }
    }
}
