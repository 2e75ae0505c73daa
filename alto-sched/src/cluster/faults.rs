//! Whether a task makes sense and has a place.

use super::error::TaskFault;
use super::snapshot::{Choice, Cluster, Node, Snapshot, Task};
use super::time::{self, LATEST, Micros};

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

/// The nodes of a cluster, of those alike that follow one another the first: what any task asks for, one of these has if
/// any node has it.
pub(crate) fn distinct(cluster: &Cluster) -> Vec<&Node> {
    let mut nodes: Vec<&Node> = cluster.nodes.iter().collect();
    nodes.dedup_by(|a, b| (&a.kind, a.memory, a.devices.len()) == (&b.kind, b.memory, b.devices.len()));
    nodes
}

/// What is wrong with a task by itself, if anything, on a cluster with these nodes.
pub(crate) fn of_task(task: &Task, nodes: &[&Node]) -> Option<TaskFault> {
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
            && !nodes.iter().any(|node| node.kind == *kind)
        {
            return Some(TaskFault::UnknownKind { option, kind: kind.clone() });
        }
    }
    let most = |choice: &Choice| {
        let sizes = nodes.iter().filter(|node| suits(choice, node)).map(|node| node.devices.len() as u32);
        sizes.max().unwrap_or(0)
    };
    // Over all options the one that misses the fewest devices; with none missing the task fits.
    let misses = |choice: &Choice| choice.width.saturating_sub(most(choice));
    let (option, choice) = task.options.iter().enumerate().min_by_key(|(_, choice)| misses(choice))?;
    let fault = TaskFault::NeverFits { option, width: choice.width, memory: choice.memory, most: most(choice) };
    (misses(choice) > 0).then_some(fault)
}
