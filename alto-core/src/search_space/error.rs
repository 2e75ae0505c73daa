//! Why a search space gives no jobs.

use std::io;
use std::path::PathBuf;

use super::grid::JOBS_LIMIT;
use super::space::VERSION;
use crate::job::JobError;

/// Why a search space gives no jobs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchSpaceError {
    /// The file can't be read.
    #[error("can't read {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What is in the file isn't a search space.
    #[error("{path} is not a search space")]
    InFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: Box<SearchSpaceError>,
    },
    /// Not TOML, or a key is missing, unknown or of the wrong type.
    #[error("the search space is not TOML of the expected form")]
    Toml {
        /// What is wrong, with the line.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// Another version of the format.
    #[error("version is {found}, expected {VERSION}")]
    Version {
        /// The version, or `missing`.
        found: String,
    },
    /// A grid that nobody means to train.
    #[error("the grid has {jobs} jobs, expected at most {JOBS_LIMIT}")]
    TooManyJobs {
        /// One for each way of taking an entry of every list.
        jobs: usize,
    },
    /// A list without entries gives an empty grid.
    #[error("{key} is an empty list, expected at least one entry")]
    EmptyList {
        /// The list.
        key: &'static str,
    },
    /// An entry that stands in its list twice.
    #[error("{key} has {value} twice, expected each entry once")]
    Duplicate {
        /// The list.
        key: &'static str,
        /// The entry.
        value: String,
    },
    /// No budget, or several.
    #[error("{given} of epochs, steps and samples are given, expected exactly one")]
    Budgets {
        /// How many are given.
        given: usize,
    },
    /// Two warm-ups.
    #[error("warmup_ratio and warmup_steps are both given, expected at most one")]
    TwoWarmups,
    /// A warm-up that leaves no step at the full learning rate.
    #[error("job {job}: a warm-up of {warmup} steps, but it has only {steps}, expected at least one step more")]
    WarmupTooLong {
        /// The job's name.
        job: String,
        /// Its warm-up, in steps.
        warmup: u64,
        /// Its budget, in steps.
        steps: u64,
    },
    /// A number outside its range.
    #[error("job {job}: {key} is {value}, but must be {expected}")]
    OutOfRange {
        /// The job's name.
        job: String,
        /// What the number sets.
        key: &'static str,
        /// The number.
        value: f64,
        /// What would be right.
        expected: &'static str,
    },
    /// A setting of a job is out of range.
    #[error(transparent)]
    Job(#[from] JobError),
}
