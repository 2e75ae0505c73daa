//! The hyperparameters that a task tries, all of a grid or those that a search chooses, as a user writes it in TOML.

mod error;
mod grid;
mod search;
mod space;
mod values;

pub use error::SearchSpaceError;
pub use search::{Method, SearchSettings};
pub use space::SearchSpace;
pub use values::Values;
