//! Why a workload can't be made or read.

use std::path::PathBuf;

/// Why a workload can't be made.
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
