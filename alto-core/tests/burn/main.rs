//! The Burn backend on real files, on Flex or the device that `ALTO_DEVICE` names: what it computes, and what jobs that share it owe one another.
// The lint's exemption for tests leaves out the functions that they share.
#![allow(clippy::unwrap_used)]

mod accumulation;
mod alone;
mod base_rows;
mod conformance;
#[cfg(any(feature = "cpu", feature = "wgpu", feature = "cuda"))]
mod cubecl;
mod determinism;
mod device;
mod export;
mod former_tenants;
mod gradients;
mod memory;
mod not_finite;
mod parity;
mod reads;
mod refusals;
mod resume;
mod rounded;
mod setup;
