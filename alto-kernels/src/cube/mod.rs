//! The kernels on CubeCL: one source for CUDA, WebGPU, Vulkan, Metal, ROCm, and, for tests, the CPU.
//!
//! A kernel's file opens with its formula and its shapes; the functions marked `#[cube]` run on the device, what calls them
//! prepares a launch. What changes from batch to batch (lanes, ranks, rows) is run-time data in a [`table`]; what is known
//! when a kernel is compiled is its tile, its dtype and whether it uses matrix units, in [`hardware`].
//! The host has validated everything before; the device code trusts it.
//!
//! Frozen weights and activations have one dtype, f32, f16 or bf16; adapters, their gradients and moments, sums and
//! log-probabilities are f32.

mod accumulators;
mod adamw;
mod attention;
mod hardware;
mod labelled;
mod launches;
mod log_probs;
mod lora;
mod norm;
mod product;
mod reduce;
mod rotary;
mod stage;
mod swiglu;
mod table;
mod tensor;
mod tile;
mod tiles;

pub use launches::launches;
pub(crate) use table::Tables;
