//! Runs many tasks on a cluster: plans them, starts them on their devices, and plans again whenever something changes.
//!
//! - A [`Fleet`] decides, by any [`Scheduler`](crate::sched::Scheduler); [`Fleet::run`] is its loop, and
//!   [`Fleet::dry_run`] draws the plan and runs nothing.
//! - A [`Site`] is where tasks run: [`Threads`] in real time, or [`Virtual`] on a virtual clock, where a training runs on a
//!   [`SimulatedBackend`](crate::simulated::SimulatedBackend) by the very [`Trainer`](crate::trainer::Trainer) that runs on a
//!   device.
//! - An [`Estimate`] tells when a training will end, from the samples that are left and the rate so far, and is corrected
//!   as jobs exit. Before it starts, a [`Profile`] does, out of a cache: [`Profiles`].
//! - Each [`Event`] says what happened, each [`Replan`] why, what moved and what that won. From a list of events the same
//!   decisions follow again: [`Replayed`].
//!
//! # What is promised
//! - A task that runs is never interrupted or moved.
//! - A task that fails, by an error or a panic, frees its devices and fails alone.
//! - Every plan passes the independent check before anything starts by it.
//! - A plan costs the same however much has ended; with a bound on what is [`planned`](Fleet::planned), however much waits.
//! - With a bound on [`overtaking`](Fleet::overtaking), no more tasks that came later start before any task that waits,
//!   whatever the scheduler.
//!
//! # Several searches on one cluster
//! ```
//! use alto_core::batch::Example;
//! use alto_core::data::Dataset;
//! use alto_core::exit::LossAware;
//! use alto_core::fleet::{Fleet, Timeline, Virtual};
//! use alto_core::job::{AdamW, AdapterConfig, Decay, Job, Schedule};
//! use alto_core::sched::{Cluster, Makespan, Task};
//! use alto_core::simulated::{CostModel, RecordedRun, SimulatedBackend};
//! use alto_core::trainer::Trainer;
//!
//! let job = |rate: f64| Job {
//!     name: rate.to_string(),
//!     adapter: AdapterConfig { rank: 8, alpha: 16.0, rank_stabilized: false, targets: ["q_proj".to_owned()].into() },
//!     optimizer: AdamW::new(rate),
//!     schedule: Schedule { decay: Decay::Constant, warmup_steps: 0 },
//!     batch: 1,
//!     accumulation: 1,
//!     accumulation_mode: Default::default(),
//!     steps: 100,
//!     seed: 0,
//! };
//! // The higher the rate, the better.
//! let run = |job: &Job| -> RecordedRun {
//!     let last = 2.0 - job.optimizer.learning_rate;
//!     serde_json::from_value(serde_json::json!({
//!         "rank": 8, "alpha": 16, "lr": 1e-4, "batch": 1, "steps": 2,
//!         "train_loss": [2.0, last], "eval_step": [0, 2], "val_loss": [2.0, last],
//!     })).expect("a run")
//! };
//! let rows = Dataset::from_examples(vec![Example { tokens: vec![1, 2], targets: vec![None, Some(3)] }])?;
//! let cost = CostModel { seconds_per_token: 1.0, ..CostModel::default() };
//!
//! let mut site = Virtual::default();
//! for (name, width) in [("8B", 1), ("70B", 4), ("32B", 2)] {
//!     // Eight jobs of 200 tokens take 1600 s, if none exits.
//!     site.submit(0.0, Task::rigid(name, width, 1600.0), |_| {
//!         let mut backend = SimulatedBackend::from_surface(run, cost).expect("costs");
//!         let candidates = (1..=8).map(|rate| job(0.1 * f64::from(rate)).into()).collect();
//!         Timeline::training(&Trainer::default(), &mut backend, &rows, &rows, candidates, &LossAware::default())
//!     });
//! }
//! let fleet = Fleet::new(Cluster::single("H100", 4));
//! let report = fleet.run(&Makespan::default(), &mut site, &mut |event| println!("{:8.1} s: {}", event.seconds, event.kind))?;
//!
//! println!("{}", report.table());
//! assert!(report.totals.makespan < 3200.0 / 2.0); // Six of eight jobs exit after 5%.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod course;
mod dry_run;
mod error;
mod estimate;
mod event;
mod failure;
mod former;
mod ledger;
mod planning;
mod profile;
mod profiles;
mod queue;
mod replayed;
mod report;
mod roster;
mod run;
mod site;
mod table;
mod threads;
mod timeline;
mod virtual_site;

pub use dry_run::DryRun;
pub use error::FleetError;
pub use estimate::Estimate;
pub use event::{Cause, Change, EVENT_VERSION, Event, EventKind, Replan};
pub use profile::{Line, Profile};
pub use profiles::{PROFILES_VERSION, ProfileKey, Profiles, ProfilesError};
pub use replayed::Replayed;
pub use report::{REPORT_VERSION, Report, TaskReport, Totals};
pub use run::Fleet;
pub use site::{Signal, Site};
pub use table::Table;
pub use threads::{Submitter, Threads, Watch};
pub use timeline::Timeline;
pub use virtual_site::Virtual;
