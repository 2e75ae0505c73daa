//! Why a model can't be had from its directory.

use std::io;
use std::path::PathBuf;

use crate::tensor_file::TensorFileError;

/// Why a model can't be had from its directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file can't be read.
    #[error("can't read {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file that should be JSON and isn't.
    #[error("{path} is not a valid JSON object of the expected form")]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        #[source]
        source: serde_json::Error,
    },
    /// A model of another family.
    #[error("{path}: model_type {model_type} is not supported, expected llama")]
    UnsupportedModel {
        /// The configuration file.
        path: PathBuf,
        /// Its `model_type`.
        model_type: String,
    },
    /// A setting that is wrong, or right but not supported.
    #[error("{path}: {key} is {value}, expected {expected}")]
    Setting {
        /// The configuration file.
        path: PathBuf,
        /// The setting, with dots between levels.
        key: String,
        /// Its value as JSON, or `missing`.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// Neither one file of weights nor an index of several.
    #[error("{dir} has no weights, expected model.safetensors or model.safetensors.index.json")]
    NoWeights {
        /// The model's directory.
        dir: PathBuf,
    },
    /// An index that leads out of the directory.
    #[error("{index} names the file {file:?} for {tensor}, expected the plain name of a file beside it")]
    ShardName {
        /// The index.
        index: PathBuf,
        /// The tensor.
        tensor: String,
        /// The file it is said to be in.
        file: String,
    },
    /// An index that names a file that isn't there.
    #[error("{index} says that {tensor} is in {file}, but there is no such file")]
    MissingShard {
        /// The index.
        index: PathBuf,
        /// The tensor.
        tensor: String,
        /// The file it is said to be in.
        file: PathBuf,
    },
    /// An index that promises a tensor that its file lacks.
    #[error("{index} says that {tensor} is in {file}, but that file doesn't have it")]
    NotInShard {
        /// The index.
        index: PathBuf,
        /// The tensor.
        tensor: String,
        /// The file it is said to be in.
        file: PathBuf,
    },
    /// A tensor that the configuration asks for is in none of the files.
    #[error("{path} has no tensor {tensor}, which the configuration asks for{hint}")]
    MissingTensor {
        /// The file of weights, or the index.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// What may be the matter, starting with a colon, or nothing.
        hint: &'static str,
    },
    /// A file of weights is damaged, or a tensor in it isn't what the configuration asks for.
    #[error(transparent)]
    Tensors(#[from] TensorFileError),
}
