//! Tokenized training data, and the order in which a job sees it.

mod dataset;
mod error;
mod jsonl;
mod order;
mod tokenizer;

pub use dataset::{Cut, Dataset};
pub use error::{DataError, Place};
pub use order::sample;
pub use tokenizer::Tokenizer;
