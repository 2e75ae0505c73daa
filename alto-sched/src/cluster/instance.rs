//! Instances of scheduling problems in files, as for comparing schedulers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::snapshot::{Choice, Cluster, Snapshot, Task};

/// An instance in a file: `gpus` in all, or `pools` of several kinds, and tasks that all wait.
///
/// A field that isn't known is an error, which names the task where it is in one.
///
/// ```
/// use alto_sched::Instance;
///
/// let file = r#"[{"name": "two", "gpus": 4, "tasks": [{"gpus": 2, "duration": 60}, {"gpus": 4, "duration": 30}]}]"#;
/// let instances: Vec<Instance> = serde_json::from_str(file)?;
/// assert_eq!(instances[0].snapshot()?.waiting[1].options[0].width, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// What it is called.
    pub name: String,
    /// Devices of one kind, on one node; either this or `pools`.
    #[serde(default)]
    pub gpus: Option<u32>,
    /// For each kind, how many devices.
    #[serde(default)]
    pub pools: Option<BTreeMap<String, u32>>,
    /// Devices of a node; without it all of a kind are on one.
    #[serde(default)]
    pub island_size: Option<u32>,
    /// What waits.
    #[serde(deserialize_with = "tasks")]
    pub tasks: Vec<InstanceTask>,
    /// The least makespan known, in seconds.
    #[serde(default)]
    pub best_known: Option<f64>,
    /// A makespan that none is under, in seconds.
    #[serde(default)]
    pub lower_bound: Option<f64>,
    /// Whether no makespan is under the least known.
    #[serde(default)]
    pub proven_optimal: Option<bool>,
    /// What one worker of another solver (OR-tools CP-SAT) reached, in seconds, by how many seconds it had; `None` is
    /// nothing.
    #[serde(default)]
    pub cp_sat_single_worker: BTreeMap<String, Option<f64>>,
}

/// A task of an instance: `gpus` and `duration`, or `options`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceTask {
    /// How many devices it takes.
    #[serde(default)]
    pub gpus: Option<u32>,
    /// How long it takes, in seconds.
    #[serde(default)]
    pub duration: Option<f64>,
    /// The earliest that it may start, in seconds.
    #[serde(default)]
    pub release: f64,
    /// The ways to run it.
    #[serde(default)]
    pub options: Vec<InstanceOption>,
}

/// A way to run a task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceOption {
    /// The kind of device.
    pub kind: String,
    /// How many devices it takes.
    pub gpus: u32,
    /// How long it takes, in seconds.
    pub duration: f64,
}

impl Instance {
    /// The snapshot that it describes. Its tasks have no names.
    ///
    /// # Errors
    /// It doesn't say what devices there are, or what a task takes, or says either twice, or has more devices than a
    /// cluster may.
    pub fn snapshot(&self) -> Result<Snapshot, InstanceError> {
        let name = || self.name.clone();
        let devices = self.pools.iter().flat_map(BTreeMap::values).chain(&self.gpus).map(|&devices| u64::from(devices));
        let devices = devices.sum();
        if devices > u64::from(Cluster::MOST_DEVICES) {
            return Err(InstanceError::TooManyDevices { name: name(), devices });
        }
        let cluster = match (self.gpus, &self.pools) {
            (Some(devices), None) => Cluster::default().with("GPU", devices, self.island(devices)),
            (None, Some(pools)) => pools.iter().fold(Cluster::default(), |cluster, (kind, &devices)| {
                cluster.with(kind, devices, self.island(devices))
            }),
            _ => return Err(InstanceError::Devices { name: name() }),
        };
        let task = |(index, task): (usize, &InstanceTask)| {
            let options = match (task.gpus, task.duration, &task.options[..]) {
                (Some(width), Some(duration), []) => vec![Choice { kind: None, width, duration, memory: 0 }],
                (None, None, options) => options.iter().map(InstanceOption::choice).collect(),
                _ => return Err(InstanceError::Task { name: name(), task: index }),
            };
            Ok(Task { name: String::new(), release: task.release, weight: 1.0, options })
        };
        let waiting = self.tasks.iter().enumerate().map(task).collect::<Result<Vec<Task>, _>>()?;
        Ok(Snapshot { cluster, waiting, ..Snapshot::default() })
    }

    fn island(&self, devices: u32) -> u32 {
        self.island_size.filter(|&size| size > 0).unwrap_or(devices)
    }
}

impl InstanceOption {
    fn choice(&self) -> Choice {
        Choice { kind: Some(self.kind.clone()), width: self.gpus, duration: self.duration, memory: 0 }
    }
}

/// Tasks, such that an error names the one that it is in.
fn tasks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<InstanceTask>, D::Error> {
    struct Tasks;

    impl<'de> Visitor<'de> for Tasks {
        type Value = Vec<InstanceTask>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "a list of tasks")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut tasks = Vec::new();
            let error = |task: usize, error: A::Error| Error::custom(format_args!("task {task}: {error}"));
            while let Some(task) = list.next_element().map_err(|cause| error(tasks.len(), cause))? {
                tasks.push(task);
            }
            Ok(tasks)
        }
    }
    deserializer.deserialize_seq(Tasks)
}

/// Why a file holds no instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// No devices, or in two ways.
    #[error("instance {name:?} must have either `gpus` or `pools`")]
    Devices {
        /// Of the instance.
        name: String,
    },
    /// A task of which it isn't clear what it takes.
    #[error("task {task} of instance {name:?} must have either `gpus` and `duration`, or `options`")]
    Task {
        /// Of the instance.
        name: String,
        /// The task's index.
        task: usize,
    },
    /// More devices than a cluster may have.
    #[error("instance {name:?} has {devices} devices, expected at most {}", Cluster::MOST_DEVICES)]
    TooManyDevices {
        /// Of the instance.
        name: String,
        /// How many it has.
        devices: u64,
    },
}
