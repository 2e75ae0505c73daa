//! Whether a plan can be carried out, found out from the snapshot alone.

use super::devices::Devices;
use super::error::PlanError;
use super::faults;
use super::plan::{Placement, Plan};
use super::snapshot::Snapshot;
use super::time::{self, Micros, micros, seconds};

impl Plan {
    /// Checks that this plan can be carried out from this snapshot, and that its numbers are right.
    ///
    /// It trusts nothing: it shares no code with the schedulers and recomputes every number from the snapshot, but
    /// for the lower bound, of which it only checks that the plan's own makespan isn't under it.
    ///
    /// # Errors
    /// The first thing found that is wrong, with the task.
    pub fn check(&self, snapshot: &Snapshot) -> Result<(), CheckError> {
        let devices = Devices::new(&snapshot.cluster)?;
        let running = devices.held(&snapshot.running)?;
        let Some(now) = micros(snapshot.now) else { return Err(PlanError::BadNow { now: snapshot.now }.into()) };
        self.check_refused(snapshot)?;
        // Which device is held from when to when, and by whom.
        let mut held: Vec<(u32, Micros, Micros, Holder)> = running
            .map(|held| {
                let until = micros(snapshot.running[held.running].until).unwrap_or(now).max(now);
                (held.device, now, until, Holder::Running(held.running))
            })
            .collect();
        let (mut makespan, mut weighted) = (0, 0.0);
        for (task, placement) in self.placements.iter().enumerate() {
            let Some(placement) = placement else { continue };
            let (start, end) = check_placement(task, placement, snapshot, now, &devices)?;
            held.extend(placement.devices.iter().map(|&device| (device, start, end, Holder::Waiting(task))));
            makespan = makespan.max(end - now);
            weighted += snapshot.waiting[task].weight * seconds(end - now);
        }
        held.sort_unstable();
        let overlap = held.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[1].1 < pair[0].2);
        if let Some(&[(device, .., first), (.., second)]) = overlap {
            return Err(CheckError::Overlap { device, first, second });
        }
        self.check_numbers(makespan, weighted)
    }

    /// Checks that each task is either placed or refused, the latter with good reason.
    fn check_refused(&self, snapshot: &Snapshot) -> Result<(), CheckError> {
        let (found, expected) = (self.placements.len(), snapshot.waiting.len());
        if found != expected {
            return Err(CheckError::Count { found, expected });
        }
        let last = self.placements.iter().flatten().filter_map(|placement| micros(placement.end)).max().unwrap_or(0);
        let mut refused = self.refused.iter().peekable();
        let nodes = faults::distinct(&snapshot.cluster);
        for (task, placement) in self.placements.iter().enumerate() {
            let waiting = &snapshot.waiting[task];
            let too_late = || if placement.is_none() { faults::too_late(waiting, snapshot, last) } else { None };
            let fault = faults::of_task(waiting, &nodes).or_else(too_late);
            let reason = refused.next_if(|refused| refused.task == task).map(|refused| &refused.reason);
            if placement.is_some() == reason.is_some()
                || reason != fault.as_ref()
                || fault.is_some() && !snapshot.skip_bad
            {
                return Err(CheckError::Refused { task });
            }
        }
        match refused.next() {
            Some(extra) => Err(CheckError::Refused { task: extra.task }),
            None => Ok(()),
        }
    }

    /// Checks what the plan says of itself.
    fn check_numbers(&self, makespan: Micros, weighted: f64) -> Result<(), CheckError> {
        if micros(self.makespan) != Some(makespan) {
            return Err(CheckError::Makespan { claimed: self.makespan, found: seconds(makespan) });
        }
        // The same sum in the same order; NaN is never close.
        let close = (self.weighted_completion - weighted).abs() <= 1e-9 * weighted.abs();
        if !close {
            return Err(CheckError::WeightedCompletion { claimed: self.weighted_completion, found: weighted });
        }
        let bound = micros(self.lower_bound);
        if bound.is_none_or(|bound| bound > makespan || self.proven != (bound == makespan)) {
            let Plan { lower_bound, proven, .. } = *self;
            return Err(CheckError::Bound { lower_bound, proven, makespan: seconds(makespan) });
        }
        Ok(())
    }
}

/// Checks one placement apart from the others, and gives its start and end.
fn check_placement(
    task: usize,
    placement: &Placement,
    snapshot: &Snapshot,
    now: Micros,
    all: &Devices,
) -> Result<(Micros, Micros), CheckError> {
    let waiting = &snapshot.waiting[task];
    let Placement { choice, devices, start, end } = placement;
    let Some(option) = waiting.options.get(*choice) else {
        return Err(CheckError::Option { task, choice: *choice, options: waiting.options.len() });
    };
    if devices.len() != option.width as usize {
        return Err(CheckError::Width { task, found: devices.len(), expected: option.width });
    }
    if let Some(pair) = devices.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(CheckError::Order { task, device: pair[1] });
    }
    let mut home = None;
    for &device in devices {
        let Some(node) = all.node(device) else { return Err(CheckError::UnknownDevice { task, device }) };
        if !faults::suits(option, &snapshot.cluster.nodes[node]) {
            return Err(CheckError::Unsuitable { task, device });
        }
        let first = *home.get_or_insert(node);
        if first != node {
            return Err(CheckError::Apart { task, first, second: node });
        }
    }
    let (Some(from), Some(to)) = (micros(*start), micros(*end)) else {
        return Err(CheckError::Time { task, start: *start, end: *end });
    };
    let earliest = now.max(micros(waiting.release).unwrap_or(Micros::MAX));
    if from < earliest {
        return Err(CheckError::Early { task, start: *start, earliest: seconds(earliest) });
    }
    let expected = time::duration(option.duration);
    if to.checked_sub(from) != expected {
        return Err(CheckError::Duration { task, found: end - start, expected: option.duration });
    }
    Ok((from, to))
}

