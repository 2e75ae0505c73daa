//! Many tuning tasks to plan and simulate: made from a seed, or read from a trace.
//!
//! A [`TuningTask`] is a base model, a data set by its size, and the jobs of a search space. [`study`](crate::study) trains
//! them on simulated devices and runs them on simulated clusters.
//!
//! ```
//! use alto_core::simulated::workload::{Arrivals, Generator};
//!
//! let tasks = Generator::paper(7, 20, Arrivals::Poisson { per_hour: 4.0 }).tasks()?;
//! assert!(tasks.iter().all(|task| task.jobs.len() >= 60));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrivals;
mod error;
mod generator;
mod space;
mod task;
mod trace;

pub use arrivals::Arrivals;
pub use error::{TraceError, WorkloadError};
pub use generator::{DataSize, Generator, ModelShare};
pub use space::Space;
pub use task::{TaskJob, TuningTask};
pub use trace::{TraceTask, Work, read_trace};
