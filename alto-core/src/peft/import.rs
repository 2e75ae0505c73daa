//! Reads an adapter that PEFT or we wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::error::PeftError;
use super::settings::ReadSettings;
use super::{A, B, PREFIX, SETTINGS, TENSORS, name};
use crate::adapter::{Adapter, LoraPair};
use crate::job::AdapterConfig;
use crate::matrix::Matrix;
use crate::tensor_file::{TensorFile, TensorFileError};

/// Reads a PEFT adapter's directory, as a starting point or to look at.
///
/// Whether its modules and their widths are those of a model is for the backend to say that it is attached to.
///
/// # Errors
/// When a file is missing or damaged; when a setting asks for what isn't supported (rank or alpha by module, dropout,
/// biases, DoRA, part of the layers and the like); when settings and tensors contradict each other.
pub fn import(dir: &Path) -> Result<Adapter, PeftError> {
    let path = dir.join(SETTINGS);
    let bytes = fs::read(&path).map_err(|source| PeftError::Io { path: path.clone(), source })?;
    let map: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|source| PeftError::Json { path: path.clone(), source })?;
    let settings = ReadSettings::parse(&path, &map)?;
    let modules = read_modules(&dir.join(TENSORS), settings.rank)?;
    let targets = match settings.targets {
        Some(written) => match_targets(written, &modules)?,
        None => modules.keys().map(|path| name(path).to_owned()).collect(),
    };
    check_blocks(&modules, &targets)?;
    let ReadSettings { rank, alpha, rank_stabilized, .. } = settings;
    Ok(Adapter { config: AdapterConfig { rank, alpha, rank_stabilized, targets }, modules })
}

fn read_modules(path: &Path, rank: usize) -> Result<BTreeMap<String, LoraPair>, PeftError> {
    let file = TensorFile::open(path)?;
    let mut modules = BTreeSet::new();
    for tensor in file.names() {
        let module = tensor.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(A).or(rest.strip_suffix(B)));
        let Some(module) = module else {
            return Err(PeftError::ForeignTensor { path: path.to_owned(), tensor: tensor.to_owned() });
        };
        modules.insert(module.to_owned());
    }
    let pair = |module: String| {
        let a = factor(&file, format!("{PREFIX}{module}{A}"), Some(rank), None)?;
        let b = factor(&file, format!("{PREFIX}{module}{B}"), None, Some(rank))?;
        Ok((module, LoraPair { a, b }))
    };
    modules.into_iter().map(pair).collect()
}

/// A matrix with this many rows or columns, whichever is given.
fn factor(file: &TensorFile, tensor: String, rows: Option<usize>, columns: Option<usize>) -> Result<Matrix, PeftError> {
    let path = || file.path().to_owned();
    match file.shape(&tensor) {
        None => Err(TensorFileError::MissingTensor { path: path(), tensor }.into()),
        Some(&[r, c]) if r > 0 && c > 0 && rows.unwrap_or(r) == r && columns.unwrap_or(c) == c => {
            Ok(Matrix::new(r, c, file.tensor(&tensor, &[r, c])?))
        }
        Some(found) => {
            let side = |given: Option<usize>, free: &str| given.map_or(free.to_owned(), |n| n.to_string());
            let expected = format!("[{}, {}], as r says", side(rows, "d_out"), side(columns, "d_in"));
            Err(PeftError::Shape { path: path(), found: found.to_vec(), tensor, expected })
        }
    }
}

/// The names of the modules that the settings mean, which are all that the file has.
///
/// PEFT takes an entry for the whole path of a module or its last parts.
fn match_targets(written: Vec<String>, modules: &BTreeMap<String, LoraPair>) -> Result<BTreeSet<String>, PeftError> {
    let meant = |path: &str, target: &str| {
        path.strip_suffix(target).is_some_and(|front| front.is_empty() || front.ends_with('.'))
    };
    let odd = |module: &str, problem| {
        Err(PeftError::Targets { targets: written.clone(), module: module.to_owned(), problem })
    };
    if let Some(module) = modules.keys().find(|path| !written.iter().any(|target| meant(path, target))) {
        return odd(module, "is not one of them");
    }
    match written.iter().find(|target| !modules.keys().any(|path| meant(path, target))) {
        Some(target) => odd(target, "has no factors"),
        None => Ok(modules.keys().map(|path| name(path).to_owned()).collect()),
    }
}

/// Checks that every block that has an adapter at all has one on each target.
fn check_blocks(modules: &BTreeMap<String, LoraPair>, targets: &BTreeSet<String>) -> Result<(), PeftError> {
    let mut blocks: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in modules.keys() {
        let block = path.split('.').find(|part| part.parse::<usize>().is_ok()).unwrap_or("");
        blocks.entry(block).or_default().insert(name(path));
    }
    for (block, names) in blocks {
        if let Some(missing) = targets.iter().find(|target| !names.contains(target.as_str())) {
            return Err(PeftError::Targets {
                targets: targets.iter().cloned().collect(),
                module: format!("{missing} of block {block}"),
                problem: "has no factors, an adapter for part of the blocks is not supported",
            });
        }
    }
    Ok(())
}
