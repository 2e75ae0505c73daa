//! Branch and bound: is there a schedule that ends by a target?
//!
//! It goes through the times at which a task ends or is released. At each it decides which tasks start, most first.
//! What keeps the search small:
//! - A task that would have fit in the interval before could have started then: such schedules are not looked at, since
//!   shifting tasks to the left leads to one that is.
//! - For each measure (a dual-feasible function) what the devices can do until the target, less what there is to do, is
//!   a budget of waste. Idle devices and wasteful modes use it up.
//! - A state (what is left, and what runs for how long) that led nowhere isn't entered again at that time or later.
//! - Of tasks that are the same, the first starts first; of nodes that are in the same state, the first is used.

use super::memory::{Key, Memory};
use super::waste::Waste;
use crate::cluster::bounds::measure::Measure;
use crate::cluster::problem::{Problem, Time};
use crate::cluster::schedule::{Schedule, Slot};

/// What a search found.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// A schedule that ends by the target.
    Found(Schedule),
    /// There is none.
    Impossible,
    /// Stopped before either was known.
    Stopped,
}

/// The search, with what it remembers from one target to the next.
pub(crate) struct Branch<'a> {
    problem: &'a Problem,
    groups: Vec<Group>,
    measures: Vec<Measure>,
    memory: Memory,
    /// The least target that the memory is for.
    remembered: Time,
    state: State,
    target: Time,
    steps: u64,
    limit: u64,
}

/// Tasks that are the same, by the modes and release of the first.
struct Group {
    items: Vec<usize>,
    release: Time,
    shortest: Time,
    narrowest: u32,
}

#[derive(Default)]
struct State {
    now: Time,
    /// The event before now.
    before: Time,
    free: Vec<u32>,
    /// How many devices of each node were free from `before` to `now`.
    free_before: Vec<u32>,
    /// By end, the first to end last.
    running: Vec<Run>,
    /// How many of each group have started.
    started: Vec<usize>,
    left: usize,
    waste: Waste,
    slots: Vec<Slot>,
}

#[derive(Clone, Copy)]
struct Run {
    end: Time,
    node: usize,
    width: u32,
    /// Index into the problem's modes; `None` for a task that runs already.
    mode: Option<usize>,
}

/// How a subtree ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Failed,
    Found,
    Stopped,
}

