//! The grid of hyperparameters that a task tries, as a user writes it in TOML.

mod error;
mod grid;
mod space;

pub use error::SearchSpaceError;
pub use space::SearchSpace;
