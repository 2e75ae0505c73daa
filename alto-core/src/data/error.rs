//! Why a tokenizer or data set can't be used.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Where a row comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, if it comes from one.
    pub path: Option<PathBuf>,
    /// Its line in the file, or its place among the examples; from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}, line {}", path.display(), self.line),
            None => write!(f, "example {}", self.line),
        }
    }
}

/// Why a tokenizer or data set can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file can't be read.
    #[error("can't read {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file of the tokenizer that should be JSON and isn't.
    #[error("{path} is not a valid JSON object of the expected form")]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        #[source]
        source: serde_json::Error,
    },
    /// A `tokenizer.json` that isn't one.
    #[error("{path} is not a Hugging Face tokenizer")]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A special token that the tokenizer doesn't know.
    #[error("{path}: {key} is {value}, expected a token or token id of the tokenizer beside it")]
    SpecialToken {
        /// The file that names it.
        path: PathBuf,
        /// `bos_token`, `eos_token`, or either with `_id`.
        key: String,
        /// What is there, as JSON.
        value: String,
    },
    /// A text that the tokenizer can't split.
    #[error("the tokenizer can't encode the text {text:?}")]
    Encode {
        /// The text's beginning.
        text: String,
        /// What the tokenizer said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A row whose text the tokenizer can't split.
    #[error("{place}: the row can't be tokenized")]
    EncodeRow {
        /// The row.
        place: Place,
        /// Which text, and what the tokenizer said.
        #[source]
        source: Box<DataError>,
    },
    /// No rows at all.
    #[error("{} has no rows, expected at least one", path.as_deref().unwrap_or(Path::new("the data set")).display())]
    NoRows {
        /// The file, if there is one.
        path: Option<PathBuf>,
    },
    /// A line without anything on it.
    #[error("{place}: the line is empty, expected {expected}")]
    EmptyLine {
        /// The line.
        place: Place,
        /// What a row looks like.
        expected: &'static str,
    },
    /// A line that isn't text.
    #[error("{place}: byte {byte} of the line is not UTF-8, expected {expected} in UTF-8")]
    NotUtf8 {
        /// The line.
        place: Place,
        /// How many bytes of the line are fine.
        byte: usize,
        /// What a row looks like.
        expected: &'static str,
    },
    /// A line that isn't a row.
    #[error("{place}, column {column}: {problem}, expected {expected}")]
    BadRow {
        /// The line.
        place: Place,
        /// Where on the line, in bytes from 1.
        column: usize,
        /// What is wrong there.
        problem: String,
        /// What a row looks like.
        expected: &'static str,
    },
    /// A text of characters that the tokenizer doesn't know.
    #[error("the tokenizer gives no token for the completion {text:?}, expected some text that it knows")]
    NoTokens {
        /// Its beginning.
        text: String,
    },
    /// A row with nothing to learn.
    #[error("{place}: the completion is empty, expected some text, since the loss is taken on it alone")]
    EmptyCompletion {
        /// The row.
        place: Place,
    },
    /// A row with no labelled token, or with one label too many or too few.
    #[error(
        "{place}: {tokens} tokens and {labelled} labels, \
         expected as many targets as tokens and a label among them"
    )]
    BadExample {
        /// The row.
        place: Place,
        /// Its tokens.
        tokens: usize,
        /// Its labels.
        labelled: usize,
    },
    /// A prompt that leaves no place for a completion.
    #[error(
        "{place}: the prompt has {tokens} tokens, but the context only {context}: \
         shorten it to leave room for a completion"
    )]
    PromptTooLong {
        /// The row.
        place: Place,
        /// The prompt's tokens, with the one in front of it.
        tokens: usize,
        /// Most tokens in a row.
        context: usize,
    },
    /// A token that the model doesn't have.
    #[error(
        "{place}: token id {token} is out of range, the model's vocabulary has {vocabulary}: \
         is it the model's own tokenizer?"
    )]
    TokenOutOfRange {
        /// The row.
        place: Place,
        /// The token's id.
        token: u32,
        /// Size of the vocabulary.
        vocabulary: usize,
    },
}
