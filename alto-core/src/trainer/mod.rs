//! Trains many jobs over one frozen base model, ends the hopeless ones early, and keeps every job's best adapter.
//!
//! # How a run goes
//! 1. Everything that can be checked is checked; memory is measured where the backend has a budget. Then nothing but
//!    the backend can fail.
//! 2. Waiting jobs take the places that are free: first one of the batch size that left, else the largest that fits.
//! 3. All jobs with a place make optimizer steps together, until one of them stands at a mark: before its first step,
//!    each `interval` of progress, a rung, its end. During a warm-up's steps at learning rate 0 no mark is reached but
//!    the first: an adapter that has not moved has nothing to be judged by.
//! 4. Then losses are read, once for everybody, and the jobs at a mark are evaluated. A job whose steps are not finite
//!    is ended before that; it touches nobody.
//! 5. A job at a rung is parked: its state goes to the host, its place to the next. Others are judged right away, all
//!    by the same curves, and end, or keep their adapter if it is their best so far.
//! 6. A rung closes once no unfinished job that has it is short of it. Everybody parked there is judged by the same
//!    curves; who stays waits for a place and goes on from where it was. Then 2. again, until every job has ended.
//!
//! 7. Where [`Trainer::audit`] asks for it, a share of the exited jobs then goes on to the end, in no ranking, to tell how
//!    often the policy was wrong.
//!
//! [`Trainer::search`] has no list of jobs: whenever a place is free and nobody waits for it, a search is asked what to
//! try, given all curves so far. Its first jobs are known before anything trains and do as above. A later one never holds
//! a rung open, as one that goes on proposing would keep it open for ever: where the rung has closed, the job is judged at
//! once, by the record to which it adds its own loss.
//!
//! Nobody waits forever: were all unfinished jobs parked, the lowest of their rungs would close. A job's curve and
//! verdict don't depend on how many places there are, or on who trains beside it; what a search proposes does, since it
//! depends on what is known by then.
//!
//! ```
//! use alto_core::batch::Example;
//! use alto_core::data::Dataset;
//! use alto_core::job::{AdamW, AdapterConfig, Decay, Job, Schedule};
//! use alto_core::simulated::{CostModel, RecordedRun, SimulatedBackend};
//! use alto_core::trainer::Trainer;
//! use alto_exit::LossAware;
//!
//! // Two learning rates, and what became of each when somebody tried it.
//! let job = |name: &str, rate| Job {
//!     name: name.to_owned(),
//!     adapter: AdapterConfig { rank: 8, alpha: 16.0, rank_stabilized: false, targets: ["q_proj".to_owned()].into() },
//!     optimizer: AdamW::new(rate),
//!     schedule: Schedule { decay: Decay::Constant, warmup_steps: 0 },
//!     batch: 1,
//!     accumulation: 1,
//!     accumulation_mode: Default::default(),
//!     steps: 100,
//!     seed: 0,
//! };
//! let recorded = |last: f64| -> Result<RecordedRun, serde_json::Error> {
//!     serde_json::from_value(serde_json::json!({
//!         "rank": 8, "alpha": 16, "lr": 1e-4, "batch": 1, "steps": 2,
//!         "train_loss": [2.0, last], "eval_step": [0, 2], "val_loss": [2.0, last],
//!     }))
//! };
//! let runs = [("low".to_owned(), recorded(1.8)?), ("high".to_owned(), recorded(1.2)?)];
//! let mut backend = SimulatedBackend::new(runs, CostModel::default())?;
//! let rows = Dataset::from_examples(vec![Example { tokens: vec![1, 2], targets: vec![None, Some(3)] }])?;
//!
//! let candidates = vec![job("low", 1e-5).into(), job("high", 1e-3).into()];
//! let outcome = Trainer { slots: Some(1), ..Trainer::default() }.run(
//!     &mut backend,
//!     &rows,
//!     &rows,
//!     candidates,
//!     &LossAware::default(),
//!     &mut |event| println!("{}", event.kind),
//! )?;
//!
//! println!("{}", outcome.report.table());
//! assert_eq!(outcome.report.winner, Some(1));
//! assert_eq!(outcome.report.jobs[0].steps, 5); // It lagged behind at the rung, after 5% of its budget.
//! assert!(outcome.adapters[1].is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod audit;
mod candidate;
mod entry;
mod error;
mod evaluation;
mod event;
#[cfg(test)]
mod fixtures;
mod later;
mod marks;
mod memory;
mod outcome;
mod proposals;
mod recorded;
mod report;
mod rungs;
mod sweep;
mod table;
mod train;

pub use audit::{AuditRate, AuditReport, AuditedJob};
pub use candidate::Candidate;
pub use error::{Fault, TrainError};
pub use event::{EVENT_VERSION, Event, EventKind, RungLoss};
pub use memory::{Admission, MemoryProfile};
pub use proposals::{MakeCandidate, Proposals, Refused};
pub use report::{Ended, JobReport, Outcome, REPORT_VERSION, Report, Totals, ValidationSet};
pub use table::Table;
pub use train::Trainer;
