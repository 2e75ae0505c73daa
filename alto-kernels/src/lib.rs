//! The kernels.

mod adamw;
mod attention;
mod flex;
mod log_probs;
mod lora;
mod norm;
pub mod reference;
mod rotary;
mod swiglu;

pub use adamw::{AdamWExtension, AdamWGroup, AdamWState, grouped_adamw};
pub use attention::{AttentionExtension, AttentionGradients, AttentionKernel, causal_attention};
pub use log_probs::{LogProbsExtension, LogProbsKernel, linear_log_probs};
pub use lora::{LoraExtension, LoraKernel, LoraLane, multi_lora_linear};
pub use norm::{NormExtension, NormKernel, rms_norm};
pub use rotary::{RotaryExtension, RotaryKernel, rotary};
pub use swiglu::{SwigluExtension, SwigluKernel, swiglu};
