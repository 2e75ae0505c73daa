//! What training many adapters costs on a device: formulas for this repository's way and for others'.
//!
//! A [`Setup`] is a [`System`] with a [`Device`], a [`ModelShape`] and a number of devices. [`Setup::step`] is the
//! time of an optimizer step of a batch of adapters: for each class of kernels its operations at the peak rate or its
//! bytes at the memory's bandwidth, whichever is longer, what launches cost, and what communication isn't hidden.
//! [`Setup::needed_bytes`] is the memory.
//!
//! Parameters are from data sheets and papers, named in their files; nothing is fitted to what any system measured.

mod adapter_parallel;
mod cost;
mod cost_model;
mod data_parallel;
mod device;
mod error;
mod fused;
mod kernels;
mod load;
mod memory;
mod model_shape;
mod one_after_another;
mod optimizer;
mod per_adapter;
mod pipeline;
mod setup;
mod split;
mod stages;
mod tensor_parallel;
mod work;

pub use cost::StepCost;
pub use device::{Device, Launch, Rates};
pub use error::CostError;
pub use load::AdapterLoad;
pub use model_shape::ModelShape;
pub use optimizer::Optimizer;
pub use setup::{Setup, System};
