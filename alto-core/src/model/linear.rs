//! The linear layers of a Llama block, which an adapter may sit on.

use super::config::ModelConfig;

/// A linear layer of a Llama block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Linear {
    /// Queries.
    Q,
    /// Keys.
    K,
    /// Values.
    V,
    /// Attention's output.
    O,
    /// The feed-forward layer's gate.
    Gate,
    /// Into the feed-forward layer.
    Up,
    /// Out of the feed-forward layer.
    Down,
}

impl Linear {
    /// All seven, in the order in which a block computes them.
    pub const ALL: [Self; 7] = [Self::Q, Self::K, Self::V, Self::O, Self::Gate, Self::Up, Self::Down];

    /// The layer's name within its block, such as `q_proj`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Q => "q_proj",
            Self::K => "k_proj",
            Self::V => "v_proj",
            Self::O => "o_proj",
            Self::Gate => "gate_proj",
            Self::Up => "up_proj",
            Self::Down => "down_proj",
        }
    }

    /// The layer of this name, if a block has one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|linear| linear.name() == name)
    }

    /// Its path in the model, such as `model.layers.0.self_attn.q_proj`.
    pub fn path(self, layer: usize) -> String {
        let part = match self {
            Self::Q | Self::K | Self::V | Self::O => "self_attn",
            Self::Gate | Self::Up | Self::Down => "mlp",
        };
        format!("model.layers.{layer}.{part}.{}", self.name())
    }

    /// The shape of its weight, `[d_out, d_in]`.
    pub fn shape(self, config: &ModelConfig) -> [usize; 2] {
        let ModelConfig { hidden, intermediate, .. } = *config;
        let (q, kv) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        match self {
            Self::Q => [q, hidden],
            Self::K | Self::V => [kv, hidden],
            Self::O => [hidden, q],
            Self::Gate | Self::Up => [intermediate, hidden],
            Self::Down => [hidden, intermediate],
        }
    }
}
