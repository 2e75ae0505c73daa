//! What a run starts from: the quick start's files, and rows of one's own.

use std::path::{Path, PathBuf};

use alto_core::data::{DataError, Dataset, Tokenizer};
use alto_core::model::ModelConfig;

/// The directory of the quick start's model and data, which lie in this repository.
pub fn quickstart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("testdata").join("quickstart")
}

/// Reads rows that the model can train on.
///
/// # Errors
/// Names the file, and the row with what is wrong with it.
pub fn read_rows(path: &Path, tokenizer: &Tokenizer, config: &ModelConfig) -> Result<Dataset, DataError> {
    let rows = Dataset::read(path, tokenizer, config.context)?;
    rows.check_vocabulary(config.vocabulary)?;
    Ok(rows)
}
