//! A snapshot as the schedulers compute with it: whole numbers from now on, in an order that doesn't depend on the
//! caller's.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use super::devices::Devices;
use super::error::PlanError;
use super::faults;
use super::plan::Refused;
use super::snapshot::{Choice, Cluster, Snapshot};
use super::time::{self, Micros, micros};

/// Time from now, in units of [`Problem::unit`] microseconds.
pub(crate) type Time = u64;

/// What is to be scheduled. Devices of a node are alike, so only their number counts here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Problem {
    /// The greatest common divisor of all times, so that numbers are small and bounds can be rounded up far.
    pub(crate) unit: Micros,
    pub(crate) classes: Vec<Class>,
    /// Those of a class lie together.
    pub(crate) nodes: Vec<Bin>,
    /// Ordered by what they are, the longest first; only tasks that are the same in every respect are ordered as given.
    pub(crate) items: Vec<Item>,
    pub(crate) modes: Vec<Mode>,
    /// The longest tasks, where all durations add up to more than can be counted; they are placed after all others.
    pub(crate) aside: Vec<Item>,
    /// Tasks left out.
    pub(crate) refused: Vec<Refused>,
}

/// Nodes of the same kind, memory and size.
#[derive(Debug, Clone)]
pub(crate) struct Class {
    /// Devices of each node.
    pub(crate) capacity: u32,
    pub(crate) nodes: Range<usize>,
}

/// A node.
#[derive(Debug, Clone)]
pub(crate) struct Bin {
    pub(crate) class: usize,
    /// Its index in the cluster.
    pub(crate) source: usize,
    /// When how many of its devices that aren't free now become so, in order of time.
    pub(crate) busy: Vec<(Time, u32)>,
}

/// A task.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Its index in `waiting`.
    pub(crate) source: usize,
    pub(crate) release: Time,
    pub(crate) weight: f64,
    /// Its ways to run, in `Problem::modes`; at least one.
    pub(crate) modes: Range<usize>,
}

/// A way to run a task: an option on a class of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mode {
    pub(crate) duration: Time,
    pub(crate) width: u32,
    pub(crate) class: u32,
    /// Index into the task's options.
    pub(crate) choice: u32,
}

impl Mode {
    /// Devices times time.
    pub(crate) fn area(&self) -> u128 {
        u128::from(self.width) * u128::from(self.duration)
    }
}

impl Problem {
    /// Validates a snapshot.
    ///
    /// # Errors
    /// As [`Scheduler::plan`](super::scheduler::Scheduler::plan).
    pub(crate) fn new(snapshot: &Snapshot) -> Result<Problem, PlanError> {
        let now = micros(snapshot.now).ok_or(PlanError::BadNow { now: snapshot.now })?;
        let (found, expected) = (snapshot.previous.len(), snapshot.waiting.len());
        if found != 0 && found != expected {
            return Err(PlanError::PreviousLength { found, expected });
        }
        let (classes, nodes) = classes(snapshot, now)?;
        let mut problem = Problem { unit: 1, classes, nodes, ..Problem::default() };
        problem.add_items(snapshot, now)?;
        problem.scale();
        Ok(problem)
    }

    pub(crate) fn modes_of(&self, item: usize) -> &[Mode] {
        &self.modes[self.items[item].modes.clone()]
    }

    pub(crate) fn nodes_of(&self, class: u32) -> Range<usize> {
        self.classes[class as usize].nodes.clone()
    }

    pub(crate) fn capacity_of(&self, node: usize) -> u32 {
        self.classes[self.nodes[node].class].capacity
    }

    /// Whether each task can run in one way only.
    pub(crate) fn is_rigid(&self) -> bool {
        self.items.iter().all(|item| item.modes.len() == 1)
    }

    /// Whether all tasks could begin now.
    pub(crate) fn has_releases(&self) -> bool {
        self.items.iter().any(|item| item.release > 0)
    }

    /// Whether devices are taken by tasks that run already.
    pub(crate) fn is_busy(&self) -> bool {
        self.nodes.iter().any(|node| !node.busy.is_empty())
    }

