//! Writes an adapter for PEFT, all of it or nothing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use safetensors::{Dtype, View};

use super::error::PeftError;
use super::settings::Settings;
use super::{A, B, PREFIX, SETTINGS, TENSORS, name};
use crate::adapter::Adapter;
use crate::matrix::Matrix;

/// Writes the adapter as a directory that PEFT and vLLM load; `base_model` is the name or path they find its model by.
///
/// The directory appears whole or not at all. Directories above it are made where they are missing.
///
/// # Errors
/// When `dir` exists, the adapter changes nothing, has an entry that isn't finite, or contradicts its own settings, and
/// when it can't be written.
pub fn export(adapter: &Adapter, dir: &Path, base_model: &str) -> Result<(), PeftError> {
    if dir.symlink_metadata().is_ok() {
        return Err(PeftError::Exists { dir: dir.to_owned() });
    }
    if adapter.is_identity() {
        return Err(PeftError::Identity { dir: dir.to_owned() });
    }
    check(adapter)?;
    let tensors = serialize(adapter, dir)?;
    let settings = serde_json::to_vec_pretty(&Settings::of(adapter, base_model))
        .map_err(|source| PeftError::Json { path: dir.join(SETTINGS), source })?;

    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let io = |source| PeftError::Io { path: dir.to_owned(), source };
    fs::create_dir_all(parent).map_err(io)?;
    // The inner directory gets the usual permissions, the outer one is for our eyes only.
    let outer = tempfile::Builder::new().prefix(".adapter-").tempdir_in(parent).map_err(io)?;
    let inner = outer.path().join("adapter");
    fs::create_dir(&inner).map_err(io)?;
    write(&inner.join(TENSORS), &tensors)?;
    write(&inner.join(SETTINGS), &settings)?;
    fs::rename(&inner, dir).map_err(io)
}

fn check(adapter: &Adapter) -> Result<(), PeftError> {
    let rank = adapter.config.rank;
    for (path, pair) in &adapter.modules {
        for (factor, matrix, inner) in [("lora_A", &pair.a, pair.a.rows()), ("lora_B", &pair.b, pair.b.columns())] {
            let tensor = || format!("{path}.{factor}");
            if inner != rank {
                let (rows, columns) = (matrix.rows(), matrix.columns());
                return Err(PeftError::Rank { tensor: tensor(), rows, columns, rank });
            }
            if let Some(index) = matrix.data().iter().position(|x| !x.is_finite()) {
                return Err(PeftError::NotFinite { tensor: tensor(), index, value: matrix.data()[index] });
            }
        }
    }
    let targets = &adapter.config.targets;
    let odd = |module: &str, problem| {
        Err(PeftError::Targets { targets: targets.iter().cloned().collect(), module: module.to_owned(), problem })
    };
    if let Some(module) = adapter.modules.keys().find(|path| !targets.contains(name(path))) {
        return odd(module, "is not one of them");
    }
    match targets.iter().find(|target| !adapter.modules.keys().any(|path| name(path) == *target)) {
        Some(target) => odd(target, "has no factors"),
        None => Ok(()),
    }
}

fn serialize(adapter: &Adapter, dir: &Path) -> Result<Vec<u8>, PeftError> {
    let factors = adapter.modules.iter().flat_map(|(path, pair)| {
        [(format!("{PREFIX}{path}{A}"), Factor::new(&pair.a)), (format!("{PREFIX}{path}{B}"), Factor::new(&pair.b))]
    });
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    safetensors::serialize(factors, Some(metadata))
        .map_err(|source| PeftError::Serialize { path: dir.join(TENSORS), source })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), PeftError> {
    let write = || {
        let mut file = File::create_new(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|source| PeftError::Io { path: path.to_owned(), source })
}

/// A matrix as safetensors writes it.
struct Factor<'a> {
    shape: [usize; 2],
    matrix: &'a Matrix,
}

impl<'a> Factor<'a> {
    fn new(matrix: &'a Matrix) -> Self {
        Self { shape: [matrix.rows(), matrix.columns()], matrix }
    }
}

impl View for Factor<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.matrix.data().iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    fn data_len(&self) -> usize {
        size_of_val(self.matrix.data())
    }
}
