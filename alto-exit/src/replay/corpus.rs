//! The recorded runs of one task.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::recorded_run::{RecordedRun, RunError};
use crate::version;

/// The version that corpora in files have.
pub const CORPUS_VERSION: u32 = 1;

/// Runs that compete: the configurations of one task, each trained to the end.
///
/// ```
/// use alto_exit::replay::Corpus;
///
/// let text = r#"{"version": 1, "task": "gsm8k-s0", "model": "gsm-nano", "runs": [
///     {"name": "slow", "rank": 8, "alpha": 16, "lr": 1e-4, "batch": 1, "steps": 2,
///      "train_loss": [2.0, 1.5], "eval_step": [0, 1, 2], "val_loss": [2.2, 2.0, "NaN"]}
/// ]}"#;
/// let corpus: Corpus = serde_json::from_str(text)?;
/// corpus.check()?;
/// assert_eq!(corpus.runs[0].best().map(|best| best.loss), Some(2.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Corpus {
    /// [`CORPUS_VERSION`].
    #[serde(deserialize_with = "version::known::<CORPUS_VERSION, _>")]
    pub version: u32,
    /// What the task is called.
    pub task: String,
    /// The base model, if it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The runs, in the order in which the jobs were given.
    pub runs: Vec<RecordedRun>,
}

impl Corpus {
    /// Checks every run, that there is one, and that no two have one name.
    ///
    /// # Errors
    /// Names the run, its index, and what is wrong with it.
    pub fn check(&self) -> Result<(), CorpusError> {
        if self.runs.is_empty() {
            return Err(CorpusError::NoRuns { task: self.task.clone() });
        }
        let mut names = BTreeMap::new();
        for (index, run) in self.runs.iter().enumerate() {
            let name = self.name(index);
            run.check().map_err(|source| CorpusError::Run { index, name: name.clone(), source })?;
            if let Some(first) = names.insert(name.clone(), index) {
                return Err(CorpusError::DuplicateName { name, first, second: index });
            }
        }
        Ok(())
    }

    /// The task's name, and its seed where all runs have the same.
    pub fn label(&self) -> String {
        match self.runs.first().and_then(|run| run.seed) {
            Some(seed) if self.runs.iter().all(|run| run.seed == Some(seed)) => format!("{}-s{seed}", self.task),
            _ => self.task.clone(),
        }
    }

    /// What the run of this index is called.
    ///
    /// # Panics
    /// If there is no such run.
    pub fn name(&self, index: usize) -> String {
        self.runs[index].name.clone().unwrap_or_else(|| format!("#{index}"))
    }
}

/// Why a corpus can't be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusError {
    /// Nothing recorded.
    #[error("the corpus of task {task} has no runs, expected at least one")]
    NoRuns {
        /// The task.
        task: String,
    },
    /// A run that can't be replayed.
    #[error("run {index} ({name}) can't be replayed")]
    Run {
        /// Its index.
        index: usize,
        /// Its name.
        name: String,
        /// What is wrong with it.
        source: RunError,
    },
    /// Two runs of one name.
    #[error("runs {first} and {second} are both named {name}")]
    DuplicateName {
        /// The name.
        name: String,
        /// Index of the first.
        first: usize,
        /// Index of the second.
        second: usize,
    },
}
