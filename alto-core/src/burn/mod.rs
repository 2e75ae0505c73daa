//! The backend that trains Llama models with Burn, on whatever device Burn runs on.
//!
//! `llama.rs` is the frozen model as a function of tokens and adapters; `store.rs` keeps all adapters' parameters and moments
//! in flat tensors and knows whose entries are whose; `backend.rs` puts the two behind [`Backend`](crate::backend::Backend).
//! `transfer.rs` is the only way between host and device, `pending.rs` what waits there for the next read; `dtypes.rs` knows
//! what a device can compute in, `memory.rs` what memory it takes.

mod backend;
mod checks;
mod dtypes;
mod llama;
mod lora_layout;
mod memory;
mod pending;
mod process;
mod store;
mod transfer;

pub use backend::BurnBackend;
