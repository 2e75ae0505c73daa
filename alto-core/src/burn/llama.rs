//! The frozen Llama model, as a function of tokens and adapters.

use alto_kernels::{LoraLanes, Rows, causal_attention, linear_log_probs, multi_lora_linear, rms_norm, rotary, swiglu};
use burn::tensor::{DType, Device, FloatDType, Tensor};

use super::dtypes::of_burn;
use super::transfer::{ids, matrix, vector};
use crate::dtype::Dtype;
use crate::matrix::Matrix;
use crate::model::{BlockWeights, Linear, ModelConfig, ModelWeights, tables};

/// The adapters on one linear layer: packed factors in f32, and the lanes that go through them.
#[derive(Debug)]
pub(super) struct Lora {
    /// `[ranks, d_in]`.
    pub(super) a: Tensor<2>,
    /// `[ranks, d_out]`.
    pub(super) b: Tensor<2>,
    pub(super) lanes: LoraLanes,
}

impl Lora {
    /// Rows of the packed factors.
    pub(super) fn total_ranks(&self) -> usize {
        self.a.dims()[0]
    }
}

/// A frozen Llama model on a device; weights and activations, the residual stream included, are of its dtype.
#[derive(Debug)]
pub(super) struct Llama {
    pub(super) config: ModelConfig,
    pub(super) dtype: Dtype,
    device: Device,
    /// `[vocabulary, hidden]`.
    embedding: Tensor<2>,
    blocks: Vec<Block>,
    norm: Tensor<1>,
    /// `[vocabulary, hidden]`; shares the embedding's memory where they are tied.
    head: Tensor<2>,
    /// Cosines and sines in f32, for as many positions as were asked for so far.
    rotary: (Tensor<2>, Tensor<2>),
}

#[derive(Debug)]
struct Block {
    attention_norm: Tensor<1>,
    feed_forward_norm: Tensor<1>,
    /// In the order of [`Linear::ALL`], each `[d_out, d_in]`.
    linears: [Tensor<2>; 7],
}

impl Block {
    fn new(weights: BlockWeights, device: &Device, dtype: DType) -> Self {
        let BlockWeights { attention_norm, q, k, v, o, feed_forward_norm, gate, up, down } = weights;
        Self {
            attention_norm: vector(attention_norm, device, dtype),
            feed_forward_norm: vector(feed_forward_norm, device, dtype),
            linears: [q, k, v, o, gate, up, down].map(|weight| matrix(weight, device, dtype)),
        }
    }
}

impl Llama {
    /// The weights in a dtype that the device has.
    pub(super) fn new(config: ModelConfig, weights: ModelWeights, device: &Device, dtype: Dtype) -> Self {
        let ModelWeights { embedding, blocks, norm, head } = weights;
        let burn = of_burn(dtype);
        let embedding = matrix(embedding, device, burn);
        let half = config.head_dim / 2;
        let no_table = || Tensor::zeros([0, half], (device, DType::F32));
        Self {
            device: device.clone(),
            dtype,
            head: head.map_or_else(|| embedding.clone(), |head| matrix(head, device, burn)),
            embedding,
            blocks: blocks.into_iter().map(|block| Block::new(block, device, burn)).collect(),
            norm: vector(norm, device, burn),
            rotary: (no_table(), no_table()),
            config,
        }
    }

    /// Extends the tables of angles to rows of `positions` tokens.
    pub(super) fn reserve_positions(&mut self, positions: usize) {
        let [known, half] = self.rotary.0.dims();
        if positions > known {
            let positions = positions.next_power_of_two().min(self.config.context);
            let table = |data| matrix(Matrix::new(positions, half, data), &self.device, DType::F32);
            let (cos, sin) = tables(&self.config, positions);
            self.rotary = (table(cos), table(sin));
        }
    }

    /// Last hidden states, normed, `[tokens, hidden]`, of rows laid end to end.
    ///
    /// `adapters` holds one entry per linear layer, block by block in the order of [`Linear::ALL`]. The graph for
    /// gradients is built if they are on an autodiff device.
    pub(super) fn hidden(&self, tokens: &[u32], rows: &Rows, adapters: &[Lora], train: bool) -> Tensor<2> {
        let embedded = self.embedding.clone().select(0, ids(tokens, &self.device));
        let mut x = if train { Tensor::from_inner(embedded) } else { embedded };
        for (block, adapters) in self.blocks.iter().zip(adapters.chunks_exact(Linear::ALL.len())) {
            x = self.block(x, block, adapters, rows);
        }
        rms_norm(x, self.norm.clone(), self.config.rms_norm_epsilon as f32)
    }

    fn block(&self, x: Tensor<2>, block: &Block, adapters: &[Lora], rows: &Rows) -> Tensor<2> {
        let ModelConfig { heads, kv_heads, head_dim, rms_norm_epsilon, .. } = self.config;
        let tokens = x.dims()[0];
        let epsilon = rms_norm_epsilon as f32;
        let linear = |linear: Linear, x: Tensor<2>| {
            let Lora { a, b, lanes } = &adapters[linear as usize];
            multi_lora_linear(x, block.linears[linear as usize].clone(), a.clone(), b.clone(), lanes)
        };
        let turn = |x: Tensor<2>, heads: usize| {
            let (cos, sin) = self.rotary.clone();
            rotary(x.reshape([tokens, heads, head_dim]), rows, cos, sin)
        };

        let normed = rms_norm(x.clone(), block.attention_norm.clone(), epsilon);
        let q = turn(linear(Linear::Q, normed.clone()), heads);
        let k = turn(linear(Linear::K, normed.clone()), kv_heads);
        let v = linear(Linear::V, normed).reshape([tokens, kv_heads, head_dim]);
        let attended = causal_attention(q, k, v, rows, 1.0 / (head_dim as f32).sqrt());
        let x = x + linear(Linear::O, attended.reshape([tokens, heads * head_dim]));

        let normed = rms_norm(x.clone(), block.feed_forward_norm.clone(), epsilon);
        let gated = swiglu(linear(Linear::Gate, normed.clone()), linear(Linear::Up, normed));
        x + linear(Linear::Down, gated)
    }

    /// The log-probability of each labelled token, in order, in f32.
    pub(super) fn log_probs(&self, hidden: Tensor<2>, targets: &[Option<u32>]) -> Tensor<1> {
        linear_log_probs(hidden, self.head.clone(), targets)
    }

    /// Scores of every next token, `[tokens, vocabulary]`, computed in the model's dtype, given in f32.
    pub(super) fn logits(&self, hidden: Tensor<2>) -> Tensor<2> {
        let factor = |width| Tensor::zeros([0, width], (&self.device, DType::F32));
        let (a, b) = (factor(self.config.hidden), factor(self.config.vocabulary));
        // A head without adapters: the base product as the kernels make it, on every device.
        let logits = multi_lora_linear(hidden, self.head.clone(), a, b, &LoraLanes::new(Vec::new()));
        logits.cast(FloatDType::F32)
    }

    /// Bytes of the weights.
    pub(super) fn bytes(&self) -> u64 {
        let entries = |tensor: &Tensor<2>| tensor.dims().iter().product::<usize>();
        let linears: usize = self.blocks.iter().flat_map(|block| &block.linears).map(entries).sum();
        let norms = (2 * self.blocks.len() + 1) * self.config.hidden;
        let tables = 1 + usize::from(!self.config.tied);
        (self.dtype.bytes() * (linears + norms + tables * entries(&self.embedding))) as u64
    }
}
