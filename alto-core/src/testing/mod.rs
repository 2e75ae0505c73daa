//! Checks that implementers and users run on their own: a backend's conformance.

mod backend;
pub mod parity;

pub use backend::{ConformanceError, backend_conformance};
