//! How long a task takes: its jobs' steps, one after the other, with whoever has a place.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::error::WorkloadError;
use super::task::{TaskJob, TuningTask};
use crate::job::{RANK_LIMIT, SAMPLES_LIMIT, STEP_ROWS_LIMIT};
use crate::simulated::systems::{AdapterLoad, CostError, Device, Setup, System};

/// The most tokens of a row: those of the largest batch then fit in a number.
const ROW_TOKENS_LIMIT: u64 = 1 << 32;

/// [`TuningTask::seconds`] of many tasks of one system and device, in their order; like tasks are computed once.
///
/// Early exit leaves task `i` what `kept[i % kept.len()]` says of its jobs; with no shares all go on to their end.
///
/// ```
/// use alto_core::simulated::systems::{Device, System};
/// use alto_core::simulated::workload::{Arrivals, Generator, durations};
///
/// let tasks = Generator::paper(7, 1000, Arrivals::AtOnce).tasks()?;
/// let seconds = durations(&tasks, System::AdapterParallel, &Device::named("H100 SXM")?, &[vec![0.2, 1.0]])?;
/// assert_eq!(seconds.len(), 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`TuningTask::seconds`] and [`TuningTask::setup`].
pub fn durations(
    tasks: &[TuningTask],
    system: System,
    device: &Device,
    kept: &[Vec<f64>],
) -> Result<Vec<f64>, WorkloadError> {
    // By what can be ordered; jobs, which have learning rates, are compared.
    let mut known: BTreeMap<_, Vec<(&[TaskJob], f64)>> = BTreeMap::new();
    let mut seconds = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        let which = index % kept.len().max(1);
        let alike = known.entry((&task.model, task.devices, task.row_tokens, which)).or_default();
        let found = alike.iter().find(|(jobs, _)| *jobs == task.jobs).map(|(_, seconds)| *seconds);
        let found = match found {
            Some(found) => found,
            None => {
                let shares = kept.get(which).map_or(&[][..], Vec::as_slice);
                let computed = task.seconds(&task.setup(system, device)?, shares)?;
                alike.push((&task.jobs, computed));
                computed
            }
        };
        seconds.push(found);
    }
    Ok(seconds)
}

impl TuningTask {
    /// Seconds that the setup takes for all jobs. Job `i` ends after the share `kept[i % kept.len()]` of its steps,
    /// rounded up, as early exit has it; with no shares all go on to their end.
    ///
    /// As a trainer does: jobs of the largest batch begin, as far as memory allows; all that have a place make their
    /// steps together; who ends gives the place to a waiting job of the same batch, then to any that fits. Rungs,
    /// where jobs wait for each other, and evaluations are left out.
    ///
    /// # Errors
    /// A share that isn't from 0 to 1, a job without samples or rows or with too many, a job that doesn't fit alone, or a setup that
    /// lacks a parameter.
    pub fn seconds(&self, setup: &Setup, kept: &[f64]) -> Result<f64, WorkloadError> {
        let mut waiting = self.entries(kept)?;
        // Largest batch first; jobs of one kind stand side by side.
        waiting.sort_by_key(|entry| (Reverse(entry.load.rows), entry.load.rank));
        let mut places = Places { task: self, setup, waiting, resident: Vec::new() };
        places.fill(&[])?;
        let mut seconds = 0.0;
        while let Some(steps) = places.resident.iter().map(|entry| entry.steps).min() {
            seconds += steps as f64 * setup.step(&places.loads())?.seconds();
            places.resident.iter_mut().for_each(|entry| entry.steps -= steps);
            let (ended, resident) = places.resident.into_iter().partition(|entry| entry.steps == 0);
            places.resident = resident;
            places.fill(&ended)?;
        }
        Ok(seconds)
    }

    fn entries(&self, kept: &[f64]) -> Result<Vec<Entry>, WorkloadError> {
        if self.jobs.is_empty() {
            return Err(WorkloadError::Empty { setting: "jobs" });
        }
        let sizes = self.jobs.iter().flat_map(|job| {
            let TaskJob { rank, batch, samples, .. } = *job;
            [
                ("rank", rank as u64, RANK_LIMIT as u64, "from 1 to 65536"),
                ("batch", batch as u64, STEP_ROWS_LIMIT as u64, "from 1 to 1048576"),
                ("samples", samples, SAMPLES_LIMIT, "from 1 to 2^53"),
                ("row_tokens", self.row_tokens, ROW_TOKENS_LIMIT, "from 1 to 2^32"),
            ]
        });
        for (setting, value, most, expected) in sizes {
            if value == 0 || value > most {
                return Err(WorkloadError::OutOfRange { setting, value: value as f64, expected });
            }
        }
        if let Some(&value) = kept.iter().find(|share| !(0.0..=1.0).contains(*share)) {
            return Err(WorkloadError::OutOfRange { setting: "kept share", value, expected: "from 0 to 1" });
        }
        let entry = |(index, job): (usize, &TaskJob)| {
            let share = if kept.is_empty() { 1.0 } else { kept[index % kept.len()] };
            let steps = (share * job.steps() as f64).ceil() as u64;
            Entry { load: job.load(self.row_tokens), steps }
        };
        Ok(self.jobs.iter().enumerate().map(entry).filter(|entry| entry.steps > 0).collect())
    }
}

/// A job and the steps that it has left.
#[derive(Debug, Clone, Copy)]
struct Entry {
    load: AdapterLoad,
    steps: u64,
}

struct Places<'a> {
    task: &'a TuningTask,
    setup: &'a Setup,
    waiting: Vec<Entry>,
    resident: Vec<Entry>,
}

impl Places<'_> {
    fn loads(&self) -> Vec<AdapterLoad> {
        self.resident.iter().map(|entry| entry.load).collect()
    }

    /// Gives places to whoever fits: first for each that ended, one of its batch.
    fn fill(&mut self, ended: &[Entry]) -> Result<(), WorkloadError> {
        let mut loads = self.loads();
        for gone in ended {
            let same = self.waiting.iter().position(|entry| entry.load.rows == gone.load.rows);
            if let Some(at) = same {
                self.admit(at, &mut loads)?;
            }
        }
        let (mut at, mut refused) = (0, None);
        while at < self.waiting.len() {
            let load = self.waiting[at].load;
            if refused == Some(load) || !self.admit(at, &mut loads)? {
                refused = Some(load);
                at += 1;
            }
        }
        if let (Some(entry), true) = (self.waiting.first(), self.resident.is_empty()) {
            return Err(self.never_fits(&entry.load)?);
        }
        Ok(())
    }

    fn admit(&mut self, at: usize, loads: &mut Vec<AdapterLoad>) -> Result<bool, CostError> {
        loads.push(self.waiting[at].load);
        if self.setup.fits(loads)? {
            self.resident.push(self.waiting.remove(at));
            return Ok(true);
        }
        loads.pop();
        Ok(false)
    }

    fn never_fits(&self, load: &AdapterLoad) -> Result<WorkloadError, CostError> {
        Ok(WorkloadError::NeverFits {
            task: self.task.name.clone(),
            rank: load.rank,
            batch: load.rows,
            needed: self.setup.needed_bytes(&[*load])?,
            device: self.setup.device.name.clone(),
            memory: self.setup.device.memory as u64,
        })
    }
}
