//! The tiny adapter that stands for a trained one.
//!
//! A pair `[rank, 1]`, `[1, rank]` for each target module. Each step adds one to every entry of `b`, so that two states
//! are equal exactly when they have been trained equally.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::adapter::{Adapter, LoraPair};
use crate::backend::{BackendError, JobState};
use crate::job::Job;
use crate::matrix::Matrix;

/// The start that the job's seed gives.
pub(super) fn start(job: &Job) -> JobState {
    let mut random = ChaCha8Rng::seed_from_u64(job.seed);
    let rank = job.adapter.rank;
    let pair = |target: &String| {
        let a = (0..rank).map(|_| random.random_range(-1.0..1.0)).collect();
        (path(target), LoraPair { a: Matrix::new(rank, 1, a), b: Matrix::zeros(1, rank) })
    };
    let modules = job.adapter.targets.iter().map(pair).collect();
    JobState::starting_from(Adapter { config: job.adapter.clone(), modules })
}

/// One optimizer step.
pub(super) fn train(state: &mut JobState) {
    state.step += 1;
    for pair in state.adapter.modules.values_mut() {
        pair.b.data_mut().iter_mut().for_each(|b| *b += 1.0);
    }
}

/// Checks that a state is one of this job.
pub(super) fn check(job: &Job, state: &JobState) -> Result<(), BackendError> {
    let mismatch = |module: &str, found: String, expected: String| {
        Err(BackendError::StateMismatch { job: job.name.clone(), module: module.to_owned(), found, expected })
    };
    let rank = job.adapter.rank;
    let expected = format!("factors [{rank}, 1] and [1, {rank}]");
    for target in &job.adapter.targets {
        let module = path(target);
        let Some(LoraPair { a, b }) = state.adapter.modules.get(&module) else {
            return mismatch(&module, "nothing".to_owned(), expected);
        };
        if [a.rows(), a.columns(), b.rows(), b.columns()] != [rank, 1, 1, rank] {
            let found = format!("factors [{}, {}] and [{}, {}]", a.rows(), a.columns(), b.rows(), b.columns());
            return mismatch(&module, found, expected);
        }
    }
    let wanted = |module: &String| job.adapter.targets.iter().any(|target| path(target) == *module);
    match state.adapter.modules.keys().find(|module| !wanted(module)) {
        Some(module) => mismatch(module, "factors".to_owned(), "nothing".to_owned()),
        None => Ok(()),
    }
}

fn path(target: &str) -> String {
    format!("simulated.{target}")
}
