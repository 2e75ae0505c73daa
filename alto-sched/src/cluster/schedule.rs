//! What runs where and when, as the schedulers compute with it, and the plan that it stands for.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::bounds;
use super::error::PlanError;
use super::faults;
use super::late::{self, Fitted};
use super::plan::{Placement, Plan, Refused};
use super::problem::{Mode, Problem, Time};
use super::snapshot::Snapshot;
use super::time::{LATEST, Micros, micros, seconds};

/// Where and when a task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Slot {
    /// Index into the problem's modes.
    pub(crate) mode: usize,
    /// Index into the problem's nodes.
    pub(crate) node: usize,
    pub(crate) start: Time,
}

/// A slot for each item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Schedule {
    pub(crate) slots: Vec<Slot>,
}

impl Schedule {
    pub(crate) fn mode(&self, problem: &Problem, item: usize) -> Mode {
        problem.modes[self.slots[item].mode]
    }

    pub(crate) fn end(&self, problem: &Problem, item: usize) -> Time {
        self.slots[item].start + self.mode(problem, item).duration
    }

    pub(crate) fn makespan(&self, problem: &Problem) -> Time {
        (0..self.slots.len()).map(|item| self.end(problem, item)).max().unwrap_or(0)
    }

    /// The plan, with devices chosen: those of the previous plan where they are free, else the ones freed last.
    ///
    /// # Errors
    /// A task would end past the latest time there is, and the snapshot doesn't say to skip it.
    pub(crate) fn into_plan(self, problem: &Problem, snapshot: &Snapshot, bound: Time) -> Result<Plan, PlanError> {
        let now = micros(snapshot.now).ok_or(PlanError::BadNow { now: snapshot.now })?;
        let latest = (LATEST - now) / problem.unit;
        if problem.aside.is_empty() && self.makespan(problem) <= latest {
            return Ok(self.placed(problem, snapshot, now, bound));
        }
        let Fitted { mut problem, schedule, left_out } = late::fit(problem, &self, latest);
        let last = now + schedule.makespan(&problem) * problem.unit;
        for task in left_out {
            let waiting = &snapshot.waiting[task];
            let Some(reason) = faults::too_late(waiting, snapshot, last) else {
                unreachable!("it was left out since it doesn't fit even after all others")
            };
            if !snapshot.skip_bad {
                return Err(PlanError::Task { task, name: waiting.name.clone(), fault: reason });
            }
            problem.refused.push(Refused { task, reason });
        }
        problem.refused.sort_by_key(|refused| refused.task);
        let bound = bounds::lower_bound(&problem, schedule.makespan(&problem));
        Ok(schedule.placed(&problem, snapshot, now, bound))
    }

    fn placed(&self, problem: &Problem, snapshot: &Snapshot, now: Micros, bound: Time) -> Plan {
        let makespan = self.makespan(problem);
        debug_assert!(bound <= makespan, "a bound of {bound} over a makespan of {makespan}");
        let at = |time: Time| seconds(now + time * problem.unit);
        let devices = self.devices(problem, snapshot, now);
        let mut placements: Vec<Option<Placement>> = vec![None; snapshot.waiting.len()];
        for (item, devices) in devices.into_iter().enumerate() {
            let choice = self.mode(problem, item).choice as usize;
            let (start, end) = (at(self.slots[item].start), at(self.end(problem, item)));
            placements[problem.items[item].source] = Some(Placement { choice, devices, start, end });
        }
        let weighted = placements.iter().zip(&snapshot.waiting).map(|(placement, task)| {
            let length = |end| seconds(micros(end).unwrap_or(now) - now);
            placement.as_ref().map_or(0.0, |placement| task.weight * length(placement.end))
        });
        Plan {
            // An empty sum would be -0.
            weighted_completion: weighted.fold(0.0, |sum, term| sum + term),
            placements,
            refused: problem.refused.clone(),
            makespan: seconds(makespan * problem.unit),
            lower_bound: seconds(bound.min(makespan) * problem.unit),
            proven: bound >= makespan,
        }
    }

