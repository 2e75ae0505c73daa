//! How a backend fails a check.

use crate::backend::{BackendError, Slot};

/// The first check that a backend fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConformanceError {
    /// Too little to check with.
    #[error("the suite was given {found} {what}, expected at least {expected}")]
    Material {
        /// What there is too little of.
        what: &'static str,
        /// How much there is.
        found: u64,
        /// How much would do.
        expected: u64,
    },
    /// A call that should have gone well.
    #[error("{check}: {call} failed")]
    Failed {
        /// The check.
        check: &'static str,
        /// What was called.
        call: &'static str,
        /// What the backend said.
        #[source]
        source: Box<BackendError>,
    },
    /// A call that should have been refused.
    #[error("{check}: {call} was accepted, expected the error {expected}")]
    Accepted {
        /// The check.
        check: &'static str,
        /// What was called.
        call: &'static str,
        /// The error that it should give.
        expected: &'static str,
    },
    /// A call that was refused with an error that doesn't say why.
    #[error("{check}: {call} was refused with another error than {expected}")]
    WrongRefusal {
        /// The check.
        check: &'static str,
        /// What was called.
        call: &'static str,
        /// The error that it should give.
        expected: &'static str,
        /// The one that it gave.
        #[source]
        source: Box<BackendError>,
    },
    /// A slot that was handed out twice.
    #[error("{check}: slot {} was handed out twice", slot.0)]
    RepeatedSlot {
        /// The check.
        check: &'static str,
        /// The slot.
        slot: Slot,
    },
    /// A number of things, or of a step, that isn't right.
    #[error("{check}: job {job}: {what}: {found}, expected {expected}")]
    Count {
        /// The check.
        check: &'static str,
        /// Whose.
        job: String,
        /// What is counted.
        what: &'static str,
        /// The number found.
        found: u64,
        /// The number expected.
        expected: u64,
    },
    /// A measurement that differs.
    #[error("{check}: job {job}: {what} of step {step} is {found}, expected {expected} within {tolerance} of it")]
    Differs {
        /// The check.
        check: &'static str,
        /// Whose.
        job: String,
        /// What was measured.
        what: &'static str,
        /// At which step.
        step: u64,
        /// The number found.
        found: f64,
        /// The number expected.
        expected: f64,
        /// The largest relative difference that counts as the same.
        tolerance: f64,
    },
    /// A state that differs.
    #[error(
        "{check}: job {job}: {what}: {tensor} differs by up to {difference} of its largest entry, \
         expected at most {tolerance}"
    )]
    StateDiffers {
        /// The check.
        check: &'static str,
        /// Whose.
        job: String,
        /// Which states were compared.
        what: &'static str,
        /// The first tensor that differs, by module path.
        tensor: String,
        /// The largest difference, relative to the expected tensor's largest entry; infinite for another shape.
        difference: f64,
        /// What counts as the same.
        tolerance: f64,
    },
}
