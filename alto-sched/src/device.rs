//! Within one task, on one device: which jobs train side by side.

mod admission;
mod least_squares;
mod memory;

pub use admission::{AdmissionError, Need, Room, admit, backfill, check};
pub use memory::{Coefficients, FitError, Load, MEMORY_MODEL_VERSION, MemoryModel, MemorySample, ModelError};
