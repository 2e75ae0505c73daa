//! The events of a run, in a file as they happen, so that they outlive whatever happens to the run.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use alto_core::fleet::Event;

use crate::EVENTS;
use crate::work::Fallible;

/// A file of events, one on a line, that is being written.
#[derive(Debug)]
pub(crate) struct Events {
    path: PathBuf,
    file: File,
    log: Vec<Event>,
    /// The first thing that went wrong with the file.
    error: Option<io::Error>,
}

impl Events {
    /// A new file in this directory, which is made if need be.
    pub(crate) fn create(out: &Path) -> Fallible<Self> {
        let path = out.join(EVENTS);
        let create = || {
            fs::create_dir_all(out)?;
            File::create_new(&path)
        };
        let file = create().map_err(|error| format!("can't write {}: {error}", path.display()))?;
        Ok(Self { path, file, log: vec![], error: None })
    }

    /// Writes an event. A disk that is full ends no training: it is an error at the end.
    pub(crate) fn note(&mut self, event: &Event) {
        let written = serde_json::to_string(event).map_err(io::Error::from);
        let written = written.and_then(|line| self.file.write_all((line + "\n").as_bytes()));
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
        self.log.push(event.clone());
    }

    /// All events, if they have been written.
    pub(crate) fn close(self) -> Fallible<Vec<Event>> {
        match self.error {
            None => Ok(self.log),
            Some(error) => Err(format!("{} is not whole: {error}", self.path.display()).into()),
        }
    }
}
