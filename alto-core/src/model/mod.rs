//! Hugging Face models on disk: what `config.json` says, and the weights it describes.

mod checkpoint;
mod config;
mod config_keys;
mod error;
mod linear;
mod rotary;
mod weights;

pub use checkpoint::Checkpoint;
pub use config::{ModelConfig, Rotary};
pub use error::ModelError;
pub use linear::Linear;
pub use rotary::{inverse_frequencies, tables};
pub use weights::{BlockWeights, ModelWeights};
