//! Why an adapter can't be written or read.

use std::io;
use std::path::PathBuf;

use crate::tensor_file::TensorFileError;

/// Why an adapter can't be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeftError {
    /// A file or directory can't be read or written.
    #[error("can't read or write {path}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Something is where the adapter should go.
    #[error("{dir} exists, and nothing is overwritten: name a directory that doesn't")]
    Exists {
        /// The directory.
        dir: PathBuf,
    },
    /// Nothing was trained.
    #[error("the adapter for {dir} would change nothing: every lora_B is zero, so nothing was trained")]
    Identity {
        /// The directory it was to go to.
        dir: PathBuf,
    },
    /// A weight that is infinite or not a number.
    #[error("{tensor} is {value} at index {index}, expected finite numbers")]
    NotFinite {
        /// The module path with `.lora_A` or `.lora_B`.
        tensor: String,
        /// Index of the first such entry, in row-major order.
        index: usize,
        /// The entry.
        value: f32,
    },
    /// A factor that isn't of the adapter's rank.
    #[error("{tensor} is {rows} x {columns}, but the rank is {rank}")]
    Rank {
        /// The module path with `.lora_A` or `.lora_B`.
        tensor: String,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// The adapter's rank.
        rank: usize,
    },
    /// Target modules and factors that contradict each other.
    #[error("the target modules are {targets:?}, but {module} {problem}")]
    Targets {
        /// The adapter's target modules.
        targets: Vec<String>,
        /// The module at odds with them.
        module: String,
        /// In what way.
        problem: &'static str,
    },
    /// Adapter settings that can't be put in JSON, or aren't JSON.
    #[error("{path} is not valid JSON of the expected form")]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        #[source]
        source: serde_json::Error,
    },
    /// A setting that is wrong, or that asks for what isn't supported.
    #[error("{path}: {key} is {value}, expected {expected}")]
    Setting {
        /// The file.
        path: PathBuf,
        /// The setting.
        key: String,
        /// Its value as JSON, or `missing`.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A tensor that is no factor of a linear layer's adapter.
    #[error(
        "{path} has the tensor {tensor}, expected only base_model.model.<module>.lora_A.weight and \
         lora_B.weight"
    )]
    ForeignTensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
    },
    /// A factor whose tensor is not a matrix.
    #[error("{tensor} in {path} has the shape {found:?}, expected {expected}")]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Its shape.
        found: Vec<usize>,
        /// What would be right.
        expected: String,
    },
    /// The file of tensors can't be read or written, or a factor is missing in it.
    #[error(transparent)]
    Tensors(#[from] TensorFileError),
    /// The tensors can't be put in a file.
    #[error("can't lay out {path}")]
    Serialize {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: safetensors::SafeTensorError,
    },
}
