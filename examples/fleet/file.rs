//! The tasks of a fleet, as they are written in TOML.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use alto_core::search_space::SearchSpace;
use serde::Deserialize;

use crate::{EVENTS, REPORT};

/// The devices and all tasks. Paths are relative to the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FleetFile {
    version: u32,
    /// How many devices there are; each is an equal share of the machine's threads.
    pub(crate) devices: u32,
    /// How many tasks that come later may start before a task that waits.
    pub(crate) overtaking: Option<u32>,
    #[serde(rename = "task")]
    pub(crate) tasks: Vec<TaskFile>,
}

/// One task.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskFile {
    /// What it is called, and the directory that its adapter goes to.
    pub(crate) name: String,
    /// When it is submitted, in seconds from the fleet's start.
    #[serde(default)]
    pub(crate) after: f64,
    /// How many devices it trains on.
    #[serde(default = "one")]
    pub(crate) devices: u32,
    /// A Llama model in Hugging Face's layout; the quick start's if not given.
    pub(crate) model: Option<PathBuf>,
    /// Training rows, a JSONL file; the quick start's if not given.
    pub(crate) train: Option<PathBuf>,
    /// Validation rows, likewise.
    pub(crate) val: Option<PathBuf>,
    /// Which jobs end early, a JSON file; the paper's policy if not given.
    pub(crate) policy: Option<PathBuf>,
    /// Jobs that train at a time; all of them if not given.
    pub(crate) slots: Option<usize>,
    /// Progress between a job's evaluations.
    #[serde(default = "twentieth")]
    pub(crate) interval: f64,
    /// For trials: its device is lost after so many calls that train.
    pub(crate) lost_after: Option<u64>,
    /// What it tries.
    pub(crate) grid: SearchSpace,
}

fn one() -> u32 {
    1
}

fn twentieth() -> f64 {
    0.05
}

impl FleetFile {
    /// Reads the file, or the one of this example, with all paths as they are from here.
    pub(crate) fn read(path: Option<&Path>) -> Result<Self, String> {
        let (shown, text, folder) = match path {
            Some(path) => {
                let text =
                    fs::read_to_string(path).map_err(|error| format!("can't read {}: {error}", path.display()))?;
                (path.display().to_string(), text, path.parent().unwrap_or(Path::new("")))
            }
            None => ("fleet.toml".to_owned(), include_str!("../fleet.toml").to_owned(), Path::new("")),
        };
        let mut file: Self = toml::from_str(&text).map_err(|error| format!("{shown} is not a fleet: {error}"))?;
        file.check().map_err(|error| format!("{shown}: {error}"))?;
        for task in &mut file.tasks {
            for path in [&mut task.model, &mut task.train, &mut task.val, &mut task.policy].into_iter().flatten() {
                *path = folder.join(&*path);
            }
        }
        Ok(file)
    }

    fn check(&self) -> Result<(), String> {
        if self.version != 1 {
            return Err(format!("version is {}, expected 1", self.version));
        }
        if !(1..=256).contains(&self.devices) {
            return Err(format!("devices is {}, expected 1 to 256", self.devices));
        }
        if self.tasks.is_empty() {
            return Err("task is an empty list, expected at least one".to_owned());
        }
        let mut names = BTreeSet::new();
        for task in &self.tasks {
            let name = &task.name;
            let mut parts = Path::new(name).components();
            if !matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name.as_str()) {
                return Err(format!("task {name:?} can't name a directory"));
            }
            if [EVENTS, REPORT].contains(&name.as_str()) {
                return Err(format!("a task can't be called {name}, as a file of the fleet's is"));
            }
            if !names.insert(name) {
                return Err(format!("two tasks are called {name}"));
            }
            if !(task.after.is_finite() && task.after >= 0.0) {
                return Err(format!(
                    "task {name} comes after {} s, expected a finite number of at least 0",
                    task.after
                ));
            }
            // Else its profile would be measured first, on as many threads as that.
            if !(1..=self.devices).contains(&task.devices) {
                return Err(format!("task {name} takes {} devices, expected 1 to {}", task.devices, self.devices));
            }
            if task.slots == Some(0) {
                return Err(format!("task {name} has 0 slots, expected at least 1"));
            }
            if !(task.interval > 0.0 && task.interval <= 1.0) {
                return Err(format!("task {name} has an interval of {}, expected over 0 and at most 1", task.interval));
            }
        }
        Ok(())
    }
}
