//! Profiles that were measured before.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::profile::Profile;
use crate::version;

/// The version of [`Profiles`] in a file.
pub const PROFILES_VERSION: u32 = 1;

/// What a profile holds for: any difference asks for a measurement of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileKey {
    /// The base model, by a name or a hash.
    pub model: String,
    /// What the batches are like: lanes, rows, row lengths, rank and targets, as far as they differ.
    pub shape: String,
    /// The device, and how many of them.
    pub device: String,
    /// The version of what computes.
    pub version: String,
}

/// Profiles by what they hold for. In files they carry [`PROFILES_VERSION`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profiles {
    profiles: BTreeMap<ProfileKey, Profile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    #[serde(deserialize_with = "version::known::<PROFILES_VERSION, _>")]
    version: u32,
    profiles: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    key: ProfileKey,
    profile: Profile,
}

impl Profiles {
    /// Those in this file; none if there is no such file yet.
    ///
    /// # Errors
    /// The file can't be read, or holds something else.
    pub fn read(path: &Path) -> Result<Self, ProfilesError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(ProfilesError::Read { path: path.into(), source }),
        };
        let stored: Stored =
            serde_json::from_str(&text).map_err(|source| ProfilesError::Parse { path: path.into(), source })?;
        Ok(Self { profiles: stored.profiles.into_iter().map(|entry| (entry.key, entry.profile)).collect() })
    }

    /// Writes them to this file, in whole or not at all.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, path: &Path) -> Result<(), ProfilesError> {
        let entry = |(key, profile): (&ProfileKey, &Profile)| Entry { key: key.clone(), profile: profile.clone() };
        let stored = Stored { version: PROFILES_VERSION, profiles: self.profiles.iter().map(entry).collect() };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let write = || {
            let mut file = tempfile::Builder::new().prefix(".profiles-").tempfile_in(folder)?;
            file.write_all(serde_json::to_string_pretty(&stored)?.as_bytes())?;
            file.persist(path).map(drop).map_err(|error| error.error)
        };
        write().map_err(|source| ProfilesError::Write { path: path.into(), source })
    }

    /// The profile for this, measured if it isn't known, and the seconds that this took: 0 if it was.
    ///
    /// # Errors
    /// What the measurement gives.
    pub fn get_or_measure<E>(
        &mut self,
        key: ProfileKey,
        measure: impl FnOnce() -> Result<Profile, E>,
    ) -> Result<(&Profile, f64), E> {
        use std::collections::btree_map::Entry;
        match self.profiles.entry(key) {
            Entry::Occupied(known) => Ok((known.into_mut(), 0.0)),
            Entry::Vacant(place) => {
                let profile = place.insert(measure()?);
                let seconds = profile.seconds;
                Ok((profile, seconds))
            }
        }
    }
}

/// Why profiles can't be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfilesError {
    /// A file that can't be read.
    #[error("{}: can't be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A file of something else.
    #[error("{}: not profiles of version {PROFILES_VERSION}; remove it to measure anew", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where it goes wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A file that can't be written.
    #[error("{}: can't be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}
