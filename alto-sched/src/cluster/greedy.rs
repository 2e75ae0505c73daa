//! List scheduling: whenever devices become free, the first task of the list that fits begins, and again (Graham 1966;
//! for tasks of several devices, Garey and Graham 1975). Also called aggressive backfilling.
//!
//! Waiting tasks queue by width, and a tree over the widths gives the first in the list of those that fit, so that a
//! task costs the logarithm of the number of different widths, and of the number of tasks that run.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::problem::{Problem, Time};
use super::schedule::Slot;

/// No task.
const NONE: u32 = u32::MAX;

/// Makes list schedules; keeps its memory from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Greedy {
    members: Vec<Vec<u32>>,
    widths: Vec<u32>,
    queues: Queues,
    ends: BinaryHeap<Reverse<(Time, u32, u32)>>,
    late: Vec<(Time, u32)>,
    place: Vec<u32>,
}

impl Greedy {
    /// Schedules the items in this order, each by the mode that its slot has, and fills in nodes and starts.
    ///
    /// Gives up, with `false`, once an item would end after `cutoff`.
    pub(crate) fn run(&mut self, problem: &Problem, order: &[usize], slots: &mut [Slot], cutoff: Time) -> bool {
        self.members.resize(problem.classes.len(), Vec::new());
        self.members.iter_mut().for_each(Vec::clear);
        for &item in order {
            self.members[problem.modes[slots[item].mode].class as usize].push(item as u32);
        }
        (0..problem.classes.len()).all(|class| self.run_class(problem, class, slots, cutoff))
    }

    fn run_class(&mut self, problem: &Problem, class: usize, slots: &mut [Slot], cutoff: Time) -> bool {
        let members = std::mem::take(&mut self.members[class]);
        let done = self.run_members(problem, class, &members, slots, cutoff);
        self.members[class] = members;
        done
    }

    fn run_members(
        &mut self,
        problem: &Problem,
        class: usize,
        members: &[u32],
        slots: &mut [Slot],
        cutoff: Time,
    ) -> bool {
        let mode = |item: u32, slots: &[Slot]| problem.modes[slots[item as usize].mode];
        self.queue(problem, class, members, slots);
        let mut free = Free::new(problem, class, &mut self.ends);
        let (mut now, mut left, mut next_late) = (0, members.len(), 0);
        while left > 0 {
            while let Some(&(release, rank)) = self.late.get(next_late).filter(|late| late.0 <= now) {
                debug_assert!(release <= now);
                let item = members[rank as usize];
                self.queues.push_late(self.place[mode(item, slots).width as usize], rank);
                next_late += 1;
            }
            while let Some(rank) = self.queues.first_within(self.widths.partition_point(|&w| w <= free.most())) {
                let item = members[rank as usize];
                let mode = mode(item, slots);
                let end = now + mode.duration;
                if end > cutoff {
                    return false;
                }
                self.queues.pop(self.place[mode.width as usize]);
                let node = free.take(mode.width);
                let slot = &mut slots[item as usize];
                (slot.node, slot.start) = (node as usize, now);
                self.ends.push(Reverse((end, node, mode.width)));
                left -= 1;
            }
            let end = self.ends.peek().map(|Reverse(end)| end.0);
            let release = self.late.get(next_late).map(|late| late.0);
            let Some(next) = end.into_iter().chain(release).min() else { break };
            now = next;
            while let Some(&Reverse((end, node, width))) = self.ends.peek()
                && end <= now
            {
                self.ends.pop();
                free.give(node, width);
            }
        }
        left == 0
    }

    /// Lays the members into queues.
    fn queue(&mut self, problem: &Problem, class: usize, members: &[u32], slots: &[Slot]) {
        let capacity = problem.classes[class].capacity as usize;
        let width = |item: u32| problem.modes[slots[item as usize].mode].width;
        self.place.clear();
        self.place.resize(capacity + 1, NONE);
        self.widths.clear();
        members.iter().for_each(|&item| self.place[width(item) as usize] = 0);
        for width in 1..=capacity {
            if self.place[width] == 0 {
                self.place[width] = self.widths.len() as u32;
                self.widths.push(width as u32);
            }
        }
        self.queues.clear(self.widths.len());
        self.late.clear();
        for (rank, &item) in members.iter().enumerate() {
            match problem.items[item as usize].release {
                0 => self.queues.add(self.place[width(item) as usize], rank as u32),
                release => self.late.push((release, rank as u32)),
            }
        }
        self.late.sort_unstable();
        self.queues.build();
        self.ends.clear();
    }
}

