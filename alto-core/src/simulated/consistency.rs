//! Whether a batch's lengths agree.

use std::collections::BTreeSet;

use crate::backend::BackendError;
use crate::batch::Batch;

/// Checks that the lengths agree and that no slot stands in the batch twice.
pub(super) fn check(batch: &Batch) -> Result<(), BackendError> {
    let equal = |what, found, expected| match found == expected {
        true => Ok(()),
        false => Err(BackendError::InconsistentBatch { what, found, expected }),
    };
    equal("the number of targets", batch.targets.len(), batch.tokens.len())?;
    equal("the sum of the row lengths", batch.row_lengths.iter().sum(), batch.tokens.len())?;
    equal("the sum of the lanes' rows", batch.lanes.iter().map(|lane| lane.rows).sum(), batch.row_lengths.len())?;
    let slots: Vec<_> = batch.lanes.iter().filter_map(|lane| lane.slot).collect();
    equal("the number of distinct slots", slots.iter().collect::<BTreeSet<_>>().len(), slots.len())
}

/// Checks that every lane's divisor is a positive number.
pub(super) fn check_divisors(batch: &Batch) -> Result<(), BackendError> {
    let bad = |divisor: f64| !divisor.is_finite() || divisor <= 0.0;
    match batch.lanes.iter().position(|lane| bad(lane.divisor)) {
        Some(lane) => Err(BackendError::BadDivisor { lane, divisor: batch.lanes[lane].divisor }),
        None => Ok(()),
    }
}
