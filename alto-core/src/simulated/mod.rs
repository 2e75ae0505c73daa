//! A backend that computes nothing: it replays recorded runs against a cost model.
//!
//! Early exit and admission decide from losses, memory and time alone. With recorded losses, and memory and time from
//! a linear model, they are studied and tested at any scale in milliseconds, by the very trainer that runs on a device.
//!
//! [`systems`] has the costs of well-known ways to train on well-known devices.
//!
//! ```
//! use std::time::Duration;
//!
//! use alto_core::backend::Backend;
//! use alto_core::batch::{Batch, Example, Lane, Objective};
//! use alto_core::job::{AdamW, AdapterConfig, Decay, Job, Schedule};
//! use alto_core::simulated::{CostModel, RecordedRun, SimulatedBackend};
//!
//! let run = r#"{"rank": 8, "alpha": 16, "lr": 1e-4, "batch": 1, "steps": 2,
//!     "train_loss": [2.0, 1.5], "eval_step": [0, 2], "val_loss": [2.2, 1.8]}"#;
//! let run: RecordedRun = serde_json::from_str(run)?;
//! let cost = CostModel { launch_seconds: 0.5, seconds_per_token: 0.25, ..CostModel::default() };
//! let mut backend = SimulatedBackend::new([("slow".to_owned(), run)], cost)?;
//!
//! let job = Job {
//!     name: "slow".to_owned(),
//!     adapter: AdapterConfig { rank: 8, alpha: 16.0, rank_stabilized: false, targets: ["q_proj".to_owned()].into() },
//!     optimizer: AdamW::new(1e-4),
//!     schedule: Schedule { decay: Decay::Constant, warmup_steps: 0 },
//!     batch: 1,
//!     accumulation: 1,
//!     accumulation_mode: Default::default(),
//!     steps: 2,
//!     seed: 0,
//! };
//! let slot = backend.attach(&job, None)?;
//! let row = Example { tokens: vec![1, 2], targets: vec![Some(2), Some(3)] };
//! let mut batch = Batch::default();
//! let objective = Objective::NegativeLogLikelihood;
//! batch.push(Lane { slot: Some(slot), rows: 1, objective, divisor: 2.0, last: true }, [&row]);
//! backend.step(&batch)?;
//!
//! assert_eq!(backend.read()?[0].loss, 2.0);
//! assert_eq!(backend.evaluate(&batch)?[0].sum, 2.0 * 2.0); // two tokens, half-way from 2.2 to 1.8
//! assert_eq!(backend.elapsed(), Duration::from_millis(1500)); // 0.5 + 2 * 0.25, and 0.5 for the evaluation
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backend;
mod clock;
mod consistency;
mod cost;
mod read;
mod stand_in;
pub mod systems;
pub mod workload;

pub use backend::{SimulatedBackend, SimulationError};
pub use clock::Clock;
pub use cost::CostModel;
pub use read::{ReadError, read_corpus, read_run};

#[doc(inline)]
pub use alto_exit::replay::{RecordedRun, RunError};
