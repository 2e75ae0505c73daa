//! The seam between those who need a plan and those who make one.

use std::fmt::Debug;

use super::error::PlanError;
use super::plan::Plan;
use super::snapshot::Snapshot;

/// Decides where and when the waiting tasks of a snapshot run.
///
/// A scheduler holds settings only: what it decides follows from these and the snapshot. Calling it again on a later
/// snapshot, with the last plan as [`previous`](Snapshot::previous), is replanning.
pub trait Scheduler: Debug + Send + Sync {
    /// A plan that passes [`Plan::check`] for this snapshot.
    ///
    /// # Errors
    /// The snapshot makes no sense, or has a task that can't be placed and doesn't say to skip it.
    fn plan(&self, snapshot: &Snapshot) -> Result<Plan, PlanError>;
}

const _: Option<&dyn Scheduler> = None;
