//! The seam between who decides what starts where and when, and where tasks run.

use std::fmt::Debug;

use alto_sched::{Placement, Task};

/// What a fleet is told.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Signal {
    /// A task was submitted. Tasks are numbered from 0 in the order of these and [`Refused`](Self::Refused).
    Arrived {
        /// What it needs. Its release is on the site's clock.
        task: Task,
        /// Seconds spent on measuring how long it takes; 0 if that was known.
        profile_seconds: f64,
    },
    /// A task was submitted that the site can't run, as when its backend can't be profiled.
    Refused {
        /// Its name.
        name: String,
        /// Why not.
        error: String,
    },
    /// A running task is now expected to end at another time.
    Expected {
        /// Its number.
        task: usize,
        /// When, in seconds on the site's clock.
        end: f64,
    },
    /// A running task ended and its devices are free.
    Ended {
        /// Its number.
        task: usize,
        /// Why it failed, if it did.
        error: Option<String>,
    },
}

/// Where tasks run.
///
/// A site knows the work of each task by its number; a fleet knows only what it needs and how long that takes. A site
/// is for one run: another would number its tasks from 0 again, and start the work of those that the first left behind.
pub trait Site: Debug {
    /// Seconds since the site's clock began.
    fn now(&self) -> f64;

    /// Starts a task on these devices, which no running task has; they are its own until it is told to have ended.
    ///
    /// What fails here is told by [`next`](Self::next), as any failure of the task.
    fn start(&mut self, task: usize, placement: &Placement);

    /// Waits for signals and gives those that have come, or none once it is `until`, when the next task is planned to
    /// start; `None` is that nobody waits. What comes at that very time counts as come.
    ///
    /// `None` when no signal will ever come and time stands still: where `until` is `None`, or at a recording's end.
    fn next(&mut self, until: Option<f64>) -> Option<Vec<Signal>>;
}

const _: Option<&dyn Site> = None;
