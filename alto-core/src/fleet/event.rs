//! What happens in a fleet, told as it happens.

use std::fmt;

use alto_sched::{Placement, Task};
use serde::{Deserialize, Serialize};

use crate::version;

/// The version of an [`Event`] in a file.
pub const EVENT_VERSION: u32 = 1;

/// One thing that happened. What was told to the fleet is all here, so that the same decisions follow from a list of
/// them: [`Replayed`](super::Replayed).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// [`EVENT_VERSION`].
    #[serde(deserialize_with = "version::known::<EVENT_VERSION, _>")]
    pub version: u32,
    /// Which turn of the fleet's loop, of those in which something happened, from 1. What is told in one turn was decided
    /// upon together.
    pub turn: u64,
    /// Seconds on the site's clock, down to the last full microsecond.
    pub seconds: f64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened. Tasks are numbered in the order in which they came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum EventKind {
    /// A task came.
    Arrived {
        /// Its number.
        task: usize,
        /// What it needs.
        needs: Task,
        /// Seconds spent on measuring how long it takes.
        profile_seconds: f64,
    },
    /// A task that can't run here won't.
    Refused {
        /// Its number.
        task: usize,
        /// Its name.
        name: String,
        /// Why not.
        error: String,
    },
    /// A running task is expected to end at another time.
    Expected {
        /// Its number.
        task: usize,
        /// When, in seconds on the site's clock.
        end: f64,
    },
    /// The tasks that wait were planned anew.
    Replanned(Replan),
    /// A task started.
    Started {
        /// Its number.
        task: usize,
        /// Its devices, and when it is planned to end.
        placement: Placement,
        /// How many tasks that came later started before it.
        overtaken: u32,
    },
    /// A task ended and its devices are free.
    Ended {
        /// Its number.
        task: usize,
    },
    /// A task failed and its devices are free.
    Failed {
        /// Its number.
        task: usize,
        /// Why.
        error: String,
    },
}

/// Why there is another plan, and what it changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replan {
    /// All that came together.
    pub causes: Vec<Cause>,
    /// The tasks that have another start, other devices or another option than before, in the order of the queue.
    pub changes: Vec<Change>,
    /// Seconds from now until the last of the planned tasks would end, were the former plan kept: each task by the same
    /// option on the same devices, in the same order, as early as what runs and its release let it. What that plan
    /// doesn't have, as who has just come, follows behind all others, each where it ends first.
    pub before: f64,
    /// The same by this plan.
    pub after: f64,
    /// Seconds that the latter is under in no plan.
    pub lower_bound: f64,
}

/// Why tasks are planned anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Cause {
    /// A task came.
    Arrived {
        /// Its number.
        task: usize,
    },
    /// A task ended, or failed.
    Ended {
        /// Its number.
        task: usize,
    },
    /// A running task is expected to end at another time, by more than the fleet's threshold; or it runs on while a
    /// task is to start on its devices.
    Moved {
        /// Its number.
        task: usize,
        /// When it was expected to end, in seconds on the site's clock.
        from: f64,
        /// When it is now.
        to: f64,
    },
    /// A waiting task was overtaken as often as it may be: what came later starts no more before it does.
    Held {
        /// Its number.
        task: usize,
    },
    /// Such a task started, and those behind it may.
    Passed {
        /// Its number.
        task: usize,
    },
    /// So many have started that the plan holds fewer than half as many tasks as it [may](super::Fleet::planned), while
    /// others wait that are in no plan.
    Few {
        /// How many it holds.
        left: usize,
    },
}

/// A task that a plan moves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Its number.
    pub task: usize,
    /// Where it was; `None` if the former plan didn't have it, as where it has just come.
    pub from: Option<Placement>,
    /// Where it is now.
    pub to: Placement,
}

impl Replan {
    /// Seconds that planning again won: by so much the last of the planned tasks ends earlier than by the former plan,
    /// of which everything is known that this one knows. Less than 0 where a scheduler has other aims, or a bound on
    /// [`overtaking`](super::Fleet::overtaking) costs so much.
    pub fn won(&self) -> f64 {
        self.before - self.after
    }
}

impl Event {
    /// Tells the event to whoever listens through `tracing`.
    pub(super) fn trace(&self) {
        match self.kind {
            EventKind::Expected { .. } => tracing::debug!(seconds = self.seconds, "{}", self.kind),
            EventKind::Refused { .. } | EventKind::Failed { .. } => {
                tracing::warn!(seconds = self.seconds, "{}", self.kind)
            }
            _ => tracing::info!(seconds = self.seconds, "{}", self.kind),
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrived { task, needs, .. } => write!(f, "task {task} ({}) comes", needs.name),
            Self::Refused { task, name, error } => write!(f, "task {task} ({name}) is refused: {error}"),
            Self::Expected { task, end } => write!(f, "task {task} is expected to end at {end:.1} s"),
            Self::Replanned(replan) => replan.fmt(f),
            Self::Started { task, placement, .. } => {
                write!(f, "task {task} starts on {} devices, to end at {:.1} s", placement.devices.len(), placement.end)
            }
            Self::Ended { task } => write!(f, "task {task} ends"),
            Self::Failed { task, error } => write!(f, "task {task} fails: {error}"),
        }
    }
}

impl fmt::Display for Replan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { causes, changes, after, .. } = self;
        write!(f, "planned anew, since ")?;
        for (index, cause) in causes.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{cause}")?;
        }
        let moved = if changes.len() == 1 { "task moves" } else { "tasks move" };
        write!(f, ": {} {moved}, the last ends in {after:.1} s", changes.len())?;
        match self.won() {
            won if won >= 0.05 => write!(f, ", {won:.1} s sooner than by the former plan"),
            won if won <= -0.05 => write!(f, ", {:.1} s later than by the former plan", -won),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrived { task } => write!(f, "task {task} came"),
            Self::Ended { task } => write!(f, "task {task} ended"),
            Self::Moved { task, from, to } => write!(f, "task {task} ends at {to:.1} s instead of {from:.1} s"),
            Self::Held { task } => write!(f, "task {task} may be overtaken no more"),
            Self::Passed { task } => write!(f, "task {task} holds up nobody any more"),
            Self::Few { left } => write!(f, "only {left} tasks are left in the plan"),
        }
    }
}
