//! Recorded runs out of files.

use std::path::{Path, PathBuf};

use alto_exit::replay::{Corpus, CorpusError, RecordedRun, RunError};
use serde::de::DeserializeOwned;

/// Reads and checks a JSON file that holds one run.
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn read_run(path: impl AsRef<Path>) -> Result<RecordedRun, ReadError> {
    let path = path.as_ref();
    let run: RecordedRun = parse(path, "a recorded run")?;
    run.check().map_err(|source| ReadError::Run { path: path.into(), source })?;
    Ok(run)
}

/// Reads and checks a JSON file that holds the runs of one task.
///
/// # Errors
/// Names the file, the run and what is wrong with it.
pub fn read_corpus(path: impl AsRef<Path>) -> Result<Corpus, ReadError> {
    let path = path.as_ref();
    let corpus: Corpus = parse(path, "a corpus of recorded runs")?;
    corpus.check().map_err(|source| ReadError::Corpus { path: path.into(), source })?;
    Ok(corpus)
}

fn parse<T: DeserializeOwned>(path: &Path, expected: &'static str) -> Result<T, ReadError> {
    let text = std::fs::read_to_string(path).map_err(|source| ReadError::Open { path: path.into(), source })?;
    serde_json::from_str(&text).map_err(|source| ReadError::Parse { path: path.into(), expected, source })
}

/// Why a file of recorded runs can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A file that can't be read.
    #[error("{}: can't be read", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A file that isn't JSON of this layout.
    #[error("{}: not {expected}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
        /// Where it goes wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A run whose numbers don't fit together.
    #[error("{}: the recorded run contradicts itself", path.display())]
    Run {
        /// The file.
        path: PathBuf,
        /// What doesn't fit.
        #[source]
        source: RunError,
    },
    /// A corpus that can't be replayed.
    #[error("{}: the corpus can't be replayed", path.display())]
    Corpus {
        /// The file.
        path: PathBuf,
        /// What doesn't fit.
        #[source]
        source: CorpusError,
    },
}
