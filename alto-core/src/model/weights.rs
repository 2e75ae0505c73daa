//! The weights of a whole Llama model, on the host.

use std::collections::BTreeSet;
use std::path::Path;

use super::checkpoint::Checkpoint;
use super::config::ModelConfig;
use super::error::ModelError;
use super::linear::Linear;
use crate::matrix::Matrix;

/// The weights of a whole Llama model in f32; linear layers are `[d_out, d_in]`, as in Hugging Face's files.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelWeights {
    /// One row per token, `[vocabulary, hidden]`.
    pub embedding: Matrix,
    /// The blocks, from the embedding's side.
    pub blocks: Vec<BlockWeights>,
    /// Scale of the last norm, `[hidden]`.
    pub norm: Vec<f32>,
    /// `[vocabulary, hidden]`; `None` where the embedding serves as the head.
    pub head: Option<Matrix>,
}

/// The weights of one block.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockWeights {
    /// Scale of the norm in front of attention, `[hidden]`.
    pub attention_norm: Vec<f32>,
    /// Queries.
    pub q: Matrix,
    /// Keys.
    pub k: Matrix,
    /// Values.
    pub v: Matrix,
    /// Attention's output.
    pub o: Matrix,
    /// Scale of the norm in front of the feed-forward layer, `[hidden]`.
    pub feed_forward_norm: Vec<f32>,
    /// The feed-forward layer's gate.
    pub gate: Matrix,
    /// Into the feed-forward layer.
    pub up: Matrix,
    /// Out of the feed-forward layer.
    pub down: Matrix,
}

impl ModelWeights {
    /// Reads the weights in a model's directory.
    ///
    /// # Errors
    /// As [`Checkpoint::open`] and [`load`](Self::load).
    pub fn read(dir: &Path, config: &ModelConfig) -> Result<Self, ModelError> {
        Self::load(&Checkpoint::open(dir)?, config)
    }

    /// Reads every weight that the configuration asks for; others are named in a warning and left alone.
    ///
    /// # Errors
    /// Names the first tensor that is missing, has another shape, an unsupported dtype, or an entry that isn't finite.
    pub fn load(checkpoint: &Checkpoint, config: &ModelConfig) -> Result<Self, ModelError> {
        let mut load = Load { checkpoint, used: BTreeSet::new() };
        let table = [config.vocabulary, config.hidden];
        let weights = Self {
            embedding: load.matrix("model.embed_tokens.weight".to_owned(), table)?,
            blocks: (0..config.layers).map(|layer| load.block(layer, config)).collect::<Result<_, _>>()?,
            norm: load.vector("model.norm.weight".to_owned(), config.hidden)?,
            head: if config.tied { None } else { Some(load.head(table)?) },
        };
        load.warn_of_unused(config.tied);
        Ok(weights)
    }

    /// The weight that is farthest from zero.
    pub fn largest(&self) -> f32 {
        let of_blocks = self.blocks.iter().flat_map(|block| {
            let BlockWeights { attention_norm, q, k, v, o, feed_forward_norm, gate, up, down } = block;
            let linears = [q, k, v, o, gate, up, down].map(Matrix::data);
            [attention_norm.as_slice(), feed_forward_norm].into_iter().chain(linears)
        });
        let tables = [&self.embedding].into_iter().chain(&self.head).map(Matrix::data);
        let all = of_blocks.chain(tables).chain([self.norm.as_slice()]).flatten();
        all.fold(0.0, |largest: f32, &weight| if weight.abs() > largest.abs() { weight } else { largest })
    }
}

const HEAD: &str = "lm_head.weight";

struct Load<'a> {
    checkpoint: &'a Checkpoint,
    used: BTreeSet<String>,
}

impl Load<'_> {
    fn block(&mut self, layer: usize, config: &ModelConfig) -> Result<BlockWeights, ModelError> {
        let norm = |name| format!("model.layers.{layer}.{name}.weight");
        let linear = |load: &mut Self, linear: Linear| {
            load.matrix(format!("{}.weight", linear.path(layer)), linear.shape(config))
        };
        Ok(BlockWeights {
            attention_norm: self.vector(norm("input_layernorm"), config.hidden)?,
            q: linear(self, Linear::Q)?,
            k: linear(self, Linear::K)?,
            v: linear(self, Linear::V)?,
            o: linear(self, Linear::O)?,
            feed_forward_norm: self.vector(norm("post_attention_layernorm"), config.hidden)?,
            gate: linear(self, Linear::Gate)?,
            up: linear(self, Linear::Up)?,
            down: linear(self, Linear::Down)?,
        })
    }

    fn head(&mut self, shape: [usize; 2]) -> Result<Matrix, ModelError> {
        if self.checkpoint.shape(HEAD).is_none() {
            let hint = ": tie_word_embeddings is not true, so the head needs weights of its own";
            return Err(self.checkpoint.missing(HEAD, hint));
        }
        self.matrix(HEAD.to_owned(), shape)
    }

    fn matrix(&mut self, name: String, shape: [usize; 2]) -> Result<Matrix, ModelError> {
        let data = self.checkpoint.tensor(&name, &shape)?;
        self.used.insert(name);
        Ok(Matrix::new(shape[0], shape[1], data))
    }

    fn vector(&mut self, name: String, length: usize) -> Result<Vec<f32>, ModelError> {
        let data = self.checkpoint.tensor(&name, &[length])?;
        self.used.insert(name);
        Ok(data)
    }

    fn warn_of_unused(&self, tied: bool) {
        // Old checkpoints hold the rotary frequencies, which follow from the configuration.
        let expected = |name: &str| name.ends_with(".rotary_emb.inv_freq") || (tied && name == HEAD);
        let unused: Vec<_> =
            self.checkpoint.names().filter(|name| !self.used.contains(*name) && !expected(name)).collect();
        if let Some(first) = unused.first() {
            tracing::warn!(count = unused.len(), first, "the checkpoint has tensors that the configuration lacks");
        }
    }
}
