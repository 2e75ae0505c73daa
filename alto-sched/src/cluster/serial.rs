//! Conservative backfilling: each task in turn begins as early as those before it leave room, and delays none of them.

use super::problem::{Problem, Time};
use super::profile::Profile;
use super::schedule::Slot;

/// Makes schedules task by task; keeps its memory from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Serial {
    profiles: Vec<Profile>,
}

impl Serial {
    /// Places the items in this order where each ends earliest: over all modes, or by the mode that its slot has if
    /// `pinned`.
    ///
    /// Gives up, with `false`, once an item would end after `cutoff`, or if it isn't to go on: with many thousand items
    /// one schedule takes seconds.
    pub(crate) fn run(
        &mut self,
        problem: &Problem,
        order: &[usize],
        slots: &mut [Slot],
        pinned: bool,
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
            .all(|(count, &item)| (count % 512 != 511 || go_on()) && self.place(problem, item, slots, pinned, cutoff))
    }

    /// Starts from what the profiles hold.
    fn place(&mut self, problem: &Problem, item: usize, slots: &mut [Slot], pinned: bool, cutoff: Time) -> bool {
        let modes = if pinned { slots[item].mode..slots[item].mode + 1 } else { problem.items[item].modes.clone() };
        let mut best: Option<(Time, u128, Slot)> = None;
        for mode in modes {
            let way = problem.modes[mode];
            for node in problem.nodes_of(way.class) {
                let start = self.profiles[node].earliest(problem.items[item].release, way.width, way.duration);
                let end = start.saturating_add(way.duration);
                if best.as_ref().is_none_or(|(least, area, _)| (end, way.area()) < (*least, *area)) {
                    best = Some((end, way.area(), Slot { mode, node, start }));
                }
            }
        }
        let Some((end, _, slot)) = best.filter(|best| best.0 <= cutoff) else { return false };
        let way = problem.modes[slot.mode];
        self.profiles[slot.node].take(slot.start, way.width, end - slot.start);
        slots[item] = slot;
        true
    }
}
