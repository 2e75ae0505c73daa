//! The search space as it is written in TOML.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::SearchSpaceError;
use super::search::SearchSettings;
use super::values::Values;
use crate::job::{AccumulationMode, Decay};

/// The version of the format that is read.
pub(super) const VERSION: u32 = 1;

/// The hyperparameters that a task tries: one job for each way of taking one entry of every list, or, with a table
/// `[search]`, those that a search chooses.
///
/// ```
/// let text = r#"
///     version = 1
///     learning_rate = [1e-4, 1e-3]
///     rank = [8, 16]
///     batch = [2]
///     epochs = 3
/// "#;
/// let jobs = alto_core::search_space::SearchSpace::from_toml(text)?.jobs(1000)?;
/// let names: Vec<_> = jobs.iter().map(|job| job.name.as_str()).collect();
/// assert_eq!(names, ["r8-lr0.0001-b2", "r8-lr0.001-b2", "r16-lr0.0001-b2", "r16-lr0.001-b2"]);
/// assert_eq!(jobs[0].steps, 1500);
/// # Ok::<(), alto_core::search_space::SearchSpaceError>(())
/// ```
///
/// With a search, lists may be ranges: see [`Values`] and [`SearchSettings`].
///
/// ```
/// let text = r#"
///     version = 1
///     learning_rate = { log = [1e-5, 1e-2] }
///     rank = [8, 16, 32]
///     batch = { uniform = [1, 4] }
///     epochs = 3
///
///     [search]
///     method = "tpe"
///     jobs = 40
/// "#;
/// let space = alto_core::search_space::SearchSpace::from_toml(text)?;
/// let search = space.to_search()?.expect("it has a table for it");
/// let first = search.next(&[]).expect("there is something to try");
/// assert!(space.job(0, &first, 1000)?.name.starts_with("0-r"));
/// # Ok::<(), alto_core::search_space::SearchSpaceError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchSpace {
    /// Version of this format: 1.
    pub version: u32,
    /// Peak learning rates.
    pub learning_rate: Values<f64>,
    /// Ranks.
    pub rank: Values<usize>,
    /// Rows in a micro-batch.
    pub batch: Values<usize>,
    /// Alpha as a multiple of the rank; 2 if not given.
    #[serde(default = "two")]
    pub alpha_per_rank: Values<f64>,
    /// Decoupled weight decay; 0 if not given.
    #[serde(default = "zero")]
    pub weight_decay: Values<f64>,
    /// Seeds of the data's order and the adapters' start; 0 if not given.
    #[serde(default = "seed_zero")]
    pub seed: Values<u64>,
    /// Budget as passes over the data, which need not be whole. Exactly one of the three budgets is given; samples are
    /// rounded up to whole optimizer steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epochs: Option<f64>,
    /// Budget in optimizer steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Budget in samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Micro-batches in an optimizer step; 1 if not given.
    #[serde(default = "one")]
    pub accumulation: usize,
    /// How micro-batches weigh in the loss; by their tokens if not given.
    #[serde(default)]
    pub accumulation_mode: AccumulationMode,
    /// Largest gradient norm; no clipping if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// What follows the learning-rate warm-up; linear if not given, as in Hugging Face's Trainer.
    #[serde(default = "linear")]
    pub decay: Decay,
    /// Learning-rate warm-up as a share of a job's steps, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_ratio: Option<f64>,
    /// Learning-rate warm-up in steps; none if neither is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_steps: Option<u64>,
    /// Linear layers that get an adapter; all seven of a Llama block if not given.
    #[serde(default = "all_seven")]
    pub target_modules: Vec<String>,
    /// Whether the scale is `alpha / sqrt(rank)` instead of `alpha / rank`.
    #[serde(default)]
    pub rank_stabilized: bool,
    /// How jobs are chosen; all of the grid if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSettings>,
}

fn two() -> Values<f64> {
    Values::List(vec![2.0])
}

fn zero() -> Values<f64> {
    Values::List(vec![0.0])
}

fn seed_zero() -> Values<u64> {
    Values::List(vec![0])
}

fn one() -> usize {
    1
}

fn linear() -> Decay {
    Decay::Linear
}

fn all_seven() -> Vec<String> {
    ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"].map(str::to_owned).to_vec()
}

impl SearchSpace {
    /// Reads a search space from a TOML file.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml), with the file's name, and when it can't be read or gives no
    /// [`jobs`](Self::jobs), or no [search](Self::to_search), however many rows there are.
    pub fn read(path: &Path) -> Result<Self, SearchSpaceError> {
        let path = || path.to_owned();
        let text = fs::read_to_string(path()).map_err(|source| SearchSpaceError::Io { path: path(), source })?;
        let in_file = |source| SearchSpaceError::InFile { path: path(), source: Box::new(source) };
        let space = Self::from_toml(&text).map_err(in_file)?;
        space.check().map_err(in_file)?;
        Ok(space)
    }

    /// Takes a search space from TOML.
    ///
    /// # Errors
    /// When the text isn't TOML, lacks a key or has an unknown one, or is of another version.
    pub fn from_toml(text: &str) -> Result<Self, SearchSpaceError> {
        #[derive(Deserialize)]
        struct Version {
            version: Option<u32>,
        }
        let toml = |source| SearchSpaceError::Toml { source: Box::new(source) };
        // The version first: another one may have other keys.
        let Version { version } = toml::from_str(text).map_err(toml)?;
        if version != Some(VERSION) {
            return Err(SearchSpaceError::Version { found: version.map_or("missing".to_owned(), |v| v.to_string()) });
        }
        toml::from_str(text).map_err(toml)
    }
}
