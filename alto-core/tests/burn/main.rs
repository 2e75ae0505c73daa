//! The Burn backend on Flex, on real files: what it computes, and what jobs that share it owe one another.

mod accumulation;
mod alone;
mod base_rows;
mod conformance;
mod determinism;
mod export;
mod former_tenants;
mod memory;
mod not_finite;
mod parity;
mod refusals;
mod resume;
mod setup;
