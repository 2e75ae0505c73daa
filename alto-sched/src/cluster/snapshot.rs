//! What a scheduler looks at: the cluster, what runs on it and what waits.

use serde::{Deserialize, Serialize};

use super::error::TaskFault;
use super::faults;
use super::plan::Placement;

/// The devices that tasks are placed on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Each device is in one of them.
    pub nodes: Vec<Node>,
}

impl Cluster {
    /// The most devices that a cluster may have, about a million: planning takes memory and time for each.
    pub const MOST_DEVICES: u32 = 1 << 20;

    /// One node with devices `0..devices` and no limit to their memory.
    pub fn single(kind: &str, devices: u32) -> Cluster {
        Cluster::default().with(kind, devices, devices)
    }

    /// This cluster and `devices` more, in nodes of `island` devices; the last node has what is left over.
    ///
    /// Devices are numbered on from the highest number in use.
    ///
    /// ```
    /// use alto_sched::Cluster;
    ///
    /// let cluster = Cluster::default().with("H100", 16, 8).with("A100", 4, 4);
    /// assert_eq!(cluster.nodes.len(), 3);
    /// assert_eq!(cluster.nodes[2].devices, [16, 17, 18, 19]);
    /// ```
    ///
    /// # Panics
    /// If `island` is 0 while `devices` isn't, there are more than [`Cluster::MOST_DEVICES`] then, or the numbers pass
    /// `u32::MAX`.
    #[must_use]
    pub fn with(mut self, kind: &str, devices: u32, island: u32) -> Cluster {
        assert!(devices == 0 || island > 0, "{devices} devices can't be put into nodes of 0");
        let all = self.size() + u64::from(devices);
        assert!(all <= u64::from(Cluster::MOST_DEVICES), "{all} devices, expected at most {}", Cluster::MOST_DEVICES);
        let used = self.nodes.iter().flat_map(|node| &node.devices).max();
        let mut next = used.map_or(0, |&highest| highest.checked_add(1).expect("device numbers fit in u32"));
        let end = next.checked_add(devices).expect("device numbers fit in u32");
        while next < end {
            let size = island.min(end - next);
            self.nodes.push(Node { kind: kind.to_owned(), devices: (next..next + size).collect(), memory: None });
            next += size;
        }
        self
    }

    /// How many devices it has.
    pub(crate) fn size(&self) -> u64 {
        self.nodes.iter().map(|node| node.devices.len() as u64).sum()
    }
}

/// Devices of one kind that a task may span: a machine, or all machines of a network that is fast enough.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// The devices' kind, which decides how long a task takes.
    pub kind: String,
    /// The devices' numbers; no number is twice in a cluster.
    pub devices: Vec<u32>,
    /// Bytes that each of them has; `None` is no limit.
    #[serde(default)]
    pub memory: Option<u64>,
}

/// A task that waits for its devices; once begun, it keeps them to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// For messages alone.
    #[serde(default)]
    pub name: String,
    /// The earliest that it may start, in seconds; at least 0.
    #[serde(default)]
    pub release: f64,
    /// What a second of its waiting counts in [`Plan::weighted_completion`](super::plan::Plan::weighted_completion);
    /// at least 0 and at most [`Task::MOST_WEIGHT`].
    #[serde(default = "one")]
    pub weight: f64,
    /// The ways to run it, of which a plan chooses one.
    pub options: Vec<Choice>,
}

impl Task {
    /// The most that a task may weigh: however many of such tasks a plan has, their sum is finite.
    pub const MOST_WEIGHT: f64 = 1e100;

    /// A task that needs `width` devices of whatever kind for `duration` seconds, from the start on.
    pub fn rigid(name: &str, width: u32, duration: f64) -> Task {
        let options = vec![Choice { kind: None, width, duration, memory: 0 }];
        Task { name: name.to_owned(), release: 0.0, weight: 1.0, options }
    }

    /// Checks that a plan has a place for this task when nothing else runs.
    ///
    /// # Errors
    /// What is wrong with it, or that no node has what one of its options takes.
    pub fn check(&self, cluster: &Cluster) -> Result<(), TaskFault> {
        faults::of_task(self, &faults::distinct(cluster)).map_or(Ok(()), Err)
    }
}

fn one() -> f64 {
    1.0
}

/// One way to run a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The kind of device; `None` is any.
    #[serde(default)]
    pub kind: Option<String>,
    /// How many devices it takes, all on one node; at least 1.
    pub width: u32,
    /// How long it takes, in seconds; over 0.
    pub duration: f64,
    /// Bytes that it needs on each device.
    #[serde(default)]
    pub memory: u64,
}

/// A task that runs already. It can't be moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Running {
    /// For messages alone.
    #[serde(default)]
    pub name: String,
    /// The devices that it holds.
    pub devices: Vec<u32>,
    /// When it is expected to end, in seconds. A time before [`Snapshot::now`] is taken for now.
    pub until: f64,
}

/// All that a plan follows from. Times are in seconds on a clock of the caller's, to the microsecond.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// The devices.
    pub cluster: Cluster,
    /// The time: nothing starts before it; at least 0.
    #[serde(default)]
    pub now: f64,
    /// What runs at this time.
    #[serde(default)]
    pub running: Vec<Running>,
    /// What is to be placed.
    pub waiting: Vec<Task>,
    /// Where an earlier plan has each of the waiting tasks (`None`: it doesn't know that task); empty without one.
    ///
    /// A plan starts from it and departs from it where that wins something. What no longer holds, as when a running
    /// task takes longer than expected, is repaired and is no error.
    #[serde(default)]
    pub previous: Vec<Option<Placement>>,
    /// Whether tasks that can't be placed are left out of the plan, with the reason, instead of failing the call.
    #[serde(default)]
    pub skip_bad: bool,
}
