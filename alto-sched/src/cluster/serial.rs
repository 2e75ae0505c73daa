//! Conservative backfilling: each task in turn begins as early as those before it leave room, and delays none of them.

use super::problem::{Problem, Time};
use super::profile::Profile;
use super::schedule::Slot;

/// By which mode and where an item is placed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Choose<'a> {
    /// By the mode that its slot has, where it ends earliest.
    Pinned,
    /// Where it ends earliest, by any mode.
    Earliest,
    /// Some by any mode, the others by the one that their slot has.
    Again(&'a Again),
}

/// Which items are placed anew, and how: at the least cost that ends by the target, else where they end earliest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Again {
    pub(crate) out: Vec<bool>,
    /// Of each mode.
    pub(crate) costs: Vec<f64>,
    pub(crate) target: Time,
    /// Whether the others stay on the nodes that their slots have.
    pub(crate) stay: bool,
    /// A node that no item that is out goes to, if there are others of its class.
    pub(crate) avoid: usize,
}

impl Again {
    fn allows(&self, item: usize, node: usize, own: usize) -> bool {
        if self.out[item] { node != self.avoid } else { !self.stay || node == own }
    }

    fn cost(&self, item: usize, mode: usize, end: Time) -> f64 {
        match self.out[item] {
            true if end > self.target => f64::INFINITY,
            true => self.costs[mode],
            false => 0.0,
        }
    }
}

/// Makes schedules task by task; keeps its memory from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Serial {
    profiles: Vec<Profile>,
}

impl Serial {
    /// Places the items in this order, each by one of the modes that it is let choose from.
    ///
    /// Gives up, with `false`, once an item would end after `cutoff`, or if it isn't to go on: with many thousand items
    /// one schedule takes seconds.
    pub(crate) fn run(
        &mut self,
        problem: &Problem,
        order: &[usize],
        slots: &mut [Slot],
        choose: Choose,
        cutoff: Time,
        go_on: &dyn Fn() -> bool,
    ) -> bool {
        self.profiles.resize(problem.nodes.len(), Profile::default());
        for (node, profile) in self.profiles.iter_mut().enumerate() {
            profile.reset(problem, node);
        }
        order
            .iter()
            .enumerate()
            .all(|(count, &item)| (count % 512 != 511 || go_on()) && self.place(problem, item, slots, choose, cutoff))
    }

    /// Starts from what the profiles hold.
    fn place(&mut self, problem: &Problem, item: usize, slots: &mut [Slot], choose: Choose, cutoff: Time) -> bool {
        let own = slots[item];
        let all = problem.items[item].modes.clone();
        let (modes, again) = match choose {
            Choose::Earliest => (all, None),
            Choose::Again(again) if again.out[item] => (all, Some(again)),
            Choose::Again(again) => (own.mode..own.mode + 1, Some(again)),
            Choose::Pinned => (own.mode..own.mode + 1, None),
        };
        let mut best: Option<((f64, Time, u128), Slot)> = None;
        for mode in modes {
            let way = problem.modes[mode];
            let nodes = problem.nodes_of(way.class);
            let is_only = nodes.len() == 1;
            let allowed = |&node: &usize| is_only || again.is_none_or(|again| again.allows(item, node, own.node));
            for node in nodes.filter(allowed) {
                let start = self.profiles[node].earliest(problem.items[item].release, way.width, way.duration);
                let end = start.saturating_add(way.duration);
                let key = (again.map_or(0.0, |again| again.cost(item, mode, end)), end, way.area());
                if end <= cutoff && best.as_ref().is_none_or(|(least, _)| key < *least) {
                    best = Some((key, Slot { mode, node, start }));
                }
            }
        }
        let Some(((_, end, _), slot)) = best else { return false };
        let way = problem.modes[slot.mode];
        self.profiles[slot.node].take(slot.start, way.width, end - slot.start);
        slots[item] = slot;
        true
    }
}
