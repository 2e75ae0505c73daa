//! The former plan, kept for what is known now: what another plan is compared with.

use alto_sched::{Choice, Cluster, Node, Placement, Snapshot};

use super::clock::{micros, seconds};

/// The devices of a cluster, to keep plans on.
#[derive(Debug)]
pub(super) struct Former {
    /// Number and node of each, by number.
    devices: Vec<(u32, usize)>,
}

impl Former {
    pub(super) fn new(cluster: &Cluster) -> Self {
        let of_node = |(node, all): (usize, &Node)| all.devices.iter().map(move |&device| (device, node)).collect();
        let mut devices: Vec<(u32, usize)> =
            cluster.nodes.iter().enumerate().flat_map(of_node as fn(_) -> Vec<_>).collect();
        devices.sort_unstable();
        Self { devices }
    }

    /// Seconds from now until the last waiting task ends, if each that the former plan has stays on its devices and
    /// behind those that are before it there, and starts as early as these, what runs and its release let it. What the
    /// plan doesn't have follows behind all others, in the order of the queue, each where it ends first.
    pub(super) fn makespan(&self, snapshot: &Snapshot) -> f64 {
        let Snapshot { cluster, now, running, waiting, previous, .. } = snapshot;
        let now = micros(*now);
        // When each device is free.
        let mut free = vec![now; self.devices.len()];
        for task in running {
            let until = micros(task.until).max(now);
            self.ranks(&task.devices).for_each(|rank| free[rank] = until);
        }
        let mut last = now;
        let mut known: Vec<(u64, usize, &Placement)> = vec![];
        known.extend(previous.iter().enumerate().filter_map(|(place, placement)| {
            let placement = placement.as_ref()?;
            Some((micros(placement.start), place, placement))
        }));
        known.sort_unstable_by_key(|&(start, place, _)| (start, place));
        for (start, place, placement) in known {
            let earliest = micros(waiting[place].release).max(now);
            let begin = self.ranks(&placement.devices).map(|rank| free[rank]).fold(earliest, u64::max);
            let end = begin + micros(placement.end) - start;
            self.ranks(&placement.devices).for_each(|rank| free[rank] = end);
            last = last.max(end);
        }
        if previous.iter().any(Option::is_none) {
            let mut nodes = Nodes::new(cluster, self.devices.iter().map(|device| device.1).zip(free));
            let new = waiting.iter().zip(previous).filter(|(_, placement)| placement.is_none());
            last = new.fold(last, |last, (task, _)| last.max(nodes.append(&task.options, micros(task.release))));
        }
        seconds(last - now)
    }

    fn ranks(&self, devices: &[u32]) -> impl Iterator<Item = usize> {
        devices.iter().filter_map(|device| self.devices.binary_search_by_key(device, |known| known.0).ok())
    }
}

/// When the devices of each node are free.
struct Nodes<'a> {
    cluster: &'a Cluster,
    /// By node, ascending.
    free: Vec<Vec<u64>>,
}

impl<'a> Nodes<'a> {
    fn new(cluster: &'a Cluster, free: impl Iterator<Item = (usize, u64)>) -> Self {
        let mut nodes = vec![vec![]; cluster.nodes.len()];
        free.for_each(|(node, free)| nodes[node].push(free));
        nodes.iter_mut().for_each(|free: &mut Vec<u64>| free.sort_unstable());
        Self { cluster, free: nodes }
    }

    /// Puts a task where it ends first, behind all that is there, and gives the end.
    fn append(&mut self, options: &[Choice], release: u64) -> u64 {
        let mut first: Option<(u64, usize, usize)> = None;
        for option in options {
            let (width, duration) = (option.width as usize, micros(option.duration).max(1));
            for (node, (what, free)) in self.cluster.nodes.iter().zip(&self.free).enumerate() {
                let Some(enough) = free.get(width - 1).filter(|_| suits(option, what)) else { continue };
                let end = release.max(*enough) + duration;
                if first.is_none_or(|first| end < first.0) {
                    first = Some((end, node, width));
                }
            }
        }
        let Some((end, node, width)) = first else { return release };
        let free = &mut self.free[node];
        free.drain(..width);
        let place = free.partition_point(|&time| time < end);
        free.splice(place..place, std::iter::repeat_n(end, width));
        end
    }
}

fn suits(option: &Choice, node: &Node) -> bool {
    option.kind.as_ref().is_none_or(|kind| *kind == node.kind)
        && node.memory.is_none_or(|memory| option.memory <= memory)
}
