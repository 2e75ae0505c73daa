//! A model's weights on disk: one safetensors file, or several with an index.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::ModelError;
use crate::tensor_file::TensorFile;

/// A model's weights on disk, read one tensor at a time.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// The file that says what there is: the only one, or the index.
    path: PathBuf,
    files: Vec<TensorFile>,
    /// Index of the file that has the tensor; the tensor is there.
    place: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Checkpoint {
    /// Opens `model.safetensors`, or the files that `model.safetensors.index.json` names, and checks their headers and
    /// lengths.
    ///
    /// # Errors
    /// When a file is missing, cut off or not what it should be, or the index contradicts the files.
    pub fn open(dir: &Path) -> Result<Self, ModelError> {
        let path = dir.join("model.safetensors");
        if path.exists() {
            let file = TensorFile::open(&path)?;
            let place = file.names().map(|name| (name.to_owned(), 0)).collect();
            return Ok(Self { path, files: vec![file], place });
        }
        let path = dir.join("model.safetensors.index.json");
        if path.exists() { Self::open_index(path, dir) } else { Err(ModelError::NoWeights { dir: dir.to_owned() }) }
    }

    fn open_index(path: PathBuf, dir: &Path) -> Result<Self, ModelError> {
        let bytes = fs::read(&path).map_err(|source| ModelError::Io { path: path.clone(), source })?;
        let index: Index =
            serde_json::from_slice(&bytes).map_err(|source| ModelError::Json { path: path.clone(), source })?;
        let (mut files, mut opened, mut place) = (vec![], BTreeMap::new(), BTreeMap::new());
        for (tensor, file) in index.weight_map {
            if Path::new(&file).file_name() != Some(file.as_ref()) {
                return Err(ModelError::ShardName { index: path, tensor, file });
            }
            let shard = match opened.get(&file) {
                Some(&shard) => shard,
                None => {
                    let shard = dir.join(&file);
                    if !shard.exists() {
                        return Err(ModelError::MissingShard { index: path, tensor, file: shard });
                    }
                    files.push(TensorFile::open(&shard)?);
                    opened.insert(file, files.len() - 1);
                    files.len() - 1
                }
            };
            if files[shard].shape(&tensor).is_none() {
                let file = files[shard].path().to_owned();
                return Err(ModelError::NotInShard { index: path, tensor, file });
            }
            place.insert(tensor, shard);
        }
        Ok(Self { path, files, place })
    }

    /// The names of all tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.place.keys().map(String::as_str)
    }

    /// The tensor's shape, if there is such a tensor.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.files[*self.place.get(name)?].shape(name)
    }

    /// The tensor's entries in row-major order, converted to f32 from f32, f16 or bf16.
    ///
    /// # Errors
    /// When there is no such tensor, or it has another shape, another dtype or an entry that isn't finite.
    pub fn tensor(&self, name: &str, expected: &[usize]) -> Result<Vec<f32>, ModelError> {
        match self.place.get(name) {
            Some(&file) => Ok(self.files[file].tensor(name, expected)?),
            None => Err(self.missing(name, "")),
        }
    }

    pub(super) fn missing(&self, name: &str, hint: &'static str) -> ModelError {
        ModelError::MissingTensor { path: self.path.clone(), tensor: name.to_owned(), hint }
    }
}
