//! Checks that implementers and users run on their own: whether a backend keeps the trait's promises, and whether it
//! computes what transformers and PEFT compute.

mod backend;
pub mod parity;

pub use backend::{ConformanceError, backend_conformance};
