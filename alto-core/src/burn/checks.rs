//! What a job or a batch must keep to before anything is computed.

use super::lora_layout::Module;
use crate::adapter::LoraPair;
use crate::backend::{BackendError, JobState};
use crate::batch::{Batch, Lane};
use crate::job::{AdapterConfig, Job};
use crate::model::ModelConfig;

/// An adapter that the machine could hold, if it is known what the machine has.
pub(super) fn check_size(job: &str, needed: u64, available: Option<u64>) -> Result<(), BackendError> {
    match available {
        Some(available) if needed > available => Err(BackendError::TooLarge { job: job.to_owned(), needed, available }),
        _ => Ok(()),
    }
}

/// Lengths that fit together, tokens and targets that the vocabulary has, rows that the context holds.
pub(super) fn check_batch(batch: &Batch, config: &ModelConfig) -> Result<(), BackendError> {
    let tokens = batch.tokens.len();
    for (what, found, expected) in [
        ("the number of targets", batch.targets.len(), tokens),
        ("the sum of the row lengths", batch.row_lengths.iter().sum(), tokens),
        ("the lanes' number of rows", batch.lanes.iter().map(|lane| lane.rows).sum(), batch.row_lengths.len()),
    ] {
        if found != expected {
            return Err(BackendError::InconsistentBatch { what, found, expected });
        }
    }
    let (vocabulary, context) = (config.vocabulary, config.context);
    let ids = batch
        .tokens
        .iter()
        .enumerate()
        .chain(batch.targets.iter().enumerate().filter_map(|(i, t)| Some((i, t.as_ref()?))));
    for (position, &token) in ids {
        if token as usize >= vocabulary {
            return Err(BackendError::TokenOutOfRange { token, position, vocabulary });
        }
    }
    for (row, &length) in batch.row_lengths.iter().enumerate() {
        if length > context {
            return Err(BackendError::RowTooLong { row, length, context });
        }
    }
    Ok(())
}

/// Positive divisors for all lanes that train on rows.
pub(super) fn check_divisors(batch: &Batch) -> Result<(), BackendError> {
    for (lane, Lane { slot, rows, divisor, .. }) in batch.lanes.iter().enumerate() {
        if slot.is_some() && *rows > 0 && !(divisor.is_finite() && *divisor > 0.0) {
            return Err(BackendError::BadDivisor { lane, divisor: *divisor });
        }
    }
    Ok(())
}

/// Checks that a state is the job's and fits the modules that it targets.
///
/// # Errors
/// Names the module and what was expected of it.
pub(super) fn check_state<'m>(
    job: &Job,
    state: &JobState,
    targeted: impl Iterator<Item = &'m Module> + Clone,
) -> Result<(), BackendError> {
    let mismatch = |module: &str, found: String, expected: String| {
        Err(BackendError::StateMismatch { job: job.name.clone(), module: module.into(), found, expected })
    };
    let [found, expected] = [&state.adapter.config, &job.adapter].map(AdapterConfig::scale);
    if (found - expected).abs() > 1e-6 * expected.abs() {
        // The same factors would mean another adapter.
        return mismatch("the adapter", format!("the scale {found}"), format!("the scale {expected}"));
    }
    let rank = job.adapter.rank;
    let shapes = |pair: &LoraPair| {
        let [a, b] = [&pair.a, &pair.b].map(|m| (m.rows(), m.columns()));
        format!("factors of {} x {} and {} x {}", a.0, a.1, b.0, b.1)
    };
    for module in targeted.clone() {
        let expected = format!("factors of {rank} x {} and {} x {rank}", module.d_in, module.d_out);
        let pair = state.adapter.modules.get(&module.path);
        let moments = state.moments.get(&module.path);
        let found = [pair, moments.map(|m| &m.first), moments.map(|m| &m.second)];
        if pair.is_none() || (moments.is_none() && !state.moments.is_empty()) {
            return mismatch(&module.path, "nothing".into(), expected);
        }
        if let Some(found) = found.into_iter().flatten().map(shapes).find(|found| *found != expected) {
            return mismatch(&module.path, found, expected);
        }
    }
    let known: Vec<&str> = targeted.map(|module| module.path.as_str()).collect();
    let factors = state.adapter.modules.keys().map(|path| ("factors", path));
    let moments = state.moments.keys().map(|path| ("moments", path));
    match factors.chain(moments).find(|(_, path)| !known.contains(&path.as_str())) {
        Some((found, path)) => mismatch(path, found.into(), "nothing, the job doesn't target it".into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_larger_than_the_machine_is_refused() {
        assert!(check_size("a", 1 << 30, Some(1 << 30)).is_ok());
        assert!(check_size("a", u64::MAX, None).is_ok());
        let error = check_size("a", 2048, Some(1024)).unwrap_err().to_string();
        let expected = "job a: its adapter takes 2048 bytes, but the machine has 1024; give it a lower rank or fewer \
                        target modules";
        assert_eq!(error, expected);
    }
}
