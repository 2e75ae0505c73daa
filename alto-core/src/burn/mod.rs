//! The backend that trains Llama models with Burn, on whatever device Burn runs on.
//!
//! [`llama`] is the frozen model as a function of tokens and adapters; [`store`] keeps all adapters' parameters and moments
//! in flat tensors and knows whose entries are whose; [`backend`] puts the two behind [`Backend`](crate::backend::Backend);
//! [`process`] reads what memory the process takes.

mod backend;
mod llama;
mod lora_layout;
mod pending;
mod process;
mod store;

pub use backend::BurnBackend;
