//! core
#![forbid(unsafe_code)]

pub mod adapter;
pub mod backend;
pub mod batch;
#[cfg(feature = "flex")]
pub mod burn;
pub mod data;
pub mod job;
pub mod matrix;
pub mod model;
pub mod peft;
pub mod search_space;
pub mod simulated;
pub mod tensor_file;
pub mod testing;
pub mod trainer;
