//! Which node each device is in, and who holds it.

use super::error::{PlanError, RunningFault};
use super::snapshot::{Cluster, Running};
use super::time;

/// The devices of a cluster by their numbers, which need not follow one another.
#[derive(Debug)]
pub(crate) struct Devices {
    /// Number and node, by number.
    sorted: Vec<(u32, usize)>,
}

impl Devices {
    pub(crate) fn new(cluster: &Cluster) -> Result<Devices, PlanError> {
        let devices = cluster.size();
        if devices > u64::from(Cluster::MOST_DEVICES) {
            return Err(PlanError::TooManyDevices { devices });
        }
        let of_node = |(node, all): (usize, &super::snapshot::Node)| {
            all.devices.iter().map(move |&device| (device, node)).collect::<Vec<_>>()
        };
        let mut sorted: Vec<(u32, usize)> = cluster.nodes.iter().enumerate().flat_map(of_node).collect();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(&[(device, first), (_, second)]) => Err(PlanError::DeviceTwice { device, first, second }),
            _ => Ok(Devices { sorted }),
        }
    }

    /// How many numbers of devices are lower; `None` for a number that no device has.
    pub(crate) fn rank(&self, device: u32) -> Option<usize> {
        // Most often numbers have no gaps.
        let guess = device.checked_sub(self.sorted.first()?.0)? as usize;
        match self.sorted.get(guess) {
            Some(entry) if entry.0 == device => Some(guess),
            _ => self.sorted.binary_search_by_key(&device, |entry| entry.0).ok(),
        }
    }

    /// The node of a device in the cluster.
    pub(crate) fn node(&self, device: u32) -> Option<usize> {
        self.rank(device).map(|rank| self.sorted[rank].1)
    }

    /// The devices that are taken, by number, each with its node and the running task that holds it.
    pub(crate) fn held(&self, running: &[Running]) -> Result<impl Iterator<Item = Held>, PlanError> {
        let mut holders: Vec<Option<usize>> = vec![None; self.sorted.len()];
        for (index, task) in running.iter().enumerate() {
            let error = |fault| PlanError::Running { running: index, name: task.name.clone(), fault };
            // A time before now is now, so a negative one would do no harm; but it is a mistake.
            if time::micros(task.until).is_none() {
                return Err(error(RunningFault::BadEnd { until: task.until }));
            }
            for &device in &task.devices {
                let rank = self.rank(device).ok_or_else(|| error(RunningFault::UnknownDevice { device }))?;
                if let Some(other) = holders[rank].replace(index) {
                    return Err(error(RunningFault::DeviceTwice { device, other }));
                }
            }
        }
        let held = |(&(device, node), running): (&(u32, usize), Option<usize>)| {
            running.map(|running| Held { device, node, running })
        };
        Ok(self.sorted.iter().zip(holders).filter_map(held))
    }
}

/// A device that is taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) device: u32,
    pub(crate) node: usize,
    /// Index of who holds it.
    pub(crate) running: usize,
}