impl<'a> Branch<'a> {
    pub(crate) fn new(problem: &'a Problem, measures: &[(Time, Measure)]) -> Branch<'a> {
        let mut groups: Vec<Group> = Vec::new();
        for (item, task) in problem.items.iter().enumerate() {
            let same = |group: &&mut Group| {
                group.release == task.release && alike(problem.modes_of(group.items[0]), problem.modes_of(item))
            };
            match groups.last_mut().filter(same) {
                Some(group) => group.items.push(item),
                None => {
                    let shortest = problem.modes_of(item)[0].duration;
                    let narrowest = problem.modes_of(item).iter().map(|mode| mode.width).min().unwrap_or(1);
                    groups.push(Group { items: vec![item], release: task.release, shortest, narrowest });
                }
            }
        }
        let measures = measures.iter().take(10).map(|measure| measure.1.clone()).collect();
        Branch {
            problem,
            groups,
            measures,
            memory: Memory::new(),
            remembered: Time::MAX,
            state: State::default(),
            target: 0,
            steps: 0,
            limit: 0,
        }
    }

    /// Looks for a schedule that ends by `target`, for so many steps at most; adds those made to `steps`.
    pub(crate) fn decide(&mut self, target: Time, limit: u64, steps: &mut u64, go_on: &dyn Fn() -> bool) -> Outcome {
        if target > self.remembered {
            self.memory.clear();
        }
        self.memory.reserve(limit);
        (self.remembered, self.target, self.steps, self.limit) = (target, target, 0, limit);
        self.state = self.root();
        let end = match self.state.waste.exhausted() || !self.in_time() {
            true => End::Failed,
            false => self.start((0, 0, 0), go_on),
        };
        *steps += self.steps;
        match end {
            End::Found => Outcome::Found(Schedule { slots: std::mem::take(&mut self.state.slots) }),
            End::Failed => Outcome::Impossible,
            End::Stopped => Outcome::Stopped,
        }
    }

    fn root(&self) -> State {
        let problem = self.problem;
        let mut running = Vec::new();
        let mut free: Vec<u32> = (0..problem.nodes.len()).map(|node| problem.capacity_of(node)).collect();
        for (node, bin) in problem.nodes.iter().enumerate() {
            for &(end, width) in &bin.busy {
                free[node] -= width;
                running.push(Run { end, node, width, mode: None });
            }
        }
        running.sort_by_key(|run| std::cmp::Reverse(run.end));
        State {
            now: 0,
            before: 0,
            free_before: vec![0; free.len()],
            free,
            running,
            started: vec![0; self.groups.len()],
            left: problem.items.len(),
            waste: Waste::new(problem, &self.measures, self.target),
            slots: vec![Slot::default(); problem.items.len()],
        }
    }

    /// Decides what else starts now, of the candidates from this one on: group, mode within it, node within the class.
    fn start(&mut self, from: (usize, usize, usize), go_on: &dyn Fn() -> bool) -> End {
        if self.state.left == 0 {
            return End::Found;
        }
        self.steps += 1;
        if self.steps > self.limit || self.steps.is_multiple_of(1024) && !go_on() {
            return End::Stopped;
        }
        let (mut mode_from, mut node_from) = (from.1, from.2);
        for group in from.0..self.groups.len() {
            let Group { ref items, release, .. } = self.groups[group];
            let started = self.state.started[group];
            if started < items.len() && release <= self.state.now {
                let item = items[started];
                let modes = self.problem.items[items[0]].modes.clone();
                let own = self.problem.items[item].modes.start;
                for (index, mode) in modes.enumerate().skip(mode_from) {
                    let class = self.problem.modes[mode].class;
                    for node in self.problem.nodes_of(class).skip(node_from) {
                        if self.may_start(release, mode, node) {
                            let first = self.problem.nodes_of(class).start;
                            let end = self.start_one((group, item), (mode, own + index), (index, node - first), go_on);
                            if end != End::Failed {
                                return end;
                            }
                        }
                    }
                    node_from = 0;
                }
            }
            (mode_from, node_from) = (0, 0);
        }
        self.advance(go_on)
    }

    /// Whether starting now on this node can lead to a schedule that nothing else leads to.
    fn may_start(&self, release: Time, mode: usize, node: usize) -> bool {
        let State { now, before, ref free, ref free_before, .. } = self.state;
        let way = self.problem.modes[mode];
        way.width <= free[node]
            && (way.width > free_before[node] || release > before)
            && now + way.duration <= self.target
            && !self.has_twin(node)
    }

    /// Whether a node before this one, of the same class, is in the same state.
    fn has_twin(&self, node: usize) -> bool {
        let State { free, free_before, running, .. } = &self.state;
        let on = |node: usize| running.iter().filter(move |run| run.node == node).map(|run| (run.end, run.width));
        let class = self.problem.classes[self.problem.nodes[node].class].nodes.clone();
        (class.start..node)
            .any(|other| (free[other], free_before[other]) == (free[node], free_before[node]) && on(other).eq(on(node)))
    }

    fn start_one(
        &mut self,
        (group, item): (usize, usize),
        (mode, own): (usize, usize),
        from: (usize, usize),
        go_on: &dyn Fn() -> bool,
    ) -> End {
        let way = self.problem.modes[mode];
        let node = self.problem.nodes_of(way.class).start + from.1;
        if !self.state.waste.start(mode) {
            self.state.waste.undo_start(mode);
            return End::Failed;
        }
        let state = &mut self.state;
        let end = state.now + way.duration;
        let place = state.running.partition_point(|run| run.end > end);
        state.running.insert(place, Run { end, node, width: way.width, mode: Some(mode) });
        state.free[node] -= way.width;
        state.started[group] += 1;
        state.left -= 1;
        state.slots[item] = Slot { mode: own, node, start: state.now };
        let result = self.start((group, from.0, from.1), go_on);
        if result != End::Found {
            let state = &mut self.state;
            state.running.remove(place);
            state.free[node] += way.width;
            state.started[group] -= 1;
            state.left += 1;
            state.waste.undo_start(mode);
        }
        result
    }

    /// Starts nothing more now and goes on to the next event.
    fn advance(&mut self, go_on: &dyn Fn() -> bool) -> End {
        let Some(next) = self.next_event().filter(|&next| next <= self.target) else { return End::Failed };
        let span = next - self.state.now;
        if !self.state.waste.pass(span) {
            self.state.waste.undo_pass(span);
            return End::Failed;
        }
        let (now, before) = (self.state.now, self.state.before);
        let free_before = std::mem::replace(&mut self.state.free_before, self.state.free.clone());
        (self.state.before, self.state.now) = (now, next);
        let mut ended: Vec<Run> = Vec::new();
        while let Some(&run) = self.state.running.last().filter(|run| run.end <= next) {
            self.state.running.pop();
            self.state.free[run.node] += run.width;
            self.state.waste.end(run.node, run.width, run.mode);
            ended.push(run);
        }
        let result = self.enter(go_on);
        if result != End::Found {
            for run in ended.into_iter().rev() {
                self.state.waste.undo_end(run.node, run.width, run.mode);
                self.state.free[run.node] -= run.width;
                self.state.running.push(run);
            }
            (self.state.now, self.state.before, self.state.free_before) = (now, before, free_before);
            self.state.waste.undo_pass(span);
        }
        result
    }

    /// Decides for a time that was just reached.
    fn enter(&mut self, go_on: &dyn Fn() -> bool) -> End {
        if !self.in_time() {
            return End::Failed;
        }
        let key = self.key();
        if self.memory.fails(key, self.state.now) {
            return End::Failed;
        }
        let result = self.start((0, 0, 0), go_on);
        if result == End::Failed && self.state.left > 2 {
            self.memory.failed(key, self.state.now);
        }
        result
    }

    fn next_event(&self) -> Option<Time> {
        let end = self.state.running.last().map(|run| run.end);
        self.waiting().map(|group| group.release).filter(|&release| release > self.state.now).chain(end).min()
    }

    /// Groups of which some haven't started.
    fn waiting(&self) -> impl Iterator<Item = &Group> {
        self.groups
            .iter()
            .zip(&self.state.started)
            .filter(|(group, started)| **started < group.items.len())
            .map(|g| g.0)
    }

    /// Whether what is left can end in time, each task by itself, and those so long that they overlap in the middle
    /// together.
    fn in_time(&self) -> bool {
        let now = self.state.now;
        let start = |group: &Group| group.release.max(now);
        if self.waiting().any(|group| start(group) + group.shortest > self.target) {
            return false;
        }
        self.overlap_fits()
    }

    /// Whether those so long that they must overlap fit side by side, on a single node.
    fn overlap_fits(&self) -> bool {
        let [class] = &self.problem.classes[..] else { return true };
        if class.nodes.len() > 1 {
            return true;
        }
        let (capacity, span) = (u64::from(class.capacity), self.target - self.state.now);
        // The longest first, with all of a group together.
        let groups = self.groups.iter().zip(&self.state.started);
        let mut waiting = groups.filter(|(group, started)| **started < group.items.len()).map(|(group, started)| {
            let count = (group.items.len() - started) as u64;
            (group.shortest, u64::from(group.narrowest), count)
        });
        let mut across = 0;
        let mut shortest_across = span;
        for (duration, width, count) in waiting.by_ref() {
            if 2 * duration <= span {
                // Not across the middle, but perhaps one of them overlaps each of those that are, so all at one time.
                if duration + shortest_across <= span {
                    break;
                }
                if across + width > capacity {
                    return false;
                }
                continue;
            }
            across += width * count;
            shortest_across = duration;
            // The latest start of the shortest so far: those that run past it are beside them all. It moves on from task to
            // task, so that who was beside the longer ones need not be beside the next.
            let late = self.state.running.iter().take_while(|run| run.end > self.target - duration);
            if across + late.map(|run| u64::from(run.width)).sum::<u64>() > capacity {
                return false;
            }
        }
        true
    }

    fn key(&self) -> Key {
        let state = &self.state;
        let mut key = Key::default();
        for (group, &started) in state.started.iter().enumerate().filter(|(_, started)| **started > 0) {
            key.add(1, group as u64, started as u64);
        }
        for run in &state.running {
            key.add(2, run.end - state.now, u64::from(run.width) << 32 | run.node as u64);
        }
        // What fit before can't start now: that is part of the state.
        for (node, (&free, &before)) in state.free.iter().zip(&state.free_before).enumerate() {
            key.add(3, node as u64, u64::from(free.min(before)));
        }
        if self.waiting().any(|group| group.release > state.before) {
            key.add(4, state.before, state.now);
        }
        key
    }
}

fn alike(a: &[crate::cluster::problem::Mode], b: &[crate::cluster::problem::Mode]) -> bool {
    let key = |mode: &crate::cluster::problem::Mode| (mode.duration, mode.width, mode.class);
    a.iter().map(key).eq(b.iter().map(key))
}
