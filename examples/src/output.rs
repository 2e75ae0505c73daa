//! Paths of what a run will write: looked at before it trains, written whole or not at all after it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Checks that nothing is there yet and that it could be made, its directories included.
///
/// # Errors
/// Names the path, or the directory above it that is in the way, and what would be right.
pub fn check_new(path: &Path) -> Result<(), String> {
    if path.symlink_metadata().is_ok() {
        return Err(format!("{} exists, and nothing is overwritten: name a path that doesn't", path.display()));
    }
    let Some(above) = std::path::absolute(path).ok().and_then(|path| {
        let existing = path.ancestors().skip(1).find(|above| above.symlink_metadata().is_ok());
        existing.map(Path::to_owned)
    }) else {
        return Err(format!("{:?} is no path that can be made", path.display().to_string()));
    };
    if !above.is_dir() {
        return Err(format!("{} can't be made: {} is not a directory", path.display(), above.display()));
    }
    // Whether one may write is only found by writing; it is gone again at once.
    match tempfile::tempdir_in(&above) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{} can't be made: {} can't be written to: {error}", path.display(), above.display())),
    }
}

/// The path itself, or with `-2`, `-3`, ... behind it: the first that doesn't exist.
pub fn fresh(path: &str) -> PathBuf {
    let mut names = std::iter::once(path.to_owned()).chain((2..).map(|n: u64| format!("{path}-{n}")));
    let free = names.find(|name| Path::new(name).symlink_metadata().is_err());
    free.map_or_else(|| path.into(), PathBuf::from)
}

/// Writes a file that isn't there yet, whole or not at all, and the directories that it lies in.
///
/// # Errors
/// When there is something of that name, or the system refuses.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent)?;
    let mut file = tempfile::NamedTempFile::new_in(parent)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    Ok(())
}
