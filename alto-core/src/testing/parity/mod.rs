//! Does a backend compute what transformers and PEFT computed? Recorded training runs, replayed and compared.
//!
//! A directory holds a model in Hugging Face's layout and, in a folder each, cases: a starting adapter (`init`), the
//! micro-batches, losses and gradient norms of every optimizer step (`trace.json`), the first step's gradients
//! (`grad0.safetensors`), the logits of the first evaluation row through the base, the starting and the final adapter
//! (`logits.safetensors`), and the final adapter (`final`). A case is trained as its trace says and compared at every step.
//!
//! A run at an absurd learning rate is chaotic: rounding alone decides where it goes. The traces hold each run in f32 and in
//! f64; once those two part by more than what is tolerated, a case is compared no further, nor in its final state, and at that
//! step an error counts only beyond their own distance. They can't part before the first update, and chaos grows from step to
//! step: numbers that are suddenly over a hundred times as far apart as is tolerated are compared like any others.
//!
//! Of a model that is frozen in bf16 or f16, a trace holds a run in that dtype and one that computes with the same rounded
//! weights in f32. A backend in that dtype is compared with the latter, and may be three times as far from it as the
//! reference's own 16 bits are at most, for each kind of number.

mod compare;
mod error;
mod trace;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub use compare::{Errors, TOLERANCE, Tolerance};
pub use error::{ParityError, RowProblem};

use crate::adapter::LoraPair;
use crate::backend::{Backend, BackendError, Slot};
use crate::dtype::Dtype;
use crate::matrix::Matrix;

/// A backend whose insides can be compared.
pub trait Inspect: Backend {
    /// Of the frozen model's weights and activations.
    fn dtype(&self) -> Dtype;

    /// The gradient that a job has accumulated in an unfinished optimizer step, by module path.
    ///
    /// # Errors
    /// When the slot is unknown or the device failed.
    fn gradient(&self, slot: Slot) -> Result<BTreeMap<String, LoraPair>, BackendError>;

    /// Scores of every next token of one row in f32, `[tokens, vocabulary]`, through a job's adapter or the base model alone.
    ///
    /// # Errors
    /// When the slot is unknown, the row doesn't fit the model, or the device failed.
    fn logits(&mut self, tokens: &[u32], slot: Option<Slot>) -> Result<Matrix, BackendError>;
}

/// What became of one case.
#[derive(Debug)]
pub enum CaseOutcome {
    /// It was run and compared.
    Compared(Errors),
    /// Its trace is of a kind that can't be replayed.
    UnsupportedKind {
        /// The trace's `kind`.
        kind: String,
    },
    /// Its model is frozen in another dtype than the backend's.
    OtherDtype {
        /// The trace's.
        case: Dtype,
        /// The backend's.
        backend: Dtype,
    },
    /// It couldn't be run, though its kind is supported.
    Failed(ParityError),
}

impl CaseOutcome {
    /// Whether the case was compared and every error is within the case's tolerance.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Compared(errors) if errors.within(&errors.tolerance))
    }
}

/// The folders of recorded cases in a directory, those with a trace or a starting adapter, in order of their names.
///
/// # Errors
/// When the directory can't be read.
pub fn cases(dir: &Path) -> Result<Vec<PathBuf>, ParityError> {
    let io = |source| ParityError::Io { path: dir.to_owned(), source };
    let mut cases = Vec::new();
    for entry in fs::read_dir(dir).map_err(io)? {
        let path = entry.map_err(io)?.path();
        // A case that lost its trace is a case, which fails.
        if path.join("trace.json").exists() || path.join("init").exists() {
            cases.push(path);
        }
    }
    cases.sort();
    Ok(cases)
}

/// The dtype that a case's model is frozen in: f32 where its trace doesn't say, or can't be read.
pub fn case_dtype(case: &Path) -> Dtype {
    match trace::Trace::read(case) {
        Ok(trace::Replay::Sft(trace)) => trace.dtype,
        Ok(trace::Replay::Unsupported { .. }) | Err(_) => Dtype::F32,
    }
}

/// Trains one case as its trace says and compares everything with what was recorded.
pub fn run_case(backend: &mut dyn Inspect, case: &Path) -> CaseOutcome {
    match trace::Trace::read(case) {
        Ok(trace::Replay::Sft(trace)) if trace.dtype != backend.dtype() => {
            CaseOutcome::OtherDtype { case: trace.dtype, backend: backend.dtype() }
        }
        Ok(trace::Replay::Sft(trace)) => match compare::replay(backend, case, &trace) {
            Ok(errors) => CaseOutcome::Compared(errors),
            Err(error) => CaseOutcome::Failed(error),
        },
        Ok(trace::Replay::Unsupported { kind }) => CaseOutcome::UnsupportedKind { kind },
        Err(error) => CaseOutcome::Failed(error),
    }
}
