//! The state of a run, and its acts: take signals, plan anew, start what is due.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use alto_sched::{Placement, Running, Scheduler, Task};

use super::clock::{FAR, floor, micros, seconds};
use super::error::FleetError;
use super::event::{Cause, Change, EVENT_VERSION, Event, EventKind, Replan};
use super::planning::{self, Fault, Planned};
use super::queue::Queue;
use super::report::TaskReport;
use super::run::Fleet;
use super::site::{Signal, Site};

/// A task that should have ended is expected to take this share more of the time that it has taken.
const LATE: f64 = 0.1;

/// A task of which less than this share of its time is left moves as if so much were: nobody plans for its last moments.
const LEAST_LEFT: f64 = 0.1;

/// A run of a fleet.
pub(super) struct Course<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) scheduler: &'a dyn Scheduler,
    observe: &'a mut dyn FnMut(&Event),
    turn: u64,
    /// Whether an event of this turn has been told.
    told: bool,
    pub(super) now: f64,
    queue: Queue,
    /// By number.
    running: BTreeMap<usize, Active>,
    /// By device, who has it.
    holder: BTreeMap<u32, usize>,
    /// Why the plan holds no longer.
    causes: Vec<Cause>,
    pub(super) tasks: Vec<TaskReport>,
    pub(super) replans: u64,
    pub(super) planning: Duration,
}

/// A task that runs.
struct Active {
    name: String,
    placement: Placement,
    /// When it ends by what is known.
    expected: f64,
    /// When it ends by the plan.
    planned: f64,
}

impl<'a> Course<'a> {
    pub(super) fn new(
        fleet: &'a Fleet,
        scheduler: &'a dyn Scheduler,
        observe: &'a mut dyn FnMut(&Event),
    ) -> Result<Self, FleetError> {
        fleet.check()?;
        let queue = Queue::new(fleet.cluster.clone(), fleet.overtaking);
        Ok(Self {
            fleet,
            scheduler,
            observe,
            turn: 0,
            told: false,
            now: 0.0,
            queue,
            running: BTreeMap::new(),
            holder: BTreeMap::new(),
            causes: vec![],
            tasks: vec![],
            replans: 0,
            planning: Duration::ZERO,
        })
    }

    /// Whether the plan holds.
    pub(super) fn is_settled(&self) -> bool {
        self.causes.is_empty()
    }

    /// When the next task is to start.
    pub(super) fn next_start(&self) -> Option<f64> {
        self.queue.next_start()
    }

    /// Takes what the site has told by now.
    pub(super) fn take(&mut self, now: f64, signals: Vec<Signal>) -> Result<(), FleetError> {
        self.told = false;
        self.now = floor(now).max(self.now);
        for signal in signals {
            match signal {
                Signal::Arrived { task, profile_seconds } => self.arrive(task, profile_seconds)?,
                Signal::Refused { name, error } => {
                    let task = self.enlist(&name, 0.0);
                    self.refuse(task, error.clone(), || FleetError::Refused { task, name, error })?;
                }
                Signal::Expected { task, end } => self.expect(task, end)?,
                Signal::Ended { task, error } => self.end(task, error)?,
            }
        }
        Ok(())
    }

    fn arrive(&mut self, needs: Task, profile_seconds: f64) -> Result<(), FleetError> {
        // What is no time is in no file that could be read again, nor in a sum.
        let profile_seconds = if profile_seconds.is_finite() { profile_seconds.max(0.0) } else { 0.0 };
        let task = self.enlist(&needs.name, profile_seconds);
        if let Err(fault) = needs.check(&self.fleet.cluster) {
            let name = needs.name;
            return self.refuse(task, fault.to_string(), || FleetError::Task { task, name, fault });
        }
        self.emit(EventKind::Arrived { task, needs: needs.clone(), profile_seconds });
        self.queue.join(task, needs, self.now);
        self.causes.push(Cause::Arrived { task });
        Ok(())
    }

    /// Gives a task its number.
    fn enlist(&mut self, name: &str, profile_seconds: f64) -> usize {
        self.tasks.push(TaskReport::new(name, self.now, profile_seconds));
        self.tasks.len() - 1
    }

    fn refuse(&mut self, task: usize, why: String, error: impl FnOnce() -> FleetError) -> Result<(), FleetError> {
        let report = &mut self.tasks[task];
        report.failure = Some(why.clone());
        let name = report.name.clone();
        self.emit(EventKind::Refused { task, name, error: why });
        if self.fleet.skip_bad { Ok(()) } else { Err(error()) }
    }

    fn expect(&mut self, task: usize, end: f64) -> Result<(), FleetError> {
        let now = self.now;
        // Somebody's first guess at a rate may be far off, and is no reason to plan with it.
        let end = if end.is_finite() { floor(end.clamp(now, now + FAR)) } else { return Ok(()) };
        let active = self.running.get_mut(&task);
        let Some(active) = active else { return Err(self.not_running(task)) };
        active.expected = end;
        let (from, start) = (active.planned, active.placement.start);
        let left = (from - now).max(LEAST_LEFT * (from - start));
        self.emit(EventKind::Expected { task, end });
        if (end - from).abs() > self.fleet.threshold * left {
            self.causes.push(Cause::Moved { task, from, to: end });
        }
        Ok(())
    }

    fn end(&mut self, task: usize, error: Option<String>) -> Result<(), FleetError> {
        let Some(active) = self.running.remove(&task) else { return Err(self.not_running(task)) };
        for device in &active.placement.devices {
            self.holder.remove(device);
        }
        let report = &mut self.tasks[task];
        report.ended = Some(self.now);
        report.failure = error.clone();
        self.emit(match error {
            None => EventKind::Ended { task },
            Some(error) => EventKind::Failed { task, error },
        });
        self.causes.push(Cause::Ended { task });
        Ok(())
    }

