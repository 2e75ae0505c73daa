//! The state of a run, and its acts: take signals, plan anew, start what is due.

use std::time::{Duration, Instant};

use alto_sched::{Placement, Scheduler, Task};

use super::clock::{FAR, floor, micros, seconds};
use super::error::FleetError;
use super::event::{Cause, Change, EVENT_VERSION, Event, EventKind, Replan};
use super::former::Former;
use super::ledger::Ledger;
use super::planning::{self, Fault, Planned};
use super::queue::{Left, Queue};
use super::roster::{Roster, Times};
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
    roster: Roster,
    former: Former,
    /// Why the plan holds no longer.
    causes: Vec<Cause>,
    pub(super) ledger: Ledger,
    pub(super) planning: Duration,
}

impl<'a> Course<'a> {
    pub(super) fn new(
        fleet: &'a Fleet,
        scheduler: &'a dyn Scheduler,
        observe: &'a mut dyn FnMut(&Event),
    ) -> Result<Self, FleetError> {
        fleet.check()?;
        let queue = Queue::new(fleet);
        Ok(Self {
            fleet,
            scheduler,
            observe,
            turn: 0,
            told: false,
            now: 0.0,
            queue,
            roster: Roster::default(),
            former: Former::new(&fleet.cluster),
            causes: vec![],
            ledger: Ledger::default(),
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
                    let task = self.ledger.tasks.len();
                    self.refuse(task, name.clone(), error.clone(), || FleetError::Refused { task, name, error })?;
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
        let task = self.ledger.tasks.len();
        if let Err(fault) = needs.check(&self.fleet.cluster) {
            let name = needs.name;
            return self.refuse(task, name.clone(), fault.to_string(), || FleetError::Task { task, name, fault });
        }
        self.emit(EventKind::Arrived { task, needs: needs.clone(), profile_seconds })?;
        self.queue.join(task, needs, self.now);
        self.causes.push(Cause::Arrived { task });
        Ok(())
    }

    fn refuse(
        &mut self,
        task: usize,
        name: String,
        why: String,
        error: impl FnOnce() -> FleetError,
    ) -> Result<(), FleetError> {
        self.emit(EventKind::Refused { task, name, error: why })?;
        if self.fleet.skip_bad { Ok(()) } else { Err(error()) }
    }

    fn expect(&mut self, task: usize, end: f64) -> Result<(), FleetError> {
        let now = self.now;
        // Somebody's first guess at a rate may be far off, and is no reason to plan with it.
        let end = if end.is_finite() { floor(end.clamp(now, now + FAR)) } else { return Ok(()) };
        let Some((expected, times)) = self.roster.times(task) else { return Err(self.not_running(task)) };
        *expected = end;
        let (from, started) = (times.planned, times.started);
        let left = (from - now).max(LEAST_LEFT * (from - started));
        self.emit(EventKind::Expected { task, end })?;
        if (end - from).abs() > self.fleet.threshold * left {
            self.causes.push(Cause::Moved { task, from, to: end });
        }
        Ok(())
    }

    fn end(&mut self, task: usize, error: Option<String>) -> Result<(), FleetError> {
        if !self.roster.end(task) {
            return Err(self.not_running(task));
        }
        self.emit(match error {
            None => EventKind::Ended { task },
            Some(error) => EventKind::Failed { task, error },
        })?;
        self.causes.push(Cause::Ended { task });
        Ok(())
    }

    fn not_running(&self, task: usize) -> FleetError {
        FleetError::NotRunning { task, running: self.roster.len() }
    }

    /// Plans what waits anew, if there is a reason to.
    pub(super) fn replan(&mut self) -> Result<(), FleetError> {
        let causes = std::mem::take(&mut self.causes);
        if causes.is_empty() {
            return Ok(());
        }
        self.roster.settle();
        let Some((before, planned)) = self.plan()? else { return Ok(()) };
        let Planned { placements, makespan: after, lower_bound } = planned;
        let mut changes = vec![];
        for (place, to) in placements.into_iter().enumerate() {
            let task = self.queue.task(place);
            let slot = &mut self.queue.snapshot().previous[place];
            if slot.as_ref() != Some(&to) {
                changes.push(Change { task, from: slot.replace(to.clone()), to });
            }
        }
        self.emit(EventKind::Replanned(Replan { causes, changes, before, after, lower_bound }))
    }

    /// The plan for those that wait, as many as a plan may hold, without those that nobody can plan, and what would
    /// become of the former one; `None` if nobody is left.
    fn plan(&mut self) -> Result<Option<(f64, Planned)>, FleetError> {
        let began = Instant::now();
        let snapshot = self.queue.snapshot();
        (snapshot.now, snapshot.running) = (self.now, std::mem::take(self.roster.running()));
        let planned = loop {
            self.queue.advance();
            if self.queue.len() == 0 {
                break None;
            }
            let free = self.queue.free();
            match planning::plan(self.scheduler, self.queue.snapshot(), free) {
                Ok(planned) => break Some((self.former.makespan(self.queue.snapshot()), planned)),
                Err(Fault::Broken(source)) => {
                    return Err(FleetError::BrokenPlan { scheduler: format!("{:?}", self.scheduler), source });
                }
                // One that isn't there would be the scheduler's fault.
                Err(Fault::Plan { first, error }) => {
                    match planning::culprit(&error).map(|place| first.saturating_add(place)) {
                        Some(place) if place < self.queue.len() => {
                            let Left { task, name, .. } = self.queue.leave(place);
                            let error = planning::renumbered(error, task);
                            self.refuse(task, name, error.to_string(), || error.into())?;
                        }
                        _ => return Err(error.into()),
                    }
                }
            }
        };
        *self.roster.running() = std::mem::take(&mut self.queue.snapshot().running);
        self.planning += began.elapsed();
        Ok(planned)
    }

    /// Starts the tasks whose start has come, those that came first before the others, until one of them is a reason to
    /// plan anew.
    pub(super) fn start_due(&mut self, site: &mut dyn Site) -> Result<(), FleetError> {
        let mut place = 0;
        // Those behind one that may be overtaken no more are planned to start after it.
        let mut free = self.queue.free();
        while place < free {
            match self.queue.planned(place).filter(|placement| placement.start <= self.now).cloned() {
                // Nobody starts any more by a plan that has turned out wrong: somebody who came earlier may get the place.
                Some(placement) if self.are_free(&placement.devices) && self.is_settled() => {
                    let is_last_free = place + 1 == free && free < self.queue.len();
                    if self.start(place, placement, site, is_last_free)? {
                        break;
                    }
                    free -= 1;
                }
                _ => place += 1,
            }
        }
        Ok(())
    }

    /// Whether all of these are free. If not, whoever has them keeps them longer than the plan says: a reason to plan anew.
    fn are_free(&mut self, devices: &[u32]) -> bool {
        let holders = self.roster.holders(devices);
        for &task in &holders {
            let Some((expected, Times { started, planned })) = self.roster.times(task) else { continue };
            if *expected <= self.now {
                let more = (LATE * (self.now - started)).max(1e-3);
                *expected = floor(self.now + more);
            }
            let cause = Cause::Moved { task, from: planned, to: *expected };
            if !self.causes.contains(&cause) {
                self.causes.push(cause);
            }
        }
        holders.is_empty()
    }

    /// Starts the task at this place of the queue. Whether that is a reason to plan anew.
    fn start(
        &mut self,
        place: usize,
        planned: Placement,
        site: &mut dyn Site,
        is_last_free: bool,
    ) -> Result<bool, FleetError> {
        let left = self.queue.leave(place);
        let task = left.task;
        let length = micros(planned.end) - micros(planned.start);
        let placement = Placement { start: self.now, end: seconds(micros(self.now) + length), ..planned };
        self.roster.start(task, left.name, &placement);
        self.emit(EventKind::Started { task, placement: placement.clone(), overtaken: left.overtaken })?;
        site.start(task, &placement);
        let held = self.queue.overtake(place);
        self.causes.extend(held.into_iter().map(|task| Cause::Held { task }));
        if is_last_free {
            self.causes.push(Cause::Passed { task });
        }
        if self.queue.is_short() {
            self.causes.push(Cause::Few { left: self.queue.len() });
        }
        let is_reason = |cause: &Cause| matches!(cause, Cause::Held { .. } | Cause::Passed { .. } | Cause::Few { .. });
        Ok(self.causes.iter().any(is_reason))
    }

    /// The error that tasks run or wait, if any do.
    pub(super) fn unfinished(&self) -> Option<FleetError> {
        let (running, waiting) = (self.roster.len(), self.queue.waiting());
        // Somebody is planned if anybody waits.
        let first = self.roster.first().or_else(|| (waiting > 0).then(|| self.queue.task(0)));
        first.map(|task| FleetError::Silent { task, running, waiting })
    }

    fn emit(&mut self, kind: EventKind) -> Result<(), FleetError> {
        self.turn += u64::from(!self.told);
        self.told = true;
        let event = Event { version: EVENT_VERSION, turn: self.turn, seconds: self.now, kind };
        event.trace();
        self.ledger.note(&event)?;
        (self.observe)(&event);
        Ok(())
    }
}
