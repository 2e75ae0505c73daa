//! Which waiting jobs begin, and who takes the place of one that ended.

use serde::{Deserialize, Serialize};

use super::memory::{Load, MemoryModel};

/// What one job takes while it trains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Its adapter, and the most tokens that one of its micro-batches has.
    pub load: Load,
    /// Rows in one of its micro-batches.
    pub batch: usize,
}

/// What a device has in all, taken or free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Room {
    /// Bytes that may be used; `None` is no limit.
    #[serde(default)]
    pub budget: Option<u64>,
    /// Jobs that may be attached at a time; `None` is no limit.
    #[serde(default)]
    pub slots: Option<usize>,
}

/// Picks the waiting jobs that begin now: the largest batch size first (ties by index), each that fits beside the
/// running ones and those picked before it.
///
/// Returns indices into `waiting`, in the order picked. A job that doesn't fit is passed over, so that none of those
/// left would fit beside the picked ones. The picked and running jobs' [`reserve`](MemoryModel::reserve) is within
/// the budget, unless the running ones were over it already: then nothing is picked.
///
/// # Errors
/// As [`check`]: a job that can never fit would wait forever.
pub fn admit(
    model: &MemoryModel,
    running: &[Need],
    waiting: &[Need],
    room: &Room,
) -> Result<Vec<usize>, AdmissionError> {
    backfill(model, running, waiting, &[], room)
}

/// Picks the waiting jobs that take the place of jobs that ended, whose batch sizes are `freed`.
///
/// For each one freed, in order, the first waiting job of the same batch size that fits; then, as [`admit`] does, any
/// that fit into what is left. `running` no longer holds those that ended.
///
/// Returns indices into `waiting`, in the order picked.
///
/// # Errors
/// As [`check`].
pub fn backfill(
    model: &MemoryModel,
    running: &[Need],
    waiting: &[Need],
    freed: &[usize],
    room: &Room,
) -> Result<Vec<usize>, AdmissionError> {
    check(model, waiting, room)?;
    let mut place = Place { model, room, load: running.iter().map(|need| need.load).sum(), jobs: running.len() };
    let mut picked = Vec::new();
    for &batch in freed {
        let same = (0..waiting.len()).filter(|&i| waiting[i].batch == batch && !picked.contains(&i));
        if let Some(i) = same.into_iter().find(|&i| place.take(&waiting[i])) {
            picked.push(i);
        }
    }
    let mut rest: Vec<usize> = (0..waiting.len()).filter(|i| !picked.contains(i)).collect();
    rest.sort_by_key(|&i| (std::cmp::Reverse(waiting[i].batch), i));
    picked.extend(rest.into_iter().filter(|&i| place.take(&waiting[i])));
    Ok(picked)
}

/// Checks that each of the jobs would fit if it were alone on the device.
///
/// # Errors
/// Names the first that wouldn't, the bytes that it needs and the budget.
pub fn check(model: &MemoryModel, jobs: &[Need], room: &Room) -> Result<(), AdmissionError> {
    if room.slots == Some(0) && !jobs.is_empty() {
        return Err(AdmissionError::NoSlots { jobs: jobs.len() });
    }
    let Some(budget) = room.budget else { return Ok(()) };
    for (job, need) in jobs.iter().enumerate() {
        let bytes = model.reserve(&need.load);
        if bytes > budget {
            return Err(AdmissionError::NeverFits { job, bytes, budget });
        }
    }
    Ok(())
}

/// A device as it fills up.
struct Place<'a> {
    model: &'a MemoryModel,
    room: &'a Room,
    load: Load,
    jobs: usize,
}

impl Place<'_> {
    /// Takes the job in if it fits.
    fn take(&mut self, need: &Need) -> bool {
        let load = self.load.plus(need.load);
        let fits = self.room.slots.is_none_or(|slots| self.jobs < slots)
            && self.room.budget.is_none_or(|budget| self.model.reserve(&load) <= budget);
        if fits {
            self.load = load;
            self.jobs += 1;
        }
        fits
    }
}

/// Why jobs can't be admitted, now or later.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdmissionError {
    /// A job that is too large for the device even alone.
    #[error("job {job} needs {bytes} bytes even alone, but the budget is {budget}")]
    NeverFits {
        /// Its index.
        job: usize,
        /// Bytes to set aside for it, margin included.
        bytes: u64,
        /// Bytes that may be used.
        budget: u64,
    },
    /// A device that takes no job at all.
    #[error("{jobs} jobs wait, but the device has 0 slots, expected at least 1")]
    NoSlots {
        /// How many jobs wait.
        jobs: usize,
    },
}
