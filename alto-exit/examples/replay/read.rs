//! Corpora out of files.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use alto_exit::replay::{CORPUS_VERSION, Corpus, RecordedRun};
use serde::de::DeserializeOwned;

/// The tasks in these files, in the order in which they are named.
pub(crate) fn corpora(files: &[PathBuf]) -> Result<Vec<Corpus>, String> {
    let mut corpora: Vec<Corpus> = vec![];
    // Where the task made of a folder's single runs stands.
    let mut of_folder = BTreeMap::new();
    for path in files {
        let text = text(path)?;
        let value: serde_json::Value = parse(path, &text, "recorded runs")?;
        if value.get("runs").is_some() {
            let corpus: Corpus = parse(path, &text, "a corpus of recorded runs")?;
            corpus.check().map_err(|error| format!("{}: {}", path.display(), chain(&error)))?;
            corpora.push(corpus);
            continue;
        }
        let mut run: RecordedRun = parse(path, &text, "a recorded run")?;
        run.check().map_err(|error| format!("{}: {}", path.display(), chain(&error)))?;
        run.name.get_or_insert_with(|| name(path.file_stem()));
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let task = folder.file_name().map_or("runs".to_owned(), |_| name(folder.file_name()));
        let at = *of_folder.entry(folder.clone()).or_insert_with(|| {
            corpora.push(Corpus { version: CORPUS_VERSION, task, model: None, runs: vec![] });
            corpora.len() - 1
        });
        corpora[at].runs.push(run);
        // Names of single runs meet only here.
        corpora[at].check().map_err(|error| format!("{}: {}", path.display(), chain(&error)))?;
    }
    Ok(corpora)
}

/// What an error says, and what it says of its source.
pub(crate) fn chain(error: &dyn Error) -> String {
    error.source().map_or(error.to_string(), |source| format!("{error}: {}", chain(source)))
}

/// What the file holds.
pub(crate) fn text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: can't be read: {error}", path.display()))
}

/// What the file means, which should be `what`.
pub(crate) fn parse<T: DeserializeOwned>(path: &Path, text: &str, what: &str) -> Result<T, String> {
    if text.trim().is_empty() {
        return Err(format!("{}: empty, expected {what} in JSON", path.display()));
    }
    serde_json::from_str(text).map_err(|error| format!("{}: not {what}: {error}", path.display()))
}

fn name(name: Option<&std::ffi::OsStr>) -> String {
    name.unwrap_or_default().to_string_lossy().into_owned()
}
