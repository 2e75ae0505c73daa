//! The Burn backend on Flex, on real files: what it computes, and what jobs that share it owe one another.
// The lint's exemption for tests leaves out the functions that they share.
#![allow(clippy::unwrap_used)]

mod accumulation;
mod alone;
mod base_rows;
mod conformance;
mod determinism;
mod export;
mod former_tenants;
mod gradients;
mod memory;
mod not_finite;
mod parity;
mod refusals;
mod resume;
mod setup;
