//! Why there is no plan.

use serde::{Deserialize, Serialize};

use super::plan::PLAN_VERSION;
use super::snapshot::{Cluster, Task};
use super::time::{LATEST, seconds};

/// Why a snapshot can't be planned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A waiting task that can't be placed. With [`skip_bad`](super::snapshot::Snapshot::skip_bad) the others can.
    #[error("task {task}{} {fault}", named(name))]
    Task {
        /// Its index in `waiting`.
        task: usize,
        /// Its name.
        name: String,
        /// What is wrong with it.
        fault: TaskFault,
    },
    /// A running task that can't be.
    #[error("running task {running}{} {fault}", named(name))]
    Running {
        /// Its index in `running`.
        running: usize,
        /// Its name.
        name: String,
        /// What is wrong with it.
        fault: RunningFault,
    },
    /// A device that is in the cluster twice.
    #[error("device {device} is listed twice, in node {first} and in node {second}")]
    DeviceTwice {
        /// Its number.
        device: u32,
        /// Index of the first node that lists it.
        first: usize,
        /// Index of the second, or the same.
        second: usize,
    },
    /// A present that is no time.
    #[error("now is {now} s, expected 0 to {:.0} s", seconds(LATEST))]
    BadNow {
        /// As given.
        now: f64,
    },
    /// An earlier plan for another number of tasks.
    #[error("the previous plan has {found} placements for {expected} waiting tasks")]
    PreviousLength {
        /// How many there are.
        found: usize,
        /// How many tasks wait.
        expected: usize,
    },
    /// A cluster of too many devices.
    #[error("the cluster has {devices} devices, expected at most {}", Cluster::MOST_DEVICES)]
    TooManyDevices {
        /// How many it has.
        devices: u64,
    },
}

/// What is wrong with a waiting task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum TaskFault {
    /// No way to run it.
    #[error("has no option, expected at least 1")]
    NoOption,
    /// A duration that isn't over 0, or is no number, or too long.
    #[error("has a duration of {} in option {option}, expected over 0 and at most {:.0} s", shown(*duration, " s"), seconds(LATEST))]
    BadDuration {
        /// Index of the option.
        option: usize,
        /// In seconds; `None` where it was no finite number.
        duration: Option<f64>,
    },
    /// A release that is negative, or no number, or too late.
    #[error("has a release of {}, expected 0 to {:.0} s", shown(*release, " s"), seconds(LATEST))]
    BadRelease {
        /// In seconds; `None` where it was no finite number.
        release: Option<f64>,
    },
    /// A weight that is negative, or no number, or so large that sums of such weights could be infinite.
    #[error("has a weight of {}, expected 0 to {:e}", shown(*weight, ""), Task::MOST_WEIGHT)]
    BadWeight {
        /// As given; `None` where it was no finite number.
        weight: Option<f64>,
    },
    /// No devices at all.
    #[error("needs 0 devices in option {option}, expected at least 1")]
    NoDevices {
        /// Index of the option.
        option: usize,
    },
    /// A kind that no node has.
    #[error("needs devices of kind {kind:?} in option {option}, which no node of the cluster has")]
    UnknownKind {
        /// Index of the option.
        option: usize,
        /// The kind.
        kind: String,
    },
    /// No option that some node has the devices for. The numbers are of the option that misses the fewest devices.
    #[error(
        "needs {width} devices{} on one node in option {option}, but at most {most} of its kind {}",
        if *memory > 0 { format!(" with {memory} bytes each") } else { String::new() },
        if *memory > 0 { "have that" } else { "are on one" },
    )]
    NeverFits {
        /// Index of the option.
        option: usize,
        /// Devices that it takes.
        width: u32,
        /// Bytes on each.
        memory: u64,
        /// The most such devices that a node has.
        most: u32,
    },
    /// No time left for it before the latest there is.
    #[error("would end at {end:.0} s if it ran after all others, past the latest time of {:.0} s", seconds(LATEST))]
    TooLate {
        /// When it would end if it began once the rest of the plan and the running tasks are done, in seconds.
        end: f64,
    },
}

/// A task's name as it follows its index.
fn named(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" ({name:?})") }
}

/// A number as it is shown, and stored: JSON has no infinity.
fn shown(value: Option<f64>, unit: &str) -> String {
    match value {
        Some(value) if value.abs() >= 1e15 => format!("{value:e}{unit}"),
        Some(value) => format!("{value}{unit}"),
        None => "infinity or NaN".to_owned(),
    }
}

/// What is wrong with a running task.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunningFault {
    /// A device that isn't in the cluster.
    #[error("holds device {device}, which no node of the cluster has")]
    UnknownDevice {
        /// Its number.
        device: u32,
    },
    /// A device that a running task holds already, another or the same.
    #[error("holds device {device}, which running task {other} holds already")]
    DeviceTwice {
        /// Its number.
        device: u32,
        /// Index of the one that holds it.
        other: usize,
    },
    /// An end that is no time.
    #[error("is expected to end at {until} s, expected 0 to {:.0} s", seconds(LATEST))]
    BadEnd {
        /// As given.
        until: f64,
    },
}

/// Why a file holds no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanFileError {
    /// A file of another version.
    #[error("the plan has version {found}, expected {PLAN_VERSION}")]
    UnknownVersion {
        /// Its version.
        found: u32,
    },
}
