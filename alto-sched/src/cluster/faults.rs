//! Whether a snapshot makes sense.

use std::collections::BTreeMap;

use super::error::{PlanError, RunningFault, TaskFault};
use super::snapshot::{Choice, Cluster, Node, Running, Snapshot, Task};
use super::time::{self, LATEST, Micros};

/// For each device of the cluster, the node that it is in.
pub(crate) fn node_of_device(cluster: &Cluster) -> Result<BTreeMap<u32, usize>, PlanError> {
    let devices = cluster.size();
    if devices > u64::from(Cluster::MOST_DEVICES) {
        return Err(PlanError::TooManyDevices { devices });
    }
    let mut nodes = BTreeMap::new();
    for (second, node) in cluster.nodes.iter().enumerate() {
        for &device in &node.devices {
            if let Some(first) = nodes.insert(device, second) {
                return Err(PlanError::DeviceTwice { device, first, second });
            }
        }
    }
    Ok(nodes)
}

/// For each device that is taken, the running task that holds it.
pub(crate) fn holder_of_device(
    running: &[Running],
    node_of_device: &BTreeMap<u32, usize>,
) -> Result<BTreeMap<u32, usize>, PlanError> {
    let mut holders = BTreeMap::new();
    for (index, task) in running.iter().enumerate() {
        let error = |fault| PlanError::Running { running: index, name: task.name.clone(), fault };
        // A time before now is now, so a negative one would do no harm; but it is a mistake.
        if time::micros(task.until).is_none() {
            return Err(error(RunningFault::BadEnd { until: task.until }));
        }
        for &device in &task.devices {
            if !node_of_device.contains_key(&device) {
                return Err(error(RunningFault::UnknownDevice { device }));
            }
            if let Some(other) = holders.insert(device, index) {
                return Err(error(RunningFault::DeviceTwice { device, other }));
            }
        }
    }
    Ok(holders)
}

/// Whether a task run in this way may be on this node, apart from how many devices it takes.
pub(crate) fn suits(choice: &Choice, node: &Node) -> bool {
    choice.kind.as_ref().is_none_or(|kind| *kind == node.kind)
        && node.memory.is_none_or(|memory| choice.memory <= memory)
}

/// Whether a task may weigh so much; NaN is in no range.
pub(crate) fn is_weight(weight: f64) -> bool {
    (0.0..=Task::MOST_WEIGHT).contains(&weight)
}

/// When a task would end that begins once all that runs and all that is planned, up to `last`, is done, if that is past
/// the latest time there is.
pub(crate) fn too_late(task: &Task, snapshot: &Snapshot, last: Micros) -> Option<TaskFault> {
    let fits = |choice: &&Choice| {
        let has = |node: &Node| suits(choice, node) && choice.width as usize <= node.devices.len();
        snapshot.cluster.nodes.iter().any(has)
    };
    let shortest = task.options.iter().filter(fits).filter_map(|choice| time::duration(choice.duration)).min()?;
    let ends = snapshot.running.iter().map(|running| running.until);
    let from = ends.chain([snapshot.now, task.release]).filter_map(time::micros).fold(last, Micros::max);
    let end = from + shortest;
    (end > LATEST).then(|| TaskFault::TooLate { end: time::seconds(end) })
}

/// What is wrong with a task by itself, if anything.
pub(crate) fn of_task(task: &Task, cluster: &Cluster) -> Option<TaskFault> {
    let finite = |x: f64| x.is_finite().then_some(x);
    if task.options.is_empty() {
        return Some(TaskFault::NoOption);
    }
    if time::micros(task.release).is_none() {
        return Some(TaskFault::BadRelease { release: finite(task.release) });
    }
    if !is_weight(task.weight) {
        return Some(TaskFault::BadWeight { weight: finite(task.weight) });
    }
    for (option, choice) in task.options.iter().enumerate() {
        if choice.width == 0 {
            return Some(TaskFault::NoDevices { option });
        }
        if time::duration(choice.duration).is_none() {
            return Some(TaskFault::BadDuration { option, duration: finite(choice.duration) });
        }
        if let Some(kind) = &choice.kind
            && !cluster.nodes.iter().any(|node| node.kind == *kind)
        {
            return Some(TaskFault::UnknownKind { option, kind: kind.clone() });
        }
    }
    let most = |choice: &Choice| {
        let sizes = cluster.nodes.iter().filter(|node| suits(choice, node)).map(|node| node.devices.len() as u32);
        sizes.max().unwrap_or(0)
    };
    // Over all options the one that misses the fewest devices; with none missing the task fits.
    let misses = |choice: &Choice| choice.width.saturating_sub(most(choice));
    let (option, choice) = task.options.iter().enumerate().min_by_key(|(_, choice)| misses(choice))?;
    let fault = TaskFault::NeverFits { option, width: choice.width, memory: choice.memory, most: most(choice) };
    (misses(choice) > 0).then_some(fault)
}
