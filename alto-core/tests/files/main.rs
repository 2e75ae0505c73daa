//! Everything that reads or writes files, on good and on bad ones.
// The lint's exemption for tests leaves out the functions that they share.
#![allow(clippy::unwrap_used)]

mod adapters;
mod configs;
mod datasets;
mod search_spaces;
mod tokenizers;
mod weights;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A path under the repository's `testdata`.
fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata").join(path)
}

/// How a test spoils something sound.
type Edit<T> = fn(&mut T);

/// An empty directory that goes away with its handle.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A copy of the directory's own files, not of the directories in it.
fn copy_of(dir: &Path) -> tempfile::TempDir {
    let copy = scratch();
    for entry in fs::read_dir(dir).unwrap() {
        let from = entry.unwrap().path();
        if from.is_file() {
            fs::copy(&from, copy.path().join(from.file_name().unwrap())).unwrap();
        }
    }
    copy
}

/// Changes a JSON file in place.
fn edit_json(path: &Path, edit: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    edit(&mut value);
    fs::write(path, serde_json::to_vec(&value).unwrap()).unwrap();
}

/// The error and what caused it, as people see it.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    text
}

/// Checks that the result is an error whose message has every part.
#[track_caller]
fn assert_error<T, E: Error>(result: Result<T, E>, parts: &[&str]) {
    let Err(error) = result else { panic!("no error, expected one with {parts:?}") };
    let text = chain(&error);
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in the error {text:?}");
    }
}
