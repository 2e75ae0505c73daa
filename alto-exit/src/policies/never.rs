//! No early exit.

use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::policy::{ExitPolicy, Verdict};

/// Keeps every job to the end of its budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Never;

impl ExitPolicy for Never {
    fn judge(&self, _job: usize, _cohort: &[Curve]) -> Verdict {
        Verdict::Keep
    }

    fn compares(&self) -> bool {
        false
    }
}
