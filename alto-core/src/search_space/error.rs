//! Why a search space gives no jobs.

use std::io;
use std::path::PathBuf;

use alto_exit::search::SpaceError;

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
    /// A range without a search to choose from it.
    #[error("{key} is a range, which a grid can't go through; list its values, or add a table [search]")]
    RangeInGrid {
        /// The range.
        key: &'static str,
    },
    /// A list of jobs was asked for where a search chooses them.
    #[error("a table [search] is given, so the jobs are not known from the start")]
    Searched,
    /// A search of no jobs, or of more than anybody means to train.
    #[error("search: {key} is {found}, expected 1 to {JOBS_LIMIT}")]
    Search {
        /// What the number sets.
        key: &'static str,
        /// The number.
        found: usize,
    },
    /// A space that can't be searched.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// A whole number that a search can't count to.
    #[error("{key} is {value}, but with a table [search] it must be at most 2^63 - 1")]
    TooLarge {
        /// What the number sets.
        key: &'static str,
        /// The number.
        value: u64,
    },
    /// A point of another space.
    #[error("the point has no {key}, or not one that a job can have")]
    Missing {
        /// What is missing.
        key: &'static str,
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