    /// The numbers of each item's devices. There are always enough: tasks keep their devices, and at no time are more
    /// in use than the node has.
    fn devices(&self, problem: &Problem, snapshot: &Snapshot, now: Micros) -> Vec<Vec<u32>> {
        let sorted = |time: &dyn Fn(usize) -> Time| {
            let mut order: Vec<(Time, usize)> = (0..self.slots.len()).map(|item| (time(item), item)).collect();
            order.sort_unstable();
            order
        };
        let order = sorted(&|item| self.slots[item].start);
        let mut ends = sorted(&|item| self.end(problem, item)).into_iter().peekable();
        let busy = busy(problem, snapshot, now);
        // Few tasks are on few of many nodes.
        let mut pools: Vec<Option<Pool>> = (0..problem.nodes.len()).map(|_| None).collect();
        let mut devices: Vec<Vec<u32>> = vec![Vec::new(); order.len()];
        let mut wishes = Wishes::new(problem, snapshot, &order, now);
        for (start, item) in order {
            while let Some((_, ended)) = ends.next_if(|end| end.0 <= start) {
                if let Some(pool) = &mut pools[self.slots[ended].node] {
                    pool.give_all(&devices[ended]);
                }
            }
            let node = self.slots[item].node;
            let pool = pools[node].get_or_insert_with(|| Pool::new(problem, snapshot, &busy, node));
            pool.advance(start);
            let width = self.mode(problem, item).width as usize;
            devices[item] = pool.take(width, (start, item), self.end(problem, item), &mut wishes);
        }
        devices
    }
}

/// The devices that running tasks hold after now, in increasing order, each with the time until when.
fn busy(problem: &Problem, snapshot: &Snapshot, now: Micros) -> Vec<(u32, Time)> {
    let held = snapshot.running.iter().flat_map(|running| {
        let until = micros(running.until).unwrap_or(now).saturating_sub(now);
        running.devices.iter().filter(move |_| until > 0).map(move |&device| (device, until / problem.unit))
    });
    let mut busy: Vec<(u32, Time)> = held.collect();
    busy.sort_unstable();
    busy
}

/// A node's free devices as time goes by.
struct Pool {
    /// All numbers, in increasing order.
    devices: Vec<u32>,
    /// A bit for each, set while it is free.
    free: Vec<u64>,
    /// No word before this one has a bit set.
    first: usize,
    /// When devices that tasks hold already become free, the last first.
    busy: Vec<(Time, u32)>,
}

impl Pool {
    fn new(problem: &Problem, snapshot: &Snapshot, busy: &[(u32, Time)], node: usize) -> Pool {
        let mut devices = snapshot.cluster.nodes[problem.nodes[node].source].devices.clone();
        devices.sort_unstable();
        let free = vec![0; devices.len().div_ceil(64)];
        let mut pool = Pool { devices, free, first: 0, busy: Vec::new() };
        for index in 0..pool.devices.len() {
            pool.give(index);
        }
        for index in 0..pool.devices.len() {
            let device = pool.devices[index];
            if let Ok(place) = busy.binary_search_by_key(&device, |busy| busy.0) {
                pool.free[index / 64] &= !(1 << (index % 64));
                pool.busy.push((busy[place].1, device));
            }
        }
        pool.busy.sort_unstable_by_key(|&busy| Reverse(busy));
        pool
    }

    /// Frees what running tasks hold no more.
    fn advance(&mut self, time: Time) {
        while let Some((_, device)) = self.busy.pop_if(|busy| busy.0 <= time) {
            self.give_all(&[device]);
        }
    }

