//! Who runs, where, and until when.

use std::collections::BTreeMap;

use alto_sched::{Placement, Running};

/// The tasks that run.
#[derive(Debug, Default)]
pub(super) struct Roster {
    /// Their numbers, ascending.
    tasks: Vec<usize>,
    /// What a scheduler is told of each: `until` is when it ends by what is known.
    running: Vec<Running>,
    times: Vec<Times>,
    /// By device, who has it.
    holder: BTreeMap<u32, usize>,
}

/// When a task started, and when it ends by the plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) started: f64,
    pub(super) planned: f64,
}

impl Roster {
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn first(&self) -> Option<usize> {
        self.tasks.first().copied()
    }

    /// What a scheduler is told, which may be taken away for a while.
    pub(super) fn running(&mut self) -> &mut Vec<Running> {
        &mut self.running
    }

    /// When this task ends by what is known, and its other times.
    pub(super) fn times(&mut self, task: usize) -> Option<(&mut f64, Times)> {
        let place = self.tasks.binary_search(&task).ok()?;
        Some((&mut self.running[place].until, self.times[place]))
    }

    /// What is known now is what is planned with.
    pub(super) fn settle(&mut self) {
        self.times.iter_mut().zip(&self.running).for_each(|(times, running)| times.planned = running.until);
    }

    pub(super) fn start(&mut self, task: usize, name: String, placement: &Placement) {
        let Placement { devices, start, end, .. } = placement;
        self.holder.extend(devices.iter().map(|&device| (device, task)));
        let place = self.tasks.partition_point(|&other| other < task);
        self.tasks.insert(place, task);
        self.running.insert(place, Running { name, devices: devices.clone(), until: *end });
        self.times.insert(place, Times { started: *start, planned: *end });
    }

    /// Whether this task ran until now.
    pub(super) fn end(&mut self, task: usize) -> bool {
        let Ok(place) = self.tasks.binary_search(&task) else { return false };
        self.tasks.remove(place);
        self.times.remove(place);
        for device in self.running.remove(place).devices {
            self.holder.remove(&device);
        }
        true
    }

    /// Who has some of these devices; once for each of them.
    pub(super) fn holders(&self, devices: &[u32]) -> Vec<usize> {
        devices.iter().filter_map(|device| self.holder.get(device).copied()).collect()
    }
}
