//! Many tuning tasks to plan and simulate: made from a seed, or read from a trace; and an ablation of planning,
//! batching and early exit over them.
//!
//! A [`TuningTask`] is a base model, a data set by its size, and the jobs of a search space; [`TuningTask::seconds`]
//! is how long a [`Setup`](super::systems::Setup) takes for it, with what early exit leaves of each job.
//!
//! ```
//! use alto_core::simulated::systems::{Device, System};
//! use alto_core::simulated::workload::{Arrivals, Generator};
//!
//! let device = Device::named("H100 SXM")?;
//! let generator = Generator::paper(7, 20, Arrivals::Poisson { per_hour: 4.0 });
//! let tasks = generator.tasks()?;
//! let hours = tasks[0].seconds(&tasks[0].setup(System::AdapterParallel, &device)?, &[])? / 3600.0;
//! assert!(hours > 0.1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ablation;
mod arrivals;
mod duration;
mod error;
mod exits;
mod generator;
mod space;
mod task;
mod trace;

pub use ablation::{Ablation, AblationRow, AblationTask};
pub use arrivals::Arrivals;
pub use duration::durations;
pub use error::{TraceError, WorkloadError};
pub use exits::kept_shares;
pub use generator::{DataSize, Generator, ModelShare};
pub use space::Space;
pub use task::{TaskJob, TuningTask};
pub use trace::{TraceTask, Work, read_trace};