    fn add_items(&mut self, snapshot: &Snapshot, now: Micros) -> Result<(), PlanError> {
        let classes = ClassesOf::new(&snapshot.cluster, &self.classes, &self.nodes);
        let mut items: Vec<Item> = Vec::with_capacity(snapshot.waiting.len());
        let mut modes: Vec<Mode> = Vec::with_capacity(snapshot.waiting.len());
        let mut narrowest = vec![u32::MAX; self.classes.len()];
        for (source, task) in snapshot.waiting.iter().enumerate() {
            let begin = modes.len();
            let mut sound = !task.options.is_empty() && faults::is_weight(task.weight);
            for (choice, option) in task.options.iter().enumerate() {
                match (classes.of(option), time::duration(option.duration)) {
                    (Some(classes), Some(duration)) if option.width > 0 => {
                        let fitting = classes.iter().filter(|class| option.width <= class.1);
                        modes.extend(fitting.map(|class| Mode {
                            duration,
                            width: option.width,
                            class: class.0,
                            choice: choice as u32,
                        }));
                    }
                    _ => sound = false,
                }
            }
            let release = micros(task.release);
            let (true, true, Some(release)) = (sound, modes.len() > begin, release) else {
                modes.truncate(begin);
                let nodes = faults::distinct(&snapshot.cluster);
                let fault = faults::of_task(task, &nodes).unwrap_or(super::error::TaskFault::NoOption);
                if !snapshot.skip_bad {
                    return Err(PlanError::Task { task: source, name: task.name.clone(), fault });
                }
                self.refused.push(Refused { task: source, reason: fault });
                continue;
            };
            modes[begin..].sort_unstable();
            // What is no faster and no narrower than another way on the same nodes is never better.
            keep_undominated(&mut modes, begin, &mut narrowest);
            let release = release.saturating_sub(now);
            items.push(Item { source, release, weight: task.weight, modes: begin..modes.len() });
        }
        self.items = ordered(snapshot, items, &modes);
        self.modes = modes;
        self.set_aside();
        Ok(())
    }

    /// Sets the longest tasks aside until no schedule of the others, however bad, is too long to count.
    fn set_aside(&mut self) {
        let busy = self.nodes.iter().flat_map(|node| &node.busy).map(|busy| busy.0).max();
        let release = self.items.iter().map(|item| item.release).max();
        let longest = |item: &Item| u128::from(self.modes[item.modes.end - 1].duration);
        let mut sum: u128 = self.items.iter().map(longest).sum();
        sum += u128::from(busy.unwrap_or(0)) + u128::from(release.unwrap_or(0));
        let mut count = 0;
        while sum >= u128::from(Micros::MAX / 4) {
            sum -= longest(&self.items[count]);
            count += 1;
        }
        self.aside = self.items.drain(..count).collect();
    }

    /// Divides all times by their greatest common divisor.
    fn scale(&mut self) {
        let mut unit = 0;
        let mut take = |time: Time| {
            if unit != 1 {
                unit = gcd(unit, time);
            }
        };
        self.modes.iter().for_each(|mode| take(mode.duration));
        self.items.iter().chain(&self.aside).for_each(|item| take(item.release));
        self.nodes.iter().flat_map(|node| &node.busy).for_each(|busy| take(busy.0));
        self.unit = unit.max(1);
        if self.unit > 1 {
            self.modes.iter_mut().for_each(|mode| mode.duration /= unit);
            self.items.iter_mut().chain(&mut self.aside).for_each(|item| item.release /= unit);
            self.nodes.iter_mut().flat_map(|node| &mut node.busy).for_each(|busy| busy.0 /= unit);
        }
    }
}

/// The longest first, then the widest. Few tasks are alike in both, and only these are compared in full.
fn ordered(snapshot: &Snapshot, items: Vec<Item>, modes: &[Mode]) -> Vec<Item> {
    let key = |item: &Item| (Reverse(modes[item.modes.start].duration), Reverse(modes[item.modes.start].width));
    let mut order: Vec<_> = items.iter().map(key).zip(0..).collect();
    order.sort_unstable();
    let rest = |&(_, index): &(_, usize)| {
        let item = &items[index];
        let weight = item.weight.to_bits();
        (item.release, &modes[item.modes.clone()], weight, previous_key(snapshot, item.source), item.source)
    };
    for alike in order.chunk_by_mut(|a, b| a.0 == b.0).filter(|alike| alike.len() > 1) {
        alike.sort_unstable_by(|a, b| rest(a).cmp(&rest(b)));
    }
    order.into_iter().map(|(_, index)| items[index].clone()).collect()
}

/// Of the sorted modes from `begin` on, keeps those that no other is at least as good as.
///
/// `narrowest` has the largest number for each class, before and after.
fn keep_undominated(modes: &mut Vec<Mode>, begin: usize, narrowest: &mut [u32]) {
    let mut end = begin;
    for next in begin..modes.len() {
        let mode = modes[next];
        // Those kept so far are at least as fast.
        let least = &mut narrowest[mode.class as usize];
        if mode.width < *least {
            *least = mode.width;
            modes[end] = mode;
            end += 1;
        }
    }
    modes.truncate(end);
    modes[begin..].iter().for_each(|mode| narrowest[mode.class as usize] = u32::MAX);
}