/// Who holds a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// A task that runs already, by its index in `running`.
    Running(usize),
    /// A task of the plan, by its index in `waiting`.
    Waiting(usize),
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Holder::Running(index) => write!(f, "running task {index}"),
            Holder::Waiting(index) => write!(f, "task {index}"),
        }
    }
}

/// What is wrong with a plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// No plan could be right for this snapshot.
    #[error("the snapshot makes no sense")]
    Snapshot {
        /// Why.
        #[from]
        source: PlanError,
    },
    /// A plan for another number of tasks.
    #[error("the plan has {found} placements for {expected} waiting tasks")]
    Count {
        /// How many there are.
        found: usize,
        /// How many tasks wait.
        expected: usize,
    },
    /// A task that is neither placed nor refused, or both, or refused for a reason that isn't so.
    #[error("task {task} is not either placed or refused with good reason")]
    Refused {
        /// Its index.
        task: usize,
    },
    /// An option that the task hasn't.
    #[error("task {task} runs by option {choice}, but it has {options} options")]
    Option {
        /// Its index.
        task: usize,
        /// The option.
        choice: usize,
        /// How many there are.
        options: usize,
    },
    /// Too many or too few devices.
    #[error("task {task} has {found} devices, its option takes {expected}")]
    Width {
        /// Its index.
        task: usize,
        /// Devices that it has.
        found: usize,
        /// Devices that it takes.
        expected: u32,
    },
    /// A device that is listed twice or not in increasing order.
    #[error("task {task} lists device {device} twice or not in increasing order")]
    Order {
        /// Its index.
        task: usize,
        /// The device's number.
        device: u32,
    },
    /// A device that isn't in the cluster.
    #[error("task {task} is on device {device}, which no node of the cluster has")]
    UnknownDevice {
        /// Its index.
        task: usize,
        /// The device's number.
        device: u32,
    },
    /// A device of another kind, or with too little memory.
    #[error("task {task} is on device {device}, which is of another kind or has too little memory")]
    Unsuitable {
        /// Its index.
        task: usize,
        /// The device's number.
        device: u32,
    },
    /// Devices on two nodes.
    #[error("task {task} is on node {first} and node {second}")]
    Apart {
        /// Its index.
        task: usize,
        /// A node.
        first: usize,
        /// Another node.
        second: usize,
    },
    /// A start or an end that is no time.
    #[error("task {task} runs from {start} to {end} s, which are no times")]
    Time {
        /// Its index.
        task: usize,
        /// Its start.
        start: f64,
        /// Its end.
        end: f64,
    },
    /// A start before now or before the release.
    #[error("task {task} starts at {start} s, but can't before {earliest} s")]
    Early {
        /// Its index.
        task: usize,
        /// Its start.
        start: f64,
        /// The earliest that it may.
        earliest: f64,
    },
    /// An end that doesn't follow from the start.
    #[error("task {task} runs for {found} s, its option takes {expected} s")]
    Duration {
        /// Its index.
        task: usize,
        /// Seconds from start to end.
        found: f64,
        /// Seconds that its option takes.
        expected: f64,
    },
    /// Two tasks on one device at one time.
    #[error("{first} and {second} are on device {device} at the same time")]
    Overlap {
        /// The device's number.
        device: u32,
        /// The one that starts first.
        first: Holder,
        /// The other.
        second: Holder,
    },
    /// A makespan that isn't the end of the last placement.
    #[error("the plan says that its makespan is {claimed} s, but it is {found} s")]
    Makespan {
        /// What the plan says.
        claimed: f64,
        /// What it is.
        found: f64,
    },
    /// A weighted completion time that isn't the sum over the placements.
    #[error("the plan says that its weighted completion time is {claimed}, but it is {found}")]
    WeightedCompletion {
        /// What the plan says.
        claimed: f64,
        /// What it is.
        found: f64,
    },
    /// A lower bound over the makespan, or a proof that isn't one.
    #[error("a lower bound of {lower_bound} s (proven: {proven}) doesn't go with a makespan of {makespan} s")]
    Bound {
        /// What the plan says.
        lower_bound: f64,
        /// Whether it says that its makespan is the least.
        proven: bool,
        /// Its makespan.
        makespan: f64,
    },
}
