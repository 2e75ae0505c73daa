//! Models of random weights, and jobs and rows for them.

use alto_core::backend::Slot;
use alto_core::batch::{Batch, Example, Lane, Objective};
use alto_core::job::{AccumulationMode, AdamW, AdapterConfig, Decay, Job, Schedule};
use alto_core::model::{BlockWeights, Linear, ModelConfig, ModelWeights, Rotary};

use crate::random::Random;

/// Width, layers, heads, key-value heads, feed-forward width and vocabulary of a Llama model.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Width of the residual stream.
    pub hidden: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of the feed-forward layer.
    pub intermediate: usize,
    /// Rows of the embedding.
    pub vocabulary: usize,
}

impl Shape {
    /// From the form `288x6x6x6x768x32000`.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<usize> = text.split('x').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let [hidden, layers, heads, kv_heads, intermediate, vocabulary] = numbers.try_into().ok()?;
        Some(Self { hidden, layers, heads, kv_heads, intermediate, vocabulary })
    }

    /// The configuration of a model of this shape, with tied embeddings.
    pub fn config(&self) -> ModelConfig {
        ModelConfig {
            hidden: self.hidden,
            layers: self.layers,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.hidden / self.heads,
            intermediate: self.intermediate,
            vocabulary: self.vocabulary,
            context: 2048,
            rms_norm_epsilon: 1e-6,
            tied: true,
            rotary: Rotary::Default { theta: 10000.0 },
        }
    }

    /// Random weights, of a spread that keeps activations in range.
    pub fn weights(&self) -> ModelWeights {
        let config = self.config();
        let mut random = Random(1);
        let mut linear = |linear: Linear| {
            let [d_out, d_in] = linear.shape(&config);
            random.matrix(d_out, d_in, 1.0 / (d_in as f32).sqrt())
        };
        let ones = || vec![1.0; self.hidden];
        let mut block = || BlockWeights {
            attention_norm: ones(),
            q: linear(Linear::Q),
            k: linear(Linear::K),
            v: linear(Linear::V),
            o: linear(Linear::O),
            feed_forward_norm: ones(),
            gate: linear(Linear::Gate),
            up: linear(Linear::Up),
            down: linear(Linear::Down),
        };
        let blocks = (0..self.layers).map(|_| block()).collect();
        let embedding = Random(2).matrix(self.vocabulary, self.hidden, 0.05);
        ModelWeights { embedding, blocks, norm: ones(), head: None }
    }

    /// Rows of random tokens, each of `length` with all its tokens but the first labelled.
    pub fn rows(&self, count: usize, length: usize) -> Vec<Example> {
        let mut random = Random(3);
        let mut row = || {
            let tokens: Vec<u32> = (0..length).map(|_| random.bits() % self.vocabulary as u32).collect();
            let labels: Vec<i64> = tokens.iter().map(|&token| i64::from(token)).collect();
            Example::from_labels(&tokens, &labels)
        };
        (0..count).map(|_| row()).collect()
    }
}

/// A job with adapters on all seven linear layers.
pub fn job(name: String, rank: usize, batch: usize) -> Job {
    Job {
        name,
        adapter: AdapterConfig {
            rank,
            alpha: 2.0 * rank as f64,
            rank_stabilized: false,
            targets: Linear::ALL.map(|linear| linear.name().to_owned()).into(),
        },
        optimizer: AdamW { weight_decay: 0.01, clip: Some(1.0), ..AdamW::new(2e-4) },
        schedule: Schedule { decay: Decay::Constant, warmup_steps: 0 },
        batch,
        accumulation: 1,
        accumulation_mode: AccumulationMode::TokenMean,
        steps: 1_000_000,
        seed: 0,
    }
}

/// A whole optimizer step of every slot: `rows`, `batch` of them for each.
pub fn training_batch(slots: &[Slot], rows: &[Example], batch: usize) -> Batch {
    let mut training = Batch::default();
    for (&slot, rows) in slots.iter().zip(rows.chunks(batch)) {
        let divisor = rows.iter().map(Example::labelled).sum::<usize>() as f64;
        training
            .push(Lane { slot: Some(slot), rows: batch, objective: Objective::default(), divisor, last: true }, rows);
    }
    training
}
