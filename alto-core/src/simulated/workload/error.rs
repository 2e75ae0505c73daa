//! Why a workload can't be made, read or timed.

use std::path::PathBuf;

use alto_exit::replay::ReplayError;
use alto_sched::PlanError;

use crate::simulated::systems::CostError;

/// Why a workload can't be made or timed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A number that makes no sense.
    #[error("{setting} is {value}, expected {expected}")]
    OutOfRange {
        /// What the number sets.
        setting: &'static str,
        /// The number.
        value: f64,
        /// What would be right.
        expected: &'static str,
    },
    /// A list without entries.
    #[error("{setting} is empty, expected at least one entry")]
    Empty {
        /// The list.
        setting: &'static str,
    },
    /// A job that doesn't fit even alone.
    #[error("task {task}: rank {rank} and batch {batch} need {needed} bytes on a device, but {device} has {memory}")]
    NeverFits {
        /// The task.
        task: String,
        /// The job's rank.
        rank: usize,
        /// Its batch.
        batch: usize,
        /// Bytes needed on the fullest device.
        needed: u64,
        /// The device.
        device: String,
        /// Bytes that it has.
        memory: u64,
    },
    /// A system's cost.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// Recorded runs that can't be replayed.
    #[error("what early exit leaves can't be measured")]
    Replay(#[from] ReplayError),
    /// Tasks that can't be planned.
    #[error("the tasks can't be planned")]
    Plan(#[from] PlanError),
}

/// Why a trace can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A file that can't be read.
    #[error("{}: can't be read", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A file that isn't a trace.
    #[error("{} is not a trace", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: Box<TraceError>,
    },
    /// Not CSV in UTF-8.
    #[error("the trace can't be taken apart")]
    Csv {
        /// What is wrong, with the line.
        #[from]
        source: csv::Error,
    },
    /// A header that lacks a column.
    #[error("line 1: column {column} is missing; the header must have arrival, devices, and duration or jobs")]
    MissingColumn {
        /// The column.
        column: &'static str,
    },
    /// A header with a column that isn't known.
    #[error("line 1: column {column:?} is unknown, expected {known}")]
    UnknownColumn {
        /// The column.
        column: String,
        /// Those there are, separated by commas.
        known: String,
    },
    /// A header that has a column twice.
    #[error("line 1: column {column} is there twice, expected once")]
    DuplicateColumn {
        /// The column.
        column: String,
    },
    /// A line that is too short or too long.
    #[error("line {line} has {found} fields, expected {expected} as in the header")]
    Fields {
        /// The line, 1 being the header's.
        line: u64,
        /// Its fields.
        found: usize,
        /// The header's.
        expected: usize,
    },
    /// A field that can't be read.
    #[error("line {line}, column {column}: {found:?}, expected {expected}")]
    Field {
        /// The line, 1 being the header's.
        line: u64,
        /// The column.
        column: &'static str,
        /// What stands there.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
}
