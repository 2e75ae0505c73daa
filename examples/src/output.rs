//! Paths of what a run will write: looked at before it trains, written whole or not at all after it.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use alto_core::peft;
use alto_core::trainer::{JobReport, Outcome};

/// Checks that neither the directory nor the file of a report is there yet and that both could be made, the directories
/// above them included. The file may lie in the directory.
///
/// # Errors
/// Names the path, or what is in its way, and what would be right.
pub fn check_outputs(dir: &Path, report: &Path) -> Result<(), String> {
    check_new(dir)?;
    check_new(report)?;
    if report.as_os_str().to_string_lossy().ends_with(std::path::is_separator) {
        return Err(format!("{} names a directory, expected a file", report.display()));
    }
    let own = ["adapter_config.json", "adapter_model.safetensors"].map(|name| dir.join(name));
    if own.iter().any(|own| report.starts_with(own)) {
        return Err(format!("{} is a file of the adapter's, name another for the report", report.display()));
    }
    if dir.starts_with(report) {
        return Err(format!("{} can't be a file, since {} is a directory", report.display(), dir.display()));
    }
    Ok(())
}

fn check_new(path: &Path) -> Result<(), String> {
    let shown = path.display();
    if path.symlink_metadata().is_ok() {
        return Err(format!("{shown} exists, and nothing is overwritten: name a path that doesn't"));
    }
    if path.file_name().is_none() {
        return Err(format!("{shown:?} has no name at its end, expected one that doesn't exist"));
    }
    // Whether it can be made is only found by making it; all that is made here is gone again at once.
    let missing: Vec<&Path> = path.ancestors().take_while(|above| above.symlink_metadata().is_err()).collect();
    if missing.iter().any(|missing| missing.components().next_back() == Some(Component::ParentDir)) {
        return Err(format!("{shown} goes up from a directory that doesn't exist, name it without `..`"));
    }
    let made = fs::create_dir_all(path);
    for dir in &missing {
        let _ = fs::remove_dir(dir);
    }
    let there = path.ancestors().nth(missing.len()).filter(|there| !there.as_os_str().is_empty());
    let there = there.unwrap_or(Path::new(".")).display();
    made.map_err(|error| format!("{shown} can't be made in {there}: {error}, name a path where it can"))
}

/// The path itself, or with `-2`, `-3`, ... behind it: the first that doesn't exist.
pub fn fresh(path: &str) -> PathBuf {
    let mut names = std::iter::once(path.to_owned()).chain((2..).map(|n: u64| format!("{path}-{n}")));
    let free = names.find(|name| Path::new(name).symlink_metadata().is_err());
    free.map_or_else(|| path.into(), PathBuf::from)
}

/// Saves the best adapter of a run in a directory that isn't there yet, for PEFT, and tells which it is and how good.
///
/// # Errors
/// When there is none, it can't be saved, or is no better than no adapter, though it is saved then.
pub fn save_adapter(outcome: &Outcome, model: &Path, out: &Path) -> Result<String, Box<dyn Error>> {
    let report = &outcome.report;
    let winner = report.winner.ok_or("no job has trained and has a finite loss: there is no adapter to save")?;
    let JobReport { job, best, curve, .. } = &report.jobs[winner];
    let (Some(adapter), Some(best)) = (&outcome.adapters[winner], best) else { unreachable!("it has won") };
    // PEFT is to find the base model from any directory.
    peft::export(adapter, out, &model.canonicalize()?.display().to_string())?;
    let saved = format!("Adapter: {} is {} after {} steps.", out.display(), job.name, best.step);
    let Some(untrained) = curve.untrained() else { return Ok(saved) };
    if best.loss >= untrained.loss {
        let (best, untrained) = (best.loss, untrained.loss);
        return Err(format!(
            "no job learned anything: at {best:.4} the best is not below the untrained {untrained:.4}"
        )
        .into());
    }
    Ok(format!("Validation loss: {:.4} untrained, {:.4} at its best.\n{saved}", untrained.loss, best.loss))
}

/// Writes a file that isn't there yet, whole or not at all, and the directories that it lies in.
///
/// # Errors
/// Names the file, which exists or which the system refuses to make.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        fs::create_dir_all(parent)?;
        // In a directory for our eyes only; a temporary file would be so itself, and stay so.
        let staging = tempfile::Builder::new().prefix(".report-").tempdir_in(parent)?;
        let whole = staging.path().join("report");
        let mut file = File::create_new(&whole)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        if path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::rename(&whole, path)
    };
    write().map_err(|error| format!("can't write {}: {error}", path.display()))
}