/// A queue of ranks for each width, and a tree of the least rank over them.
#[derive(Debug, Default)]
struct Queues {
    /// In increasing order; the first `taken` are gone.
    early: Vec<Vec<u32>>,
    taken: Vec<usize>,
    /// Those that joined later.
    late: Vec<BinaryHeap<Reverse<u32>>>,
    /// Leaves from `size` on; a node holds the least of its two children.
    tree: Vec<u32>,
    size: usize,
}

impl Queues {
    fn clear(&mut self, widths: usize) {
        self.early.iter_mut().for_each(Vec::clear);
        self.late.iter_mut().for_each(BinaryHeap::clear);
        if self.early.len() < widths {
            self.early.resize(widths, Vec::new());
            self.late.resize(widths, BinaryHeap::new());
        }
        self.taken.clear();
        self.taken.resize(widths, 0);
        self.size = widths.next_power_of_two().max(1);
        self.tree.clear();
        self.tree.resize(2 * self.size, NONE);
    }

    fn add(&mut self, place: u32, rank: u32) {
        self.early[place as usize].push(rank);
    }

    fn build(&mut self) {
        for place in 0..self.taken.len() {
            self.tree[self.size + place] = self.head(place);
        }
        for node in (1..self.size).rev() {
            self.tree[node] = self.tree[2 * node].min(self.tree[2 * node + 1]);
        }
    }

    fn head(&self, place: usize) -> u32 {
        let early = self.early[place].get(self.taken[place]).copied().unwrap_or(NONE);
        self.late[place].peek().map_or(early, |&Reverse(late)| early.min(late))
    }

    fn push_late(&mut self, place: u32, rank: u32) {
        self.late[place as usize].push(Reverse(rank));
        self.refresh(place as usize);
    }

    /// Takes the head away.
    fn pop(&mut self, place: u32) {
        let place = place as usize;
        if self.late[place].peek().is_some_and(|&Reverse(late)| late == self.head(place)) {
            self.late[place].pop();
        } else {
            self.taken[place] += 1;
        }
        self.refresh(place);
    }

    fn refresh(&mut self, place: usize) {
        let mut node = self.size + place;
        self.tree[node] = self.head(place);
        while node > 1 {
            node /= 2;
            let least = self.tree[2 * node].min(self.tree[2 * node + 1]);
            if self.tree[node] == least {
                break;
            }
            self.tree[node] = least;
        }
    }

    /// The least rank in the first `places` queues.
    fn first_within(&self, places: usize) -> Option<u32> {
        let (mut low, mut high, mut least) = (self.size, self.size + places, NONE);
        while low < high {
            if low & 1 == 1 {
                least = least.min(self.tree[low]);
                low += 1;
            }
            if high & 1 == 1 {
                high -= 1;
                least = least.min(self.tree[high]);
            }
            (low, high) = (low / 2, high / 2);
        }
        (least != NONE).then_some(least)
    }
}

/// How many devices of each node of a class are free.
enum Free {
    One { node: u32, free: u32 },
    Many { first: u32, free: Vec<u32>, by_free: BTreeSet<(u32, u32)> },
}

impl Free {
    fn new(problem: &Problem, class: usize, ends: &mut BinaryHeap<Reverse<(Time, u32, u32)>>) -> Free {
        let nodes = problem.classes[class].nodes.clone();
        let mut free = Vec::with_capacity(nodes.len());
        for node in nodes.clone() {
            let busy = &problem.nodes[node].busy;
            ends.extend(busy.iter().map(|&(until, width)| Reverse((until, node as u32, width))));
            free.push(problem.classes[class].capacity - busy.iter().map(|busy| busy.1).sum::<u32>());
        }
        let first = nodes.start as u32;
        if let [free] = free[..] {
            return Free::One { node: first, free };
        }
        let by_free = free.iter().zip(first..).map(|(&free, node)| (free, node)).collect();
        Free::Many { first, free, by_free }
    }

    /// The most that a node has.
    fn most(&self) -> u32 {
        match self {
            Free::One { free, .. } => *free,
            Free::Many { by_free, .. } => by_free.last().map_or(0, |last| last.0),
        }
    }

    /// Takes devices of the fullest node that has them.
    fn take(&mut self, width: u32) -> u32 {
        match self {
            Free::One { node, free } => {
                *free -= width;
                *node
            }
            Free::Many { first, free, by_free } => {
                let Some(&(had, node)) = by_free.range((width, 0)..).next() else {
                    unreachable!("width is at most the most that a node has")
                };
                by_free.remove(&(had, node));
                by_free.insert((had - width, node));
                free[(node - *first) as usize] -= width;
                node
            }
        }
    }

    fn give(&mut self, node: u32, width: u32) {
        match self {
            Free::One { free, .. } => *free += width,
            Free::Many { first, free, by_free } => {
                let free = &mut free[(node - *first) as usize];
                by_free.remove(&(*free, node));
                *free += width;
                by_free.insert((*free, node));
            }
        }
    }
}
