//! What the optimizer keeps of each trained number.

use serde::{Deserialize, Serialize};

/// The optimizer of all adapters; weights and gradients are f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Optimizer {
    /// AdamW with two moments in f32, as this repository has it.
    #[default]
    AdamW,
    /// AdamW with two moments of 8 bits (Dettmers et al., 2022), as in ALTO's evaluation; their scales are not counted.
    AdamW8Bit,
}

impl Optimizer {
    /// Bytes of a trained number: weight, gradient and moments.
    pub fn bytes(self) -> u64 {
        8 + 2 * self.moment()
    }

    /// Bytes that an update moves for each: the gradient is read, weight and moments are read and written.
    pub(super) fn moved(self) -> u64 {
        12 + 4 * self.moment()
    }

    fn moment(self) -> u64 {
        match self {
            Optimizer::AdamW => 4,
            Optimizer::AdamW8Bit => 1,
        }
    }
}
