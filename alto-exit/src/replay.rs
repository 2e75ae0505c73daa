//! What a policy would have done to runs that were recorded to their end, and what that would have cost.
//!
//! A [`Corpus`] holds the runs of one task. [`Replay`] plays them side by side, as a trainer with so many slots would,
//! and a policy ends jobs as if they trained now. Since it is recorded how each would have gone on, a [`PolicyReport`]
//! can tell what was saved and what was thrown away.
//!
//! ```
//! use alto_exit::replay::{CORPUS_VERSION, Corpus, RecordedRun, Replay};
//! use alto_exit::Underperforming;
//!
//! // Four runs of 100 steps; the last is slow to start, and best in the end.
//! let run = |name: &str, early: f64, late: f64| RecordedRun {
//!     name: Some(name.to_owned()),
//!     seed: None,
//!     rank: 8,
//!     alpha: 16.0,
//!     lr: 1e-4,
//!     batch: 1,
//!     steps: 100,
//!     train_loss: vec![late; 100],
//!     grad_norm: vec![],
//!     lr_at: vec![],
//!     eval_step: vec![0, 5, 50, 100],
//!     val_loss: vec![3.0, early, (early + late) / 2.0, late],
//!     seconds: 0.0,
//! };
//! let runs = vec![run("a", 2.0, 1.5), run("b", 2.5, 1.8), run("c", 2.6, 2.0), run("d", 2.9, 1.25)];
//! let corpus = Corpus { version: CORPUS_VERSION, task: "gsm8k".to_owned(), model: None, runs };
//!
//! let policy = Underperforming { mark: 0.05, keep: 0.25 };
//! let report = Replay::default().report("underperforming", &policy, &[corpus])?;
//! println!("{}", report.table());
//!
//! let task = &report.tasks[0];
//! assert_eq!(task.saved_share(), 0.7125); // three of four jobs, after 5% of their budgets
//! assert_eq!((task.best_survived(), task.regret()), (false, Some(0.25)));
//! assert_eq!(task.late_bloomers, 1);
//! # Ok::<(), alto_exit::replay::ReplayError>(())
//! ```

mod corpus;
mod play;
mod policy_report;
mod recorded_run;
mod rung_report;
mod seat;
mod table;
mod task_report;

pub use crate::rank_correlation::{kendall, spearman};
pub use corpus::{CORPUS_VERSION, Corpus, CorpusError};
pub use play::{Replay, ReplayError};
pub use policy_report::{POLICY_REPORT_VERSION, PolicyReport, Total};
pub use recorded_run::{RecordedRun, RunError};
pub use rung_report::RungReport;
pub use table::{Table, comparison};
pub use task_report::TaskReport;
