//! What is to start where and when.

use serde::{Deserialize, Serialize};

use super::error::{PlanFileError, TaskFault};

/// The version that plans in files have.
pub const PLAN_VERSION: u32 = 1;

/// Where and when each waiting task of a [`Snapshot`](super::snapshot::Snapshot) runs.
///
/// [`Plan::check`] tells whether it can be carried out. In files it carries [`PLAN_VERSION`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(into = "Stored", try_from = "Stored")]
pub struct Plan {
    /// `placements[i]` is for `waiting[i]`; `None` where that task was refused.
    pub placements: Vec<Option<Placement>>,
    /// The tasks that can't be placed, in order; empty unless the snapshot says to skip them.
    pub refused: Vec<Refused>,
    /// Seconds from now until the last waiting task ends. Tasks that run already don't count: nobody can end them
    /// earlier.
    pub makespan: f64,
    /// Seconds that no plan's makespan is under.
    pub lower_bound: f64,
    /// Whether no plan has a smaller makespan: `makespan == lower_bound`.
    pub proven: bool,
    /// Sum over the placed tasks of their weight times the seconds from now to their end.
    pub weighted_completion: f64,
}

impl Plan {
    /// How far the makespan may be from the least, as a share of the lower bound; 0 for an empty plan.
    pub fn gap(&self) -> f64 {
        if self.makespan > self.lower_bound { self.makespan / self.lower_bound - 1.0 } else { 0.0 }
    }
}

/// Where and when a task runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Index into the task's options.
    pub choice: usize,
    /// The devices that it holds, all on one node, in increasing order.
    pub devices: Vec<u32>,
    /// When it starts, in seconds on the snapshot's clock.
    pub start: f64,
    /// When it ends.
    pub end: f64,
}

/// A task that can't be placed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// Its index in `waiting`.
    pub task: usize,
    /// Why.
    pub reason: TaskFault,
}

/// A plan as a file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    placements: Vec<Option<Placement>>,
    #[serde(default)]
    refused: Vec<Refused>,
    makespan: f64,
    lower_bound: f64,
    proven: bool,
    weighted_completion: f64,
}

impl From<Plan> for Stored {
    fn from(plan: Plan) -> Stored {
        let Plan { placements, refused, makespan, lower_bound, proven, weighted_completion } = plan;
        Stored { version: PLAN_VERSION, placements, refused, makespan, lower_bound, proven, weighted_completion }
    }
}

impl TryFrom<Stored> for Plan {
    type Error = PlanFileError;

    fn try_from(stored: Stored) -> Result<Plan, PlanFileError> {
        let Stored { version, placements, refused, makespan, lower_bound, proven, weighted_completion } = stored;
        if version != PLAN_VERSION {
            return Err(PlanFileError::UnknownVersion { found: version });
        }
        Ok(Plan { placements, refused, makespan, lower_bound, proven, weighted_completion })
    }
}