    fn not_running(&self, task: usize) -> FleetError {
        FleetError::NotRunning { task, running: self.running.len() }
    }

    /// Plans all that wait anew, if there is a reason to.
    pub(super) fn replan(&mut self) -> Result<(), FleetError> {
        let causes = std::mem::take(&mut self.causes);
        if causes.is_empty() {
            return Ok(());
        }
        self.running.values_mut().for_each(|active| active.planned = active.expected);
        let before = self.queue.makespan(self.now);
        let Some(planned) = self.plan()? else { return Ok(()) };
        let Planned { placements, makespan: after, lower_bound } = planned;
        let mut changes = vec![];
        for (place, to) in placements.into_iter().enumerate() {
            let task = self.queue.task(place);
            let slot = &mut self.queue.snapshot().previous[place];
            if slot.as_ref() != Some(&to) {
                changes.push(Change { task, from: slot.replace(to.clone()), to });
            }
        }
        self.replans += 1;
        self.emit(EventKind::Replanned(Replan { causes, changes, before, after, lower_bound }));
        Ok(())
    }

    /// The plan for all that wait, without those that nobody can plan; `None` if nobody is left.
    fn plan(&mut self) -> Result<Option<Planned>, FleetError> {
        let began = Instant::now();
        let running = self.running.values().map(|active| Running {
            name: active.name.clone(),
            devices: active.placement.devices.clone(),
            until: active.expected,
        });
        let snapshot = self.queue.snapshot();
        (snapshot.now, snapshot.running) = (self.now, running.collect());
        let planned = loop {
            if self.queue.len() == 0 {
                break None;
            }
            let free = self.queue.free();
            match planning::plan(self.scheduler, self.queue.snapshot(), free) {
                Ok(planned) => break Some(planned),
                Err(Fault::Broken(source)) => {
                    return Err(FleetError::BrokenPlan { scheduler: format!("{:?}", self.scheduler), source });
                }
                // One that isn't there would be the scheduler's fault.
                Err(Fault::Plan { first, error }) => {
                    match planning::culprit(&error).map(|place| first.saturating_add(place)) {
                        Some(place) if place < self.queue.len() => {
                            let task = self.queue.leave(place).task;
                            let error = planning::renumbered(error, task);
                            self.refuse(task, error.to_string(), || error.into())?;
                        }
                        _ => return Err(error.into()),
                    }
                }
            }
        };
        self.planning += began.elapsed();
        Ok(planned)
    }

    /// Starts the tasks whose start has come, those that came first before the others, until one of them is a reason to
    /// plan anew.
    pub(super) fn start_due(&mut self, site: &mut dyn Site) {
        let mut place = 0;
        // Those behind one that may be overtaken no more are planned to start after it.
        let mut free = self.queue.free();
        while place < free {
            match self.queue.planned(place).filter(|placement| placement.start <= self.now).cloned() {
                // Nobody starts any more by a plan that has turned out wrong: somebody who came earlier may get the place.
                Some(placement) if self.are_free(&placement.devices) && self.is_settled() => {
                    let is_last_free = place + 1 == free && free < self.queue.len();
                    if self.start(place, placement, site, is_last_free) {
                        return;
                    }
                    free -= 1;
                }
                _ => place += 1,
            }
        }
    }

    /// Whether all of these are free. If not, whoever has them keeps them longer than the plan says: a reason to plan anew.
    fn are_free(&mut self, devices: &[u32]) -> bool {
        let mut free = true;
        for holder in devices.iter().filter_map(|device| self.holder.get(device)) {
            free = false;
            let Some(active) = self.running.get_mut(holder) else { continue };
            if active.expected <= self.now {
                let more = (LATE * (self.now - active.placement.start)).max(1e-3);
                active.expected = floor(self.now + more);
            }
            let cause = Cause::Moved { task: *holder, from: active.planned, to: active.expected };
            if !self.causes.contains(&cause) {
                self.causes.push(cause);
            }
        }
        free
    }

    /// Starts the task at this place of the queue. Whether that is a reason to plan anew.
    fn start(&mut self, place: usize, planned: Placement, site: &mut dyn Site, is_last_free: bool) -> bool {
        let left = self.queue.leave(place);
        let task = left.task;
        let length = micros(planned.end) - micros(planned.start);
        let placement = Placement { start: self.now, end: seconds(micros(self.now) + length), ..planned };
        for &device in &placement.devices {
            self.holder.insert(device, task);
        }
        self.tasks[task].start(&placement, left.overtaken);
        self.emit(EventKind::Started { task, placement: placement.clone() });
        site.start(task, &placement);
        let end = placement.end;
        self.running.insert(task, Active { name: left.name, placement, expected: end, planned: end });
        let held = self.queue.overtake(place);
        self.causes.extend(held.into_iter().map(|task| Cause::Held { task }));
        if is_last_free {
            self.causes.push(Cause::Passed { task });
        }
        self.causes.iter().any(|cause| matches!(cause, Cause::Held { .. } | Cause::Passed { .. }))
    }

    /// The error that tasks run or wait, if any do.
    pub(super) fn unfinished(&self) -> Option<FleetError> {
        let (running, waiting) = (self.running.len(), self.queue.len());
        let first_running = self.running.keys().next().copied();
        let first = first_running.or_else(|| (waiting > 0).then(|| self.queue.task(0)));
        first.map(|task| FleetError::Silent { task, running, waiting })
    }

    fn emit(&mut self, kind: EventKind) {
        self.turn += u64::from(!self.told);
        self.told = true;
        let event = Event { version: EVENT_VERSION, turn: self.turn, seconds: self.now, kind };
        event.trace();
        (self.observe)(&event);
    }
}
