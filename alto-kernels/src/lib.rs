//! The kernels that train many LoRA adapters in one pass over one frozen model, as differentiable functions on Burn tensors.
//!
//! They take a *ragged* batch: rows of any length laid end to end, without padding. Everything per adapter or per row
//! (ranks, offsets, row counts, learning rates) is run-time data, and the number of launches doesn't grow with it.
//!
//! | function | computes | what it saves |
//! |---|---|---|
//! | [`multi_lora_linear`] | a frozen linear layer, with an adapter of its own for each lane | one base product for all lanes; no gradient and no copy of the weight |
//! | [`causal_attention`] | attention within each row | no padding, no matrix of all scores in either direction |
//! | [`linear_log_probs`] | log-probabilities of the labelled tokens | no logits kept, none computed twice, nothing for prompts |
//! | [`grouped_adamw`] | one optimizer step of every adapter | one launch for all layers and adapters |
//! | [`rms_norm`], [`swiglu`], [`rotary`] | the rest of a Llama block | one pass over memory each |
//!
//! They work in anyone's Burn model: inputs may or may not be tracked, and gradients flow to whoever asks, except to frozen
//! weights. They run on Flex, Burn's CPU backend, in f32, and with the features `cuda`, `wgpu`, `vulkan`, `metal`, `rocm` and
//! `cpu` on CubeCL's devices, with weights and activations in f32, f16 or bf16, as far as the device has the type. Ask it
//! first: without asking, some devices give garbage and no error. What belongs to adapters is f32 always. Beside each
//! stands a plain version in [`mod@reference`], which is its oracle; [`testing`] compares the two on any device.
//!
//! # Two adapters on one layer
//! ```
//! use alto_kernels::{LoraLane, LoraLanes, multi_lora_linear};
//! use burn::tensor::{Device, Distribution, Tensor};
//!
//! let device = Device::flex().autodiff();
//! let random = |shape: [usize; 2]| Tensor::<2>::random(shape, Distribution::Default, &device);
//! let (x, weight) = (random([7, 16]), random([24, 16]));
//! // Ranks 4 and 2, packed: rows 0..4 belong to the first adapter, rows 4..6 to the second.
//! let a = random([6, 16]).require_grad();
//! let b = random([6, 24]).require_grad();
//! let lanes = LoraLanes::new(vec![
//!     LoraLane { rows: 0..5, ranks: 0..4, scale: 2.0 },
//!     LoraLane { rows: 5..7, ranks: 4..6, scale: 0.5 },
//! ]);
//! let y = multi_lora_linear(x, weight, a.clone(), b.clone(), &lanes);
//! assert_eq!(y.dims(), [7, 24]);
//!
//! let gradients = y.powi_scalar(2).mean().backward();
//! assert_eq!(a.grad(&gradients).map(|gradient| gradient.dims()), Some([6, 16]));
//! ```

mod adamw;
mod attention;
#[cfg(feature = "cubecl")]
mod cube;
mod flex;
mod lanes;
mod log_probs;
mod lora;
mod norm;
pub mod reference;
mod rotary;
mod rows;
mod swiglu;
pub mod testing;

pub use adamw::{AdamWExtension, AdamWGroup, AdamWState, grouped_adamw};
pub use attention::{AttentionExtension, AttentionGradients, AttentionKernel, causal_attention};
#[cfg(feature = "cubecl")]
pub use cube::launches;
pub use lanes::{LoraLane, LoraLanes};
pub use log_probs::{LogProbsExtension, LogProbsKernel, linear_log_probs};
pub use lora::{LoraExtension, LoraKernel, multi_lora_linear};
pub use norm::{NormExtension, NormKernel, rms_norm};
pub use rotary::{RotaryExtension, RotaryKernel, rotary};
pub use rows::Rows;
pub use swiglu::{SwigluExtension, SwigluKernel, swiglu};
