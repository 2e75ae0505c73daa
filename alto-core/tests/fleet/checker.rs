//! Whether a run kept its promises, recomputed the slow way from its log alone.

use std::collections::{BTreeMap, BTreeSet};

use alto_core::fleet::{Cause, Event, EventKind, Fleet, Replan, Report};
use alto_sched::{Cluster, Placement, Task};

/// What a scheduler promises beside a plan that can be carried out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Promise {
    None,
    /// Nobody starts before one that came earlier.
    InOrder,
    /// No released task waits while some node has the devices for it; of tasks of one option that any device suits.
    Busy,
}

#[derive(Debug, Clone)]
struct Waiting {
    needs: Task,
    since: f64,
    overtaken: u32,
    place: Option<Placement>,
}

#[derive(Debug, Clone)]
struct Active {
    placement: Placement,
    since: f64,
    expected: f64,
}

/// What is known of one task in the end.
#[derive(Debug, Clone, Default, PartialEq)]
struct Fate {
    arrived: f64,
    started: Option<f64>,
    ended: Option<f64>,
    devices: Vec<u32>,
    overtaken: u32,
    failure: Option<String>,
}

struct Checker<'a> {
    fleet: &'a Fleet,
    promise: Promise,
    /// Whether a start is at its planned time; else it may be later.
    exact: bool,
    now: f64,
    waiting: BTreeMap<usize, Waiting>,
    running: BTreeMap<usize, Active>,
    /// Who waits and is in the plan.
    planned: BTreeSet<usize>,
    fates: Vec<Fate>,
    replans: u64,
    /// Whether this turn has decided something, after which it is told nothing more.
    decides: bool,
    /// What this turn has been told.
    told: Vec<Cause>,
}

/// Panics with the first promise that the log breaks.
pub(crate) fn check(fleet: &Fleet, promise: Promise, exact: bool, events: &[Event], report: &Report) {
    let mut checker = Checker {
        fleet,
        promise,
        exact,
        now: 0.0,
        waiting: BTreeMap::new(),
        running: BTreeMap::new(),
        planned: BTreeSet::new(),
        fates: vec![],
        replans: 0,
        decides: false,
        told: vec![],
    };
    let turns: Vec<&[Event]> = events.chunk_by(|a, b| a.turn == b.turn).collect();
    for (turn, events) in (1..).zip(turns) {
        assert!(events.iter().all(|event| event.turn == turn && event.seconds == events[0].seconds), "{events:?}");
        assert!(events[0].seconds >= checker.now && on_grid(events[0].seconds), "{events:?} after {}", checker.now);
        checker.now = events[0].seconds;
        checker.decides = false;
        checker.told.clear();
        events.iter().for_each(|event| checker.take(event));
        checker.end_turn();
    }
    let Checker { waiting, running, .. } = &checker;
    assert!(waiting.is_empty() && running.is_empty(), "left over: {waiting:?} {running:?}");
    checker.check_report(report);
}

fn on_grid(seconds: f64) -> bool {
    (seconds * 1e6).round() / 1e6 == seconds
}

fn micros(seconds: f64) -> i64 {
    (seconds * 1e6).round() as i64
}