    fn give_all(&mut self, devices: &[u32]) {
        let first = self.devices.first().copied().unwrap_or(0);
        for device in devices {
            // Most often numbers have no gaps.
            let guess = (device - first) as usize;
            let index = match self.devices.get(guess) == Some(device) {
                true => guess,
                false => self.devices.partition_point(|other| other < device),
            };
            self.give(index);
        }
    }

    fn give(&mut self, index: usize) {
        self.free[index / 64] |= 1 << (index % 64);
        self.first = self.first.min(index / 64);
    }

    /// The devices that an earlier plan has for this item, if they are free; else those with the lowest numbers, where
    /// possible ones that nobody wants before the item ends.
    fn take(&mut self, width: usize, (start, item): (Time, usize), end: Time, wishes: &mut Wishes) -> Vec<u32> {
        if let Some(wanted) = wishes.of.remove(&item) {
            let indices: Vec<usize> =
                wanted.iter().filter_map(|device| self.devices.binary_search(device).ok()).collect();
            if (wanted.len(), indices.len()) == (width, width)
                && indices.iter().all(|index| self.free[index / 64] >> (index % 64) & 1 == 1)
            {
                indices.iter().for_each(|index| self.free[index / 64] &= !(1 << (index % 64)));
                return wanted;
            }
        }
        if !wishes.of.is_empty() {
            return self.take_unwanted(width, (start, item), end, wishes);
        }
        let mut taken = Vec::with_capacity(width);
        while taken.len() < width && self.first < self.free.len() {
            let word = &mut self.free[self.first];
            while *word != 0 && taken.len() < width {
                taken.push(self.devices[self.first * 64 + word.trailing_zeros() as usize]);
                *word &= *word - 1;
            }
            self.first += usize::from(*word == 0);
        }
        taken
    }

    /// Those that nobody wants before `end`, else those wanted last.
    fn take_unwanted(&mut self, width: usize, turn: (Time, usize), end: Time, wishes: &Wishes) -> Vec<u32> {
        let is_free = |index: &usize| self.free[index / 64] >> (index % 64) & 1 == 1;
        let mut free: Vec<usize> = (0..self.devices.len()).filter(is_free).collect();
        free.sort_by_cached_key(|&index| Reverse(wishes.next_start(self.devices[index], turn).min(end)));
        free.truncate(width);
        free.sort_unstable();
        free.iter().for_each(|index| self.free[index / 64] &= !(1 << (index % 64)));
        free.into_iter().map(|index| self.devices[index]).collect()
    }
}

/// Where an earlier plan has tasks that start at the same time in this one.
struct Wishes {
    /// Of those that have no devices yet.
    of: BTreeMap<usize, Vec<u32>>,
    /// Each device with the starts and items that it is wanted for, in order.
    on: Vec<(u32, Time, usize)>,
}

impl Wishes {
    fn new(problem: &Problem, snapshot: &Snapshot, order: &[(Time, usize)], now: Micros) -> Wishes {
        let mut wishes = Wishes { of: BTreeMap::new(), on: Vec::new() };
        if snapshot.previous.is_empty() {
            return wishes;
        }
        for &(start, item) in order {
            let previous = snapshot.previous.get(problem.items[item].source).and_then(Option::as_ref);
            let time = now + start * problem.unit;
            let Some(previous) =
                previous.filter(|previous| micros(previous.start).is_some_and(|at| at.max(now) == time))
            else {
                continue;
            };
            let mut devices = previous.devices.clone();
            devices.sort_unstable();
            devices.dedup();
            wishes.on.extend(devices.iter().map(|&device| (device, start, item)));
            wishes.of.insert(item, devices);
        }
        wishes.on.sort_unstable();
        wishes
    }

    /// When this device is next wanted, after the turn of this item, which starts then.
    fn next_start(&self, device: u32, turn: (Time, usize)) -> Time {
        let next = self.on.partition_point(|&(other, start, item)| (other, (start, item)) <= (device, turn));
        self.on.get(next).filter(|wish| wish.0 == device).map_or(Time::MAX, |wish| wish.1)
    }
}