/// What tells apart tasks that are the same but for where an earlier plan has them.
fn previous_key(snapshot: &Snapshot, source: usize) -> Option<(Option<Micros>, usize, &[u32])> {
    let placement = snapshot.previous.get(source)?.as_ref()?;
    Some((micros(placement.start), placement.choice, &placement.devices))
}

/// Groups the nodes, in an order that doesn't depend on the caller's.
fn classes(snapshot: &Snapshot, now: Micros) -> Result<(Vec<Class>, Vec<Bin>), PlanError> {
    let mut busy: Vec<Vec<(Micros, u32)>> = vec![Vec::new(); snapshot.cluster.nodes.len()];
    for held in Devices::new(&snapshot.cluster)?.held(&snapshot.running)? {
        let until = micros(snapshot.running[held.running].until).unwrap_or(now).saturating_sub(now);
        if until > 0 {
            busy[held.node].push((until, 1));
        }
    }
    busy.iter_mut().for_each(count_alike);
    let source = &snapshot.cluster.nodes;
    let key = |node: usize| (&source[node].kind, source[node].memory, source[node].devices.len());
    let mut order: Vec<usize> = (0..source.len()).filter(|&node| !source[node].devices.is_empty()).collect();
    order.sort_by(|&a, &b| (key(a), &busy[a], a).cmp(&(key(b), &busy[b], b)));
    let mut classes: Vec<Class> = Vec::new();
    let mut nodes: Vec<Bin> = Vec::new();
    for node in order {
        let same = nodes.last().is_some_and(|last| key(last.source) == key(node));
        match classes.last_mut() {
            Some(class) if same => class.nodes.end += 1,
            _ => {
                let capacity = source[node].devices.len() as u32;
                classes.push(Class { capacity, nodes: nodes.len()..nodes.len() + 1 });
            }
        }
        nodes.push(Bin { class: classes.len() - 1, source: node, busy: std::mem::take(&mut busy[node]) });
    }
    Ok((classes, nodes))
}

/// Puts counts in order of time, and those of one time together.
fn count_alike(counts: &mut Vec<(Micros, u32)>) {
    counts.sort_unstable();
    counts.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
}

/// Finds the classes of nodes that an option may run on, fast where many tasks ask for the same kind.
struct ClassesOf<'a> {
    /// Kind, memory, and the class with its capacity.
    all: Vec<(&'a str, Option<u64>, (u32, u32))>,
    /// For each kind, its classes if no memory is asked for.
    of_kind: BTreeMap<Option<&'a str>, Vec<(u32, u32)>>,
}

impl<'a> ClassesOf<'a> {
    fn new(cluster: &'a Cluster, classes: &[Class], nodes: &[Bin]) -> ClassesOf<'a> {
        let all: Vec<_> = (0_u32..)
            .zip(classes)
            .map(|(index, class)| {
                let node = &cluster.nodes[nodes[class.nodes.start].source];
                (node.kind.as_str(), node.memory, (index, class.capacity))
            })
            .collect();
        let mut of_kind: BTreeMap<Option<&str>, Vec<(u32, u32)>> = BTreeMap::new();
        // Also of nodes without a device, so that their kind is known.
        cluster.nodes.iter().for_each(|node| {
            of_kind.entry(Some(&node.kind)).or_default();
        });
        for &(kind, _, class) in &all {
            of_kind.entry(Some(kind)).or_default().push(class);
            of_kind.entry(None).or_default().push(class);
        }
        ClassesOf { all, of_kind }
    }

    /// Classes and their capacities; `None` for an unknown kind.
    fn of<'b>(&'b self, option: &'b Choice) -> Option<std::borrow::Cow<'b, [(u32, u32)]>> {
        let kind = option.kind.as_deref();
        let Some(classes) = self.of_kind.get(&kind) else {
            return kind.is_none().then_some(std::borrow::Cow::Borrowed(&[][..]));
        };
        if option.memory == 0 {
            return Some(std::borrow::Cow::Borrowed(classes));
        }
        let enough = |memory: Option<u64>| memory.is_none_or(|memory| option.memory <= memory);
        let suits = |of: &str, memory| kind.is_none_or(|kind| kind == of) && enough(memory);
        Some(self.all.iter().filter(|(of, memory, _)| suits(of, *memory)).map(|(_, _, class)| *class).collect())
    }
}

/// The greatest common divisor; that of a number and 0 is the number.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
