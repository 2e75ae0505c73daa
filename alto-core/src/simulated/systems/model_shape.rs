//! The sizes of a model, from which its parameters and operations follow.

use serde::{Deserialize, Serialize};

use super::error::{CostError, positive};
use crate::model::ModelConfig;

/// Of well-known models.
const SHIPPED: &str = include_str!("../models.toml");

/// The sizes of a decoder of Llama's kind: grouped-query attention, SwiGLU, RMS norms.
///
/// ```
/// use alto_core::simulated::systems::ModelShape;
///
/// assert_eq!(ModelShape::named("Llama-3.1-8B")?.parameters(), 8_030_261_248);
/// # Ok::<(), alto_core::simulated::systems::CostError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelShape {
    /// What it is called.
    pub name: String,
    /// Blocks.
    pub layers: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// Width of the feed-forward layer.
    pub intermediate: usize,
    /// Rows of the embedding.
    pub vocabulary: usize,
    /// Whether the embedding is the head too.
    pub tied: bool,
    /// Whether q, k and v have biases, as Qwen2's do.
    #[serde(default)]
    pub qkv_bias: bool,
}

impl ModelShape {
    /// The models whose sizes this crate has: Llama-3.1-8B, Llama-3.2-1B, Qwen2.5-7B, Qwen2.5-32B, Llama-3.1-70B and
    /// SmolLM2-135M, from their `config.json`.
    pub fn shipped() -> Vec<ModelShape> {
        #[derive(Deserialize)]
        struct Models {
            model: Vec<ModelShape>,
        }
        let Models { model } = toml::from_str(SHIPPED).expect("shipped files are checked by a test");
        model
    }

    /// The shipped model of this name.
    ///
    /// # Errors
    /// None has it; the error lists those there are.
    pub fn named(name: &str) -> Result<ModelShape, CostError> {
        let shipped = ModelShape::shipped();
        let known = shipped.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = shipped.into_iter().find(|model| model.name == name);
        found.ok_or_else(|| CostError::Unknown { what: "model", name: name.to_owned(), known })
    }

    /// The sizes of a model whose configuration was read.
    pub fn of(name: &str, config: &ModelConfig) -> ModelShape {
        ModelShape {
            name: name.to_owned(),
            layers: config.layers,
            hidden: config.hidden,
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
            intermediate: config.intermediate,
            vocabulary: config.vocabulary,
            tied: config.tied,
            qkv_bias: false,
        }
    }

    /// Checks that no size is 0.
    ///
    /// # Errors
    /// Names the first that is.
    pub fn check(&self) -> Result<(), CostError> {
        let sizes = [
            ("layers", self.layers),
            ("hidden", self.hidden),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("intermediate", self.intermediate),
            ("vocabulary", self.vocabulary),
        ];
        sizes.into_iter().try_for_each(|(size, value)| positive(&self.name, size, value as f64).map(drop))
    }

    /// Numbers in the model: embedding and head, norms, linear layers and their biases.
    pub fn parameters(&self) -> u64 {
        let embedding = self.vocabulary * self.hidden * if self.tied { 1 } else { 2 };
        let biases = if self.qkv_bias { self.queries() + 2 * self.keys() } else { 0 };
        let block = self.block_parameters() + 2 * self.hidden + biases;
        (embedding + self.layers * block + self.hidden) as u64
    }

    /// Operations of one token's forward pass in a row of so many tokens: two for each multiply-add of the linear
    /// layers and the head, and causal attention's, which reads half of the row on average.
    pub fn forward_flop_per_token(&self, row: u64) -> f64 {
        let products = self.layers * self.block_parameters() + self.vocabulary * self.hidden;
        2.0 * products as f64 + (2 * self.layers * self.queries()) as f64 * row as f64
    }

    /// Numbers in an adapter of this rank on all seven linear layers of each block.
    pub fn adapter_parameters(&self, rank: usize) -> u64 {
        let (inputs, outputs) = self.adapted();
        (self.layers * rank * (inputs + outputs)) as u64
    }

    /// Width of all query heads.
    pub(super) fn queries(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Width of all key heads, or value heads.
    pub(super) fn keys(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Numbers in the seven linear layers of a block.
    pub(super) fn block_parameters(&self) -> usize {
        self.linears().iter().map(|(input, output)| input * output).sum()
    }

    /// Widths that the seven linear layers of a block read and write, all together.
    pub(super) fn adapted(&self) -> (usize, usize) {
        self.linears().iter().fold((0, 0), |(inputs, outputs), (input, output)| (inputs + input, outputs + output))
    }

    /// Input and output widths of q, k, v, o, gate, up and down.
    fn linears(&self) -> [(usize, usize); 7] {
        let (hidden, queries, keys, wide) = (self.hidden, self.queries(), self.keys(), self.intermediate);
        [
            (hidden, queries),
            (hidden, keys),
            (hidden, keys),
            (queries, hidden),
            (hidden, wide),
            (hidden, wide),
            (wide, hidden),
        ]
    }
}
