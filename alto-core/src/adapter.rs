//! A LoRA adapter on the host.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::job::AdapterConfig;
use crate::matrix::Matrix;

/// The two factors of one layer's adapter; its delta is `scale * b * a`.
#[derive(Debug, Clone, PartialEq)]
pub struct LoraPair {
    /// Down projection, `[rank, d_in]`, as PEFT's `lora_A.weight`.
    pub a: Matrix,
    /// Up projection, `[d_out, rank]`, as PEFT's `lora_B.weight`.
    pub b: Matrix,
}

/// One adapter: its settings and its factors by module path, such as `model.layers.0.self_attn.q_proj`.
#[derive(Debug, Clone, PartialEq)]
pub struct Adapter {
    /// Rank, alpha and target modules.
    pub config: AdapterConfig,
    /// Factors by the module's path in the base model.
    pub modules: BTreeMap<String, LoraPair>,
}

impl Adapter {
    /// The start that PEFT gives an adapter: `a` Kaiming-uniform with `a = sqrt(5)`, which is uniform within
    /// `1 / sqrt(d_in)`, and `b` zero.
    ///
    /// `modules` holds each module's path and shape `[d_out, d_in]`. Seed and path alone determine a module's entries.
    pub fn fresh<'m>(
        config: &AdapterConfig,
        modules: impl IntoIterator<Item = (&'m str, [usize; 2])>,
        seed: u64,
    ) -> Self {
        let pair = |(path, [d_out, d_in]): (&str, [usize; 2])| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(stable_hash(path));
            let bound = 1.0 / (d_in as f32).sqrt();
            let a = (0..config.rank * d_in).map(|_| random.random_range(-bound..=bound)).collect();
            let a = Matrix::new(config.rank, d_in, a);
            (path.to_string(), LoraPair { a, b: Matrix::zeros(d_out, config.rank) })
        };
        Self { config: config.clone(), modules: modules.into_iter().map(pair).collect() }
    }

    /// Whether the adapter leaves the base model as it is: every `b` is zero.
    pub fn is_identity(&self) -> bool {
        self.modules.values().all(|pair| pair.b.data().iter().all(|&x| x == 0.0))
    }
}

/// FNV-1a, which is the same on every platform and in every version.
fn stable_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
