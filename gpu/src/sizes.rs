//! What is timed: the file that `torch_times.py` reads too, so that both time the same.

use alto_core::job::{AccumulationMode, AdamW, AdapterConfig, Decay, Job, Schedule};
use alto_core::model::{Linear, ModelConfig, Rotary};
use serde::Deserialize;

/// The model's shape, the adapters, the batches, and how often each is timed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sizes {
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) intermediate: usize,
    pub(crate) vocabulary: usize,
    pub(crate) adapters: usize,
    pub(crate) rank: usize,
    /// Tokens of a row.
    pub(crate) row: usize,
    /// Rows of each adapter, in one batch after another.
    pub(crate) batches: Vec<usize>,
    /// Entries copied to measure the memory's bandwidth.
    pub(crate) copied: usize,
    /// Samples of each time, of which the median counts.
    pub(crate) samples: usize,
    /// What one sample takes at least, by calling often enough.
    pub(crate) sample_seconds: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    full: Sizes,
    rehearsal: Sizes,
}

impl Sizes {
    /// Those of a rehearsal are a few thousand times smaller.
    pub(crate) fn read(rehearsal: bool) -> Self {
        let file: File = serde_json::from_str(include_str!("../sizes.json")).expect("a file of this program");
        if rehearsal { file.rehearsal } else { file.full }
    }

    /// Tokens of a batch with so many rows for each adapter.
    pub(crate) fn tokens(&self, batch: usize) -> usize {
        self.adapters * batch * self.row
    }

    /// The shapes of a block's linear layers, `[d_out, d_in]`.
    pub(crate) fn linears_of_block(&self) -> [[usize; 2]; 7] {
        let config = self.config();
        Linear::ALL.map(|linear| linear.shape(&config))
    }

    /// The distinct ones among them.
    pub(crate) fn linears(&self) -> Vec<[usize; 2]> {
        let mut shapes = self.linears_of_block().to_vec();
        shapes.sort();
        shapes.dedup();
        shapes
    }

    /// A model with tied embeddings.
    pub(crate) fn config(&self) -> ModelConfig {
        ModelConfig {
            hidden: self.hidden,
            layers: self.layers,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.hidden / self.heads,
            intermediate: self.intermediate,
            vocabulary: self.vocabulary,
            context: 2048,
            rms_norm_epsilon: 1e-5,
            tied: true,
            rotary: Rotary::Default { theta: 500_000.0 },
        }
    }

    /// A job with adapters on all seven linear layers.
    pub(crate) fn job(&self, index: usize, batch: usize) -> Job {
        Job {
            name: format!("job {index}"),
            adapter: AdapterConfig {
                rank: self.rank,
                alpha: 2.0 * self.rank as f64,
                rank_stabilized: false,
                targets: Linear::ALL.map(|linear| linear.name().to_owned()).into(),
            },
            optimizer: AdamW { weight_decay: 0.01, clip: Some(1.0), ..AdamW::new(2e-4) },
            schedule: Schedule { decay: Decay::Constant, warmup_steps: 0 },
            batch,
            accumulation: 1,
            accumulation_mode: AccumulationMode::TokenMean,
            steps: 1_000_000,
            seed: index as u64,
        }
    }
}
