//! Iterated local search over the order in which tasks are placed, and the modes they run by.
//!
//! Two decoders make a schedule of an order: the greedy one never leaves a device idle that a task could use, the serial
//! one never lets a task delay one before it. Each reaches good schedules that the other can't. A schedule that isn't
//! worse than the present one replaces it, and its order becomes that of its starts; decoding stops as soon as it is
//! known to be worse. Where tasks have a choice of modes, most steps take a few tasks out and place them anew, and cycles of
//! annealing follow (threshold accepting, Dueck and Scheuer 1990): between two good choices of modes lie worse ones.

use super::ruin::Ruin;
use super::score::{Score, Second};
use super::tail;
use crate::cluster::bounds::Bounds;
use crate::cluster::bounds::measure::Measure;
use crate::cluster::greedy::Greedy;
use crate::cluster::order::Order;
use crate::cluster::problem::{Problem, Time};
use crate::cluster::random::Random;
use crate::cluster::schedule::Slot;
use crate::cluster::serial::{Choose, Serial};

/// This share of the makespan is how much worse a schedule may be at the beginning of a cycle of annealing.
const HOTTEST: f64 = 0.05;

/// The search, from which the best so far can be taken at any time.
pub(super) struct Local<'a> {
    problem: &'a Problem,
    second: Second,
    /// Aimed at: nothing is better.
    pub(super) bound: Time,
    random: Random,
    greedy: Greedy,
    serial: Serial,
    now: Solution,
    next: Solution,
    pub(super) best: Solution,
    /// Steps since the present solution became better.
    idle: u64,
    /// Steps of a cycle of annealing, and those made of it; only with tasks that have a choice.
    cycle: u64,
    age: u64,
    /// How many there are in all.
    devices: f64,
    flexible: Vec<usize>,
    reversible: bool,
    /// About how many tasks an exact search places anew.
    tail: usize,
    ruin: Ruin,
}