impl Checker<'_> {
    fn take(&mut self, event: &Event) {
        let now = self.now;
        let is_signal = match &event.kind {
            EventKind::Replanned(_) | EventKind::Started { .. } => false,
            EventKind::Refused { task, .. } => *task == self.fates.len(),
            _ => true,
        };
        assert!(!is_signal || !self.decides, "{event:?} is told after something was decided");
        self.decides |= !is_signal;
        match &event.kind {
            EventKind::Arrived { task, needs, .. } => {
                assert_eq!(*task, self.fates.len());
                self.fates.push(Fate { arrived: now, ..Fate::default() });
                let since = needs.release.max(now);
                self.waiting.insert(*task, Waiting { needs: needs.clone(), since, overtaken: 0, place: None });
                self.told.push(Cause::Arrived { task: *task });
            }
            EventKind::Refused { task, error, .. } => {
                if *task == self.fates.len() {
                    self.fates.push(Fate { arrived: now, ..Fate::default() });
                } else {
                    assert!(self.waiting.remove(task).is_some(), "{event:?}");
                    self.planned.remove(task);
                }
                self.fates[*task].failure = Some(error.clone());
            }
            EventKind::Expected { task, end } => {
                assert!(*end >= now && on_grid(*end), "{event:?}");
                self.running.get_mut(task).expect("a task that runs").expected = *end;
                self.told.push(Cause::Moved { task: *task, from: 0.0, to: *end });
            }
            EventKind::Ended { task } => self.end(*task, None),
            EventKind::Failed { task, error } => self.end(*task, Some(error.clone())),
            EventKind::Replanned(replan) => self.replan(replan),
            EventKind::Started { task, placement, .. } => self.start(*task, placement),
            _ => panic!("unknown: {event:?}"),
        }
    }

    fn end(&mut self, task: usize, failure: Option<String>) {
        assert!(self.running.remove(&task).is_some(), "task {task} ends, but doesn't run");
        let fate = &mut self.fates[task];
        (fate.ended, fate.failure) = (Some(self.now), failure);
        self.told.push(Cause::Ended { task });
    }

    fn replan(&mut self, replan: &Replan) {
        self.replans += 1;
        let now = self.now;
        for cause in &replan.causes {
            match cause {
                Cause::Moved { task, to, .. } => {
                    // It ended in this very turn, or it may have been late and nobody but the fleet has said so.
                    if let Some(active) = self.running.get_mut(task) {
                        let told = self.told.contains(&Cause::Moved { task: *task, from: 0.0, to: *to });
                        let is_late = active.expected <= now && *to > now;
                        assert!(told || is_late || *to == active.expected, "{cause:?} {active:?}");
                        active.expected = if is_late && !told { *to } else { active.expected };
                    }
                }
                Cause::Held { task } => {
                    let held = self.fleet.overtaking == Some(self.waiting[task].overtaken);
                    assert!(held, "{cause:?}: {:?}", self.waiting[task]);
                }
                Cause::Passed { task } => assert_eq!(self.fates[*task].started, Some(now), "{cause:?}"),
                Cause::Few { left } => {
                    assert_eq!(*left, self.planned.len(), "{cause:?} at {now}");
                    assert!(self.is_short(), "{cause:?} at {now}");
                }
                told => assert!(self.told.contains(told), "{told:?} at {now}"),
            }
        }
        assert!(!replan.causes.is_empty(), "{replan:?}");
        self.planned = self.first_in_line();
        for (_, waiting) in self.waiting.iter_mut().filter(|(task, _)| !self.planned.contains(task)) {
            waiting.place = None;
        }
        let last = |checker: &Self| {
            let ends = checker.planned.iter().filter_map(|task| Some(checker.waiting[task].place.as_ref()?.end));
            ends.fold(now, f64::max) - now
        };
        let before = self.kept();
        assert!((replan.before - before).abs() < 1e-6, "{replan:?}, found {before}");
        for change in &replan.changes {
            assert!(self.planned.contains(&change.task), "{change:?} of {:?}", self.planned);
            let task = self.waiting.get_mut(&change.task).expect("a task that waits");
            assert!(change.from == task.place && change.from.as_ref() != Some(&change.to), "{change:?} from {task:?}");
            task.place = Some(change.to.clone());
        }
        assert!((replan.after - last(self)).abs() < 1e-6, "{replan:?}, found {}", last(self));
        assert!(replan.lower_bound <= replan.after, "{replan:?}");
        self.check_plan();
    }

    /// Those that a plan holds: the first that came or were released.
    fn first_in_line(&self) -> BTreeSet<usize> {
        let mut line: Vec<(&usize, &Waiting)> = self.waiting.iter().collect();
        line.sort_by(|a, b| (a.1.since, a.0).partial_cmp(&(b.1.since, b.0)).expect("times"));
        line.into_iter().map(|(&task, _)| task).take(self.fleet.planned.unwrap_or(usize::MAX)).collect()
    }

    /// Whether the plan holds less than half of what it may, though others wait.
    fn is_short(&self) -> bool {
        let may = self.fleet.planned.unwrap_or(0);
        2 * self.planned.len() < may && self.planned.len() < self.waiting.len()
    }

    /// Seconds from now to the last end, were the former plan kept, and who isn't in it behind all others.
    fn kept(&self) -> f64 {
        let now = micros(self.now);
        let devices = self.fleet.cluster.nodes.iter().flat_map(|node| &node.devices);
        let mut free: BTreeMap<u32, i64> = devices.map(|&device| (device, now)).collect();
        for active in self.running.values() {
            free.extend(active.placement.devices.iter().map(|&device| (device, now.max(micros(active.expected)))));
        }
        let start = |task: &Waiting| task.place.as_ref().map_or(i64::MAX, |place| micros(place.start));
        let mut waiting: Vec<(&usize, &Waiting)> =
            self.waiting.iter().filter(|(task, _)| self.planned.contains(task)).collect();
        waiting.sort_by(|a, b| (start(a.1), a.1.since, a.0).partial_cmp(&(start(b.1), b.1.since, b.0)).expect("times"));
        let mut last = now;
        for (_, Waiting { needs, place, .. }) in waiting {
            let behind = |devices: &[u32]| {
                devices.iter().map(|device| free[device]).fold(now.max(micros(needs.release)), i64::max)
            };
            let mut ways: Vec<(i64, Vec<u32>)> = vec![];
            match place {
                Some(place) => {
                    ways.push((behind(&place.devices) + micros(place.end) - micros(place.start), place.devices.clone()))
                }
                None => {
                    for option in &needs.options {
                        for node in &self.fleet.cluster.nodes {
                            let mut devices = node.devices.clone();
                            devices.sort_by_key(|device| free[device]);
                            devices.truncate(option.width as usize);
                            let fits = devices.len() == option.width as usize
                                && option.kind.as_ref().is_none_or(|kind| *kind == node.kind)
                                && node.memory.is_none_or(|memory| option.memory <= memory);
                            if fits {
                                ways.push((behind(&devices) + micros(option.duration).max(1), devices));
                            }
                        }
                    }
                }
            }
            let (end, devices) = ways.into_iter().min_by_key(|way| way.0).expect("a place");
            free.extend(devices.into_iter().map(|device| (device, end)));
            last = last.max(end);
        }
        (last - now) as f64 / 1e6
    }

    /// Every task has a place, and no two have one device at one time.
    fn check_plan(&self) {
        let mut held: BTreeMap<u32, Vec<(i64, i64, usize)>> = BTreeMap::new();
        let mut hold = |devices: &[u32], from: f64, to: f64, task: usize| {
            for &device in devices {
                held.entry(device).or_default().push((micros(from), micros(to), task));
            }
        };
        for (&task, active) in &self.running {
            hold(&active.placement.devices, self.now, active.expected.max(self.now), task);
        }
        for (&task, waiting) in self.waiting.iter().filter(|(task, _)| self.planned.contains(task)) {
            let place = waiting.place.as_ref().expect("a place for every task");
            check_place(&waiting.needs, place, &self.fleet.cluster);
            assert!(place.start >= self.now, "task {task} is planned to start at {} at {}", place.start, self.now);
            hold(&place.devices, place.start, place.end, task);
        }
        for (device, holders) in &mut held {
            holders.sort_unstable();
            let overlap = holders.windows(2).find(|pair| pair[1].0 < pair[0].1);
            assert!(overlap.is_none(), "on device {device}: {overlap:?} at {}", self.now);
        }
    }

    fn start(&mut self, task: usize, placement: &Placement) {
        let now = self.now;
        assert!(self.planned.remove(&task), "task {task} is in no plan");
        let waiting = self.waiting.remove(&task).expect("a task that waits");
        check_place(&waiting.needs, placement, &self.fleet.cluster);
        let planned = waiting.place.expect("a task that is planned");
        assert_eq!((planned.choice, &planned.devices), (placement.choice, &placement.devices), "not by the plan");
        assert_eq!(micros(planned.end) - micros(planned.start), micros(placement.end) - micros(placement.start));
        assert!(placement.start == now && planned.start <= now, "task {task}: {planned:?} at {now}");
        assert!(!self.exact || planned.start == now, "task {task}: {planned:?} at {now}");
        assert!(micros(now) >= micros(waiting.needs.release), "task {task} starts before its release");
        for (other, active) in &self.running {
            let shared = active.placement.devices.iter().find(|device| placement.devices.contains(device));
            assert!(shared.is_none(), "task {task} starts on device {shared:?} of task {other} at {now}");
        }
        for (other, earlier) in
            self.waiting.iter_mut().filter(|(other, earlier)| (earlier.since, **other) < (waiting.since, task))
        {
            earlier.overtaken += 1;
            let bound = self.fleet.overtaking;
            assert!(
                bound.is_none_or(|bound| earlier.overtaken <= bound),
                "task {task} overtakes task {other} at {now}"
            );
            assert!(self.promise != Promise::InOrder, "task {task} starts before task {other} at {now}");
        }
        let fate = &mut self.fates[task];
        (fate.started, fate.overtaken) = (Some(now), waiting.overtaken);
        fate.devices.clone_from(&placement.devices);
        let active = Active { placement: placement.clone(), since: now, expected: placement.end };
        self.running.insert(task, active);
    }

    fn end_turn(&self) {
        for active in self.running.values() {
            assert!(active.since <= self.now);
        }
        assert!(!self.is_short(), "at {} only {:?} are planned of {:?}", self.now, self.planned, self.waiting.keys());
        if self.promise != Promise::Busy || self.fleet.overtaking.is_some() || self.fleet.planned.is_some() {
            return;
        }
        for node in &self.fleet.cluster.nodes {
            let taken = |device: &&u32| self.running.values().any(|active| active.placement.devices.contains(device));
            let free = node.devices.len() - node.devices.iter().filter(taken).count();
            for (task, waiting) in self.waiting.iter().filter(|(_, waiting)| waiting.since <= self.now) {
                let width = waiting.needs.options[0].width as usize;
                assert!(width > free, "task {task} waits at {} for {width} of {free} free devices", self.now);
            }
        }
    }

    fn check_report(&self, report: &Report) {
        let found: Vec<Fate> = report
            .tasks
            .iter()
            .map(|task| Fate {
                arrived: task.arrived,
                started: task.started,
                ended: task.ended,
                devices: task.devices.clone(),
                overtaken: task.overtaken,
                failure: task.failure.clone(),
            })
            .collect();
        assert_eq!(found, self.fates);
        let ran: Vec<&Fate> = self.fates.iter().filter(|fate| fate.started.is_some()).collect();
        let totals = report.totals;
        let failed = ran.iter().filter(|fate| fate.failure.is_some()).count();
        assert_eq!(totals.failed as usize, failed);
        assert_eq!(totals.finished as usize, ran.len() - failed);
        assert_eq!(totals.refused as usize, self.fates.len() - ran.len());
        assert_eq!(totals.replans, self.replans);
        let first = ran.iter().map(|fate| fate.arrived).fold(f64::INFINITY, f64::min);
        let last = ran.iter().filter_map(|fate| fate.ended).fold(0.0, f64::max);
        let makespan = if ran.is_empty() { 0.0 } else { last - first };
        assert_eq!(totals.makespan, makespan);
        let length = |fate: &&Fate| fate.ended.unwrap_or(0.0) - fate.started.unwrap_or(0.0);
        let busy: f64 = ran.iter().map(|fate| length(fate) * fate.devices.len() as f64).sum();
        let devices: usize = self.fleet.cluster.nodes.iter().map(|node| node.devices.len()).sum();
        let utilization = if makespan > 0.0 { busy / makespan / devices as f64 } else { 0.0 };
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-9 * (1.0 + a.abs()), "{a} {b}: {totals:?}");
        close(totals.utilization, utilization);
        assert!(totals.utilization <= 1.0 + 1e-9, "{totals:?}");
        close(totals.run_seconds, ran.iter().map(length).sum());
        let waits = || ran.iter().map(|fate| fate.started.unwrap_or(0.0) - fate.arrived);
        close(totals.mean_wait, waits().sum::<f64>() / ran.len().max(1) as f64);
        close(totals.longest_wait, waits().fold(0.0, f64::max));
    }
}

/// Whether this is a place for the task: by one of its options, on devices of one node that suits it.
pub(crate) fn check_place(needs: &Task, placement: &Placement, cluster: &Cluster) {
    let option = &needs.options[placement.choice];
    assert_eq!(placement.devices.len(), option.width as usize, "{placement:?}");
    assert!(placement.devices.windows(2).all(|pair| pair[0] < pair[1]), "{placement:?}");
    let holds = |devices: &[u32]| placement.devices.iter().all(|device| devices.contains(device));
    let home = cluster.nodes.iter().find(|node| holds(&node.devices)).expect("one node has all of them");
    assert!(option.kind.as_ref().is_none_or(|kind| *kind == home.kind), "{placement:?} of {option:?}");
    assert!(home.memory.is_none_or(|memory| option.memory <= memory), "{placement:?} of {option:?}");
    assert_eq!(micros(placement.end) - micros(placement.start), micros(option.duration).max(1), "{placement:?}");
}
