//! The backend that trains Llama models with Burn, on whatever device Burn runs on.
//!
//! `llama.rs` is the frozen model as a function of tokens and adapters; `store.rs` keeps all adapters' parameters and moments
//! in flat tensors and knows whose entries are whose; `backend.rs` puts the two behind [`Backend`](crate::backend::Backend);
//! `process.rs` reads what memory the process takes.

mod backend;
mod llama;
mod lora_layout;
mod pending;
mod process;
mod store;

pub use backend::BurnBackend;
