//! Why a case can't be replayed.

use std::io;
use std::path::PathBuf;

use crate::backend::BackendError;
use crate::dtype::Dtype;
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
    /// Evaluations that aren't each behind a step of the run, in order and only once.
    #[error(
        "{path}: {record}.eval_step[{index}] is {found}, expected ascending steps, each only once, of at most {steps}"
    )]
    EvaluationStep {
        /// The file.
        path: PathBuf,
        /// Which precision's record.
        record: &'static str,
        /// Which evaluation.
        index: usize,
        /// The step it names.
        found: u64,
        /// Steps of the run.
        steps: u64,
    },
    /// A recorded row that can't be used.
    #[error("{path}: row {row} of {batch}: {problem}")]
    Row {
        /// The file.
        path: PathBuf,
        /// The batch, as `train[step][micro-batch]` or `eval[batch]`.
        batch: String,
        /// Which of its rows.
        row: usize,
        /// What is wrong.
        problem: RowProblem,
    },
    /// A reference whose own 16 bits are so far from its f32 that anything would pass.
    #[error("{path}: {what} in {dtype} is {found} from that in f32, expected at most {most}")]
    Reference {
        /// The file.
        path: PathBuf,
        /// Which numbers.
        what: &'static str,
        /// The reference's dtype.
        dtype: Dtype,
        /// How far they are apart.
        found: f64,
        /// The most that says anything.
        most: f64,
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

/// What is wrong with a recorded row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowProblem {
    /// Not as long as its token ids.
    #[error("{what} has {found} entries, expected {expected}, one for each of input_ids")]
    Length {
        /// Which list.
        what: &'static str,
        /// Its length.
        found: usize,
        /// How many token ids there are.
        expected: usize,
    },
    /// A mask that isn't 1s followed by 0s.
    #[error("attention_mask[{position}] is {found}, expected 1s followed by 0s: padding on the right")]
    Mask {
        /// Where in the row.
        position: usize,
        /// What stands there.
        found: u8,
    },
    /// A label that is neither a token id nor negative.
    #[error(
        "labels[{position}] is {found}, expected a token id of at most {}, or a negative number where none counts",
        u32::MAX
    )]
    Label {
        /// Where in the row.
        position: usize,
        /// What stands there.
        found: i64,
    },
    /// No tokens, though the row's logits are compared.
    #[error("it has no tokens, expected at least one: the logits of this row are recorded")]
    Empty,
}
