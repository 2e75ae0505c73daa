//! Takes a few tasks out of a schedule, to be placed anew by any of their modes (ruin and recreate, Schrimpf et al. 2000).
//!
//! Of the modes that end a task by a target it gets the one that costs least: what it takes of the devices, each class by
//! its weight in the best lower bound, with noise. So a task is as wide and on as fast a class as the target demands, and
//! leaves the rest to others.

use crate::cluster::bounds::measure::Measure;
use crate::cluster::problem::{Mode, Problem, Time};
use crate::cluster::random::Random;
use crate::cluster::serial::Again;

/// At most so many tasks are taken out at once.
const MOST: usize = 4;
/// A cost is raised by up to this share of it.
const NOISE: f64 = 0.8;

/// What was taken out last.
pub(super) struct Ruin {
    pub(super) again: Again,
    /// What each mode costs before noise.
    plain: Vec<f64>,
}

impl Ruin {
    pub(super) fn new(problem: &Problem, measure: Option<&Measure>) -> Ruin {
        let load = |mode: &Mode| measure.map_or(u64::from(mode.width), |m| m.load(mode.class as usize, mode.width));
        let plain: Vec<f64> = problem.modes.iter().map(|mode| load(mode) as f64 * mode.duration as f64).collect();
        let again = Again { out: vec![false; problem.items.len()], costs: plain.clone(), ..Again::default() };
        Ruin { again, plain }
    }

    /// Takes tasks out: random ones, or some that follow each other in this order. Half of them go to another place in it.
    ///
    /// The target is between the bound and what is just under the best makespan.
    pub(super) fn take_out(
        &mut self,
        problem: &Problem,
        order: &mut [usize],
        (bound, best): (Time, Time),
        random: &mut Random,
    ) {
        let count = 1 + random.below(MOST.min(order.len()));
        let in_a_row = random.below(2) == 0;
        let first = random.below(order.len());
        let mut items = [0; MOST];
        for (place, item) in items[..count].iter_mut().enumerate() {
            let at = if in_a_row { (first + place) % order.len() } else { random.below(order.len()) };
            *item = order[at];
        }
        self.again.out.fill(false);
        for &item in &items[..count] {
            self.again.out[item] = true;
            if random.below(2) == 0 {
                let from = order.iter().position(|&other| other == item).unwrap_or(0);
                let to = random.below(order.len());
                match from < to {
                    true => order[from..=to].rotate_left(1),
                    false => order[to..=from].rotate_right(1),
                }
            }
            self.price(problem, item, random);
        }
        self.again.stay = random.below(4) > 0;
        self.again.avoid = random.below(2 * problem.nodes.len());
        self.aim((bound, best), random);
    }

    /// Takes all tasks out, and shuffles the order.
    pub(super) fn take_all_out(
        &mut self,
        problem: &Problem,
        order: &mut [usize],
        between: (Time, Time),
        random: &mut Random,
    ) {
        self.again.out.fill(true);
        for place in (1..order.len()).rev() {
            order.swap(place, random.below(place + 1));
        }
        (0..order.len()).for_each(|item| self.price(problem, item, random));
        self.again.avoid = usize::MAX;
        self.aim(between, random);
    }

    fn price(&mut self, problem: &Problem, item: usize, random: &mut Random) {
        for mode in problem.items[item].modes.clone() {
            let share = random.below(1 << 20) as f64 / f64::from(1 << 20);
            self.again.costs[mode] = self.plain[mode] * (1.0 + NOISE * share);
        }
    }

    fn aim(&mut self, (bound, best): (Time, Time), random: &mut Random) {
        self.again.target = match random.below(3) {
            0 => best.saturating_sub(1),
            1 => bound,
            _ => bound + random.below(best.saturating_sub(bound) as usize + 1) as Time,
        };
    }
}