#[derive(Debug, Clone)]
pub(super) struct Solution {
    pub(super) order: Order,
    pub(super) slots: Vec<Slot>,
    pub(super) score: Score,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoder {
    Greedy,
    /// By the modes that the slots have.
    Pinned,
    /// By the modes that end earliest.
    Free,
    /// By the modes that the slots have, but for the tasks taken out.
    Ruined,
}

impl<'a> Local<'a> {
    /// Starts from slots that are a schedule.
    pub(super) fn new(problem: &'a Problem, slots: Vec<Slot>, second: Second, bounds: &Bounds, seed: u64) -> Local<'a> {
        let bound = bounds.makespan;
        let score = Score::of(problem, &slots, second, bound);
        let mut order: Order = (0..slots.len()).collect();
        order.sort_by_key(|&item| slots[item].start);
        let solution = Solution { order, slots, score };
        Local {
            problem,
            second,
            bound,
            random: Random::new(seed),
            greedy: Greedy::default(),
            serial: Serial::default(),
            now: solution.clone(),
            next: solution.clone(),
            best: solution,
            idle: 0,
            cycle: 0,
            age: 0,
            devices: (0..problem.nodes.len()).map(|node| f64::from(problem.capacity_of(node))).sum(),
            reversible: !problem.has_releases() && !problem.is_busy(),
            tail: 24,
            ruin: Ruin::new(problem, bounds.measures.first().map(|measure| &measure.1)),
            flexible: (0..problem.items.len()).filter(|&item| problem.modes_of(item).len() > 1).collect(),
        }
    }

    /// Offers a schedule found elsewhere.
    pub(super) fn offer(&mut self, slots: &[Slot]) {
        self.next.slots.copy_from_slice(slots);
        self.next.order.clone_from(&self.now.order);
        self.accept_if_better();
    }

    /// Offers the schedule that a decoder makes of an order.
    pub(super) fn try_order(&mut self, order: &[usize], decoder: Decoder, go_on: &dyn Fn() -> bool) {
        self.next.order.copy_from_slice(order);
        self.next.slots.clone_from(&self.now.slots);
        let cutoff = self.now.score.makespan;
        if self.decode(decoder, cutoff, go_on) {
            self.accept_if_better();
        }
    }

    /// One step: changes the order or the modes a little, decodes, and keeps what isn't worse.
    pub(super) fn step(&mut self, go_on: &dyn Fn() -> bool) {
        if self.problem.items.len() < 2 {
            return;
        }
        self.next.order.clone_from(&self.now.order);
        self.next.slots.copy_from_slice(&self.now.slots);
        let decoder = self.next_move();
        self.idle += 1;
        if self.is_annealing() {
            self.anneal(decoder, go_on);
            return;
        }
        let cutoff = self.now.score.makespan;
        if self.decode(decoder, cutoff, go_on) {
            self.accept_if_better();
        }
        if self.idle > 200 + 20 * self.problem.items.len() as u64 {
            match self.is_ruining() {
                true => self.reheat(go_on),
                false => self.kick(go_on),
            }
        }
    }

    /// Changes the next order and modes a little.
    fn next_move(&mut self) -> Decoder {
        if self.is_ruining() && self.random.below(10) > 0 {
            let between = (self.bound, self.best.score.makespan);
            self.ruin.take_out(self.problem, &mut self.next.order, between, &mut self.random);
            return Decoder::Ruined;
        }
        let strength = 1 + self.random.below(3);
        for _ in 0..strength {
            self.change();
        }
        match self.random.below(4) {
            0 | 1 => Decoder::Greedy,
            2 => Decoder::Pinned,
            _ if self.flexible.is_empty() => Decoder::Pinned,
            _ => Decoder::Free,
        }
    }

    /// Whether steps take tasks out, and cycles of annealing follow.
    pub(super) fn is_ruining(&self) -> bool {
        !self.flexible.is_empty() && self.second == Second::Nothing
    }

    fn is_annealing(&self) -> bool {
        self.age < self.cycle
    }

    /// Decodes, and takes the schedule unless it is much worse than the present one: how much may be is less and less over
    /// a cycle, and nothing at its end.
    fn anneal(&mut self, decoder: Decoder, go_on: &dyn Fn() -> bool) {
        let left = (self.cycle - self.age) as f64 / self.cycle as f64;
        let chance = self.random.below(1 << 20) as f64 / f64::from(1 << 20);
        let slack = self.best.score.makespan as f64 * HOTTEST * left * left * chance * chance;
        self.age += 1;
        let most = self.energy(&self.now.score) + slack;
        if self.decode(decoder, most as Time, go_on) {
            let score = Score::of(self.problem, &self.next.slots, self.second, self.bound);
            if self.energy(&score) <= most {
                self.now.score = Score::WORST;
                self.accept_if_better();
            }
        }
        if !self.is_annealing() {
            self.idle = 0;
        }
    }

    /// What annealing makes small: smoother than the makespan, which a change on another class of nodes doesn't change.
    fn energy(&self, score: &Score) -> f64 {
        score.makespan as f64 + score.second / self.devices
    }

    /// Begins another cycle of annealing, longer than the last: from the best schedule, the present one or a new one.
    fn reheat(&mut self, go_on: &dyn Fn() -> bool) {
        self.idle = 0;
        self.age = 0;
        self.cycle = (3 * self.cycle / 2).max(100 * self.problem.items.len() as u64);
        match self.random.below(3) {
            0 => {}
            1 => self.now.clone_from(&self.best),
            _ => {
                let between = (self.bound, self.best.score.makespan);
                self.next.order.clone_from(&self.now.order);
                self.ruin.take_all_out(self.problem, &mut self.next.order, between, &mut self.random);
                if self.decode(Decoder::Ruined, Time::MAX, go_on) {
                    self.now.score = Score::WORST;
                    self.accept_if_better();
                }
            }
        }
    }

    /// Searches the end of the present or the best schedule, or its beginning, for one that ends earlier.
    pub(super) fn search_tail(&mut self, measures: &[(Time, Measure)], steps: &mut u64) {
        *steps += 50;
        let from = if self.random.below(2) == 0 { &self.now } else { &self.best };
        let makespan = from.score.makespan;
        if makespan <= self.bound {
            return;
        }
        let backwards = self.reversible && self.random.below(2) == 0;
        let slots = if backwards { tail::reversed(self.problem, &from.slots, makespan) } else { from.slots.clone() };
        let count = 4 + self.random.below(self.tail);
        let target = makespan
            - 1
            - match self.random.below(3) {
                0 => 0,
                1 => makespan - 1 - self.bound,
                _ => self.random.below((makespan - self.bound) as usize) as Time,
            };
        let found = tail::improve(self.problem, measures, &slots, (count, target), 4000, steps);
        if let Some(slots) = found {
            let makespan = Score::of(self.problem, &slots, self.second, self.bound).makespan;
            let slots = if backwards { tail::reversed(self.problem, &slots, makespan) } else { slots };
            self.offer(&slots);
        }
    }

    /// Leaves a place from which no small change leads on: several changes at once, from the best or the present one.
    fn kick(&mut self, go_on: &dyn Fn() -> bool) {
        self.idle = 0;
        if self.random.below(2) == 0 {
            self.now.clone_from(&self.best);
        }
        self.next.clone_from(&self.now);
        let strength = 3 + self.random.below(self.problem.items.len().min(12));
        for _ in 0..strength {
            self.change();
        }
        let decoder = if self.random.below(2) == 0 { Decoder::Greedy } else { Decoder::Pinned };
        if self.decode(decoder, Time::MAX, go_on) {
            self.now.score = Score::WORST;
            self.accept_if_better();
        }
    }

    fn decode(&mut self, decoder: Decoder, cutoff: Time, go_on: &dyn Fn() -> bool) -> bool {
        let Solution { order, slots, .. } = &mut self.next;
        let choose = match decoder {
            Decoder::Greedy => return self.greedy.run(self.problem, order, slots, cutoff),
            Decoder::Pinned => Choose::Pinned,
            Decoder::Free => Choose::Earliest,
            Decoder::Ruined => Choose::Again(&self.ruin.again),
        };
        self.serial.run(self.problem, order, slots, choose, cutoff, go_on)
    }

    fn accept_if_better(&mut self) {
        self.next.score = Score::of(self.problem, &self.next.slots, self.second, self.bound);
        if self.next.score > self.now.score {
            return;
        }
        if self.next.score < self.now.score {
            self.idle = 0;
        }
        let Solution { order, slots, .. } = &mut self.next;
        order.sort_by_key(|&item| slots[item].start);
        std::mem::swap(&mut self.now, &mut self.next);
        if self.now.score < self.best.score {
            self.best.clone_from(&self.now);
        }
    }

    fn change(&mut self) {
        let n = self.next.order.len();
        if !self.flexible.is_empty() && self.random.below(3) == 0 {
            let item = self.flexible[self.random.below(self.flexible.len())];
            let modes = self.problem.items[item].modes.clone();
            self.next.slots[item].mode = modes.start + self.random.below(modes.len());
            return;
        }
        let (a, b) = (self.random.below(n), self.random.below(n));
        if self.random.below(2) == 0 {
            self.next.order.swap(a, b);
        } else {
            let (low, high) = (a.min(b), a.max(b));
            if self.random.below(2) == 0 {
                self.next.order[low..=high].rotate_right(1);
            } else {
                self.next.order[low..=high].rotate_left(1);
            }
        }
    }
}
