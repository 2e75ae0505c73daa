//! Exact search over the end of a schedule: what starts by some time stays, the rest is placed anew by branch and bound.
//!
//! What stays is, to the rest, what running tasks are to a problem. Where all tasks could start now and nothing runs, a
//! schedule read backwards is one as well, so its beginning can be searched too.

use super::branch::{Branch, Outcome};
use crate::cluster::bounds::measure::Measure;
use crate::cluster::problem::{Problem, Time};
use crate::cluster::schedule::Slot;

/// A schedule that ends by `target` and differs from this one in the tasks that start last, about `count` of them.
///
/// Tries for so many steps at most, and adds those made to `steps`.
pub(super) fn improve(
    problem: &Problem,
    measures: &[(Time, Measure)],
    slots: &[Slot],
    (count, target): (usize, Time),
    limit: u64,
    steps: &mut u64,
) -> Option<Vec<Slot>> {
    let mut order: Vec<usize> = (0..slots.len()).collect();
    order.sort_by_key(|&item| slots[item].start);
    let cut = slots[order[slots.len().saturating_sub(count.max(1))]].start;
    let mut moving: Vec<usize> = (0..slots.len()).filter(|&item| slots[item].start >= cut).collect();
    // Those that start together with the first may be many.
    moving.truncate(2 * count);
    let end = |item: usize| slots[item].start + problem.modes[slots[item].mode].duration;
    let mut rest = Problem {
        unit: problem.unit,
        classes: problem.classes.clone(),
        nodes: problem.nodes.clone(),
        items: moving.iter().map(|&item| problem.items[item].clone()).collect(),
        modes: problem.modes.clone(),
        aside: Vec::new(),
        refused: Vec::new(),
    };
    rest.items.iter_mut().for_each(|item| item.release = item.release.saturating_sub(cut));
    for bin in &mut rest.nodes {
        bin.busy.retain_mut(|busy| {
            busy.0 = busy.0.saturating_sub(cut);
            busy.0 > 0
        });
    }
    let mut next = 0;
    for (item, slot) in slots.iter().enumerate() {
        if moving.get(next) == Some(&item) {
            next += 1;
        } else if slot.start >= cut {
            return None;
        } else if end(item) > cut {
            rest.nodes[slot.node].busy.push((end(item) - cut, problem.modes[slot.mode].width));
        }
    }
    rest.nodes.iter_mut().for_each(|bin| bin.busy.sort_unstable());
    let mut branch = Branch::new(&rest, measures);
    match branch.decide(target.checked_sub(cut)?, limit, steps, &|| true) {
        Outcome::Found(found) => {
            let mut slots = slots.to_vec();
            for (&item, slot) in moving.iter().zip(&found.slots) {
                slots[item] = Slot { start: slot.start + cut, ..*slot };
            }
            Some(slots)
        }
        _ => None,
    }
}

/// The schedule read backwards, from its end on.
pub(super) fn reversed(problem: &Problem, slots: &[Slot], makespan: Time) -> Vec<Slot> {
    let start = |slot: &Slot| makespan - slot.start - problem.modes[slot.mode].duration;
    slots.iter().map(|slot| Slot { start: start(slot), ..*slot }).collect()
}
