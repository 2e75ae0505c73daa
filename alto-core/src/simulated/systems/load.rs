//! What an adapter brings to an optimizer step.

use serde::{Deserialize, Serialize};

/// One adapter's share of an optimizer step. Its seven target modules are all linear layers of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdapterLoad {
    /// Its rank.
    pub rank: usize,
    /// Rows of a micro-batch.
    pub rows: usize,
    /// Tokens of a micro-batch, of all its rows.
    pub tokens: u64,
    /// Micro-batches of the optimizer step.
    pub micro_batches: usize,
}

impl AdapterLoad {
    /// One micro-batch of so many rows of so many tokens.
    pub fn new(rank: usize, rows: usize, row_tokens: u64) -> AdapterLoad {
        AdapterLoad { rank, rows, tokens: rows as u64 * row_tokens, micro_batches: 1 }
    }

    /// Sum over the rows of their lengths squared, rows being of one length.
    pub(super) fn squared_tokens(&self) -> f64 {
        let tokens = self.tokens as f64;
        if self.rows == 0 { 0.0 } else { tokens * tokens / self.rows as f64 }
    }
}
