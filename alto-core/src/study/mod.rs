//! Studies on a virtual clock: what tuning tasks come to by which system, and what a cluster makes of many of them.
//!
//! Nothing here knows how to train or to plan: [`train`] lets the [`Trainer`](crate::trainer::Trainer) run on a
//! [`SimulatedBackend`](crate::simulated::SimulatedBackend) that takes the time of a
//! [`Setup`](crate::simulated::systems::Setup), and [`Ablation`] lets the [`Fleet`](crate::fleet::Fleet) run such trainings
//! on a [`Virtual`](crate::fleet::Virtual) site. [`Trainings`] remembers them, so that tasks that are alike are trained
//! once, and submits them to any such site.
//!
//! ```
//! use alto_core::exit::LossAware;
//! use alto_core::fleet::{Fleet, Virtual};
//! use alto_core::sched::{Cluster, Makespan};
//! use alto_core::simulated::read_corpus;
//! use alto_core::simulated::systems::{Device, System};
//! use alto_core::simulated::workload::{Arrivals, DataSize, Generator};
//! use alto_core::study::Trainings;
//!
//! let data = vec![DataSize { rows: 40, row_tokens: 140 }];
//! let generator = Generator { data, ..Generator::paper(7, 12, Arrivals::Poisson { per_hour: 60.0 }) };
//! let corpora = [read_corpus("../testdata/curves/gsm-nano/ask-s0.json")?];
//! let policy = LossAware::default();
//! let mut trainings = Trainings::new(Device::named("H100 SXM")?, &corpora, &policy);
//! trainings.validation_rows = 1;
//!
//! let mut site = Virtual::default();
//! for task in generator.tasks()? {
//!     trainings.submit(&mut site, &task, System::AdapterParallel, 0)?;
//! }
//! let report = Fleet::new(Cluster::single("H100 SXM", 8)).run(&Makespan::default(), &mut site, &mut |_| {})?;
//! assert_eq!(report.totals.finished, 12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ablation;
mod error;
mod submit;
mod training;
mod trainings;

pub use ablation::{Ablation, AblationRow, AblationTask};
pub use error::StudyError;
pub use training::{Trained, train};
pub use trainings::Trainings;
