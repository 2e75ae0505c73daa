//! Adapters in PEFT's layout: `adapter_config.json` and `adapter_model.safetensors` in a directory.

mod error;
mod export;
mod import;
mod settings;

pub use error::PeftError;
pub use export::export;
pub use import::import;

/// What PEFT puts in front of a module's path.
const PREFIX: &str = "base_model.model.";
const SETTINGS: &str = "adapter_config.json";
const TENSORS: &str = "adapter_model.safetensors";
const A: &str = ".lora_A.weight";
const B: &str = ".lora_B.weight";

/// The module's own name, the last part of its path.
fn name(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, name)| name)
}
