//! Trains many jobs over one frozen base model, ends the hopeless ones early, and keeps every job's best adapter.
//!
//! # How a run goes
//! 1. Everything that can be checked is checked; memory is measured where the backend has a budget. Then nothing but
//!    the backend can fail.
//! 2. Waiting jobs take the places that are free: first one of the batch size that left, else the largest that fits.
//! 3. All jobs with a place make optimizer steps together, until one of them stands at a mark: before its first step,
//!    each `interval` of progress, a rung, its end.
//! 4. Then losses are read, once for everybody, and the jobs at a mark are evaluated. A job whose steps are not finite
//!    is ended before that; it touches nobody.
//! 5. A job at a rung is parked: its state goes to the host, its place to the next. Others are judged right away, all
//!    by the same curves, and end, or keep their adapter if it is their best so far.
//! 6. A rung closes once no unfinished job that has it is short of it. Everybody parked there is judged by the same
//!    curves; who stays waits for a place and goes on from where it was. Then 2. again, until every job has ended.
//!
//! Nobody waits forever: were all unfinished jobs parked, the lowest of their rungs would close. A job's curve and
//! verdict don't depend on how many places there are, or on who trains beside it.

mod candidate;
mod entry;
mod error;
mod evaluation;
mod event;
#[cfg(test)]
mod fixtures;
mod marks;
mod memory;
mod outcome;
mod report;
mod rungs;
mod sweep;
mod table;
mod train;
mod version;

pub use candidate::Candidate;
pub use error::{Fault, TrainError};
pub use event::{EVENT_VERSION, Event, EventKind, RungLoss};
pub use memory::{Admission, MemoryProfile};
pub use report::{Ended, JobReport, Outcome, REPORT_VERSION, Report, Totals, ValidationSet};
pub use table::Table;
pub use train::Trainer;
