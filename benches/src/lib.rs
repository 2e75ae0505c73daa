//! What the benches share: models of random weights, the kernels' cases with the plain way beside each, clocks.

#![forbid(unsafe_code)]

mod attention;
mod bench;
mod case;
mod clock;
mod log_probs;
mod lora;
mod model;
mod plain;
mod random;
mod train_step;

pub use attention::attention_cases;
pub use bench::{bench_cases, quick};
pub use case::{Case, Run};
pub use clock::{Cost, cpu_seconds, in_turns, median};
pub use log_probs::log_probs_cases;
pub use lora::lora_cases;
pub use model::{Shape, job, training_batch};
pub use random::Random;
pub use train_step::{TrainStep, train_steps};
