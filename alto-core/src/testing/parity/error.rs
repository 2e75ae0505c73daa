//! Why a case can't be replayed.

use std::io;
use std::path::PathBuf;

use crate::backend::BackendError;
use crate::peft::PeftError;
use crate::tensor_file::TensorFileError;

/// Why a case can't be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParityError {
    /// A file or directory can't be read.
    #[error("can't read {path}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A trace that isn't of the expected form.
    #[error("{path} is not a trace of the expected form")]
    Trace {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        #[source]
        source: serde_json::Error,
    },
    /// A trace that contradicts itself.
    #[error("{path}: {what} has {found} entries, expected {expected}")]
    Length {
        /// The file.
        path: PathBuf,
        /// Which list.
        what: &'static str,
        /// Its length.
        found: usize,
        /// What it should be.
        expected: usize,
    },
    /// A recorded tensor that has no counterpart.
    #[error("{path} has no tensor {tensor}")]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
    },
    /// An adapter can't be read.
    #[error(transparent)]
    Adapter(#[from] PeftError),
    /// A file of tensors can't be read.
    #[error(transparent)]
    Tensors(#[from] TensorFileError),
    /// The backend refused or failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
}
