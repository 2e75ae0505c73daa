//! What would end past the latest time there is.

use super::problem::{Item, Problem, Time};
use super::profile::Profile;
use super::schedule::{Schedule, Slot};

/// A schedule that ends in time, of a part of the tasks.
pub(crate) struct Fitted {
    /// With those tasks alone.
    pub(crate) problem: Problem,
    pub(crate) schedule: Schedule,
    /// Indices in `waiting` of those left out, in order.
    pub(crate) left_out: Vec<usize>,
}

/// Keeps what ends by `latest`, then adds the rest and what was set aside where there is room, the shortest first; so it
/// is the longest that are left out.
pub(crate) fn fit(problem: &Problem, schedule: &Schedule, latest: Time) -> Fitted {
    let mut profiles: Vec<Profile> = (0..problem.nodes.len()).map(|node| Profile::new(problem, node)).collect();
    let items: Vec<&Item> = problem.aside.iter().chain(&problem.items).collect();
    let mut slots: Vec<Option<Slot>> = vec![None; problem.aside.len()];
    slots.extend(schedule.slots.iter().map(|&slot| Some(slot)));
    for slot in &mut slots {
        *slot = slot.filter(|slot| slot.start + problem.modes[slot.mode].duration <= latest);
        if let Some(slot) = slot {
            profiles[slot.node].take(slot.start, problem.modes[slot.mode].width, problem.modes[slot.mode].duration);
        }
    }
    let mut late: Vec<usize> = (0..items.len()).filter(|&item| slots[item].is_none()).collect();
    late.sort_by_key(|&item| (problem.modes[items[item].modes.start].duration, items[item].source));
    let mut left_out = Vec::new();
    for item in late {
        let ways = items[item].modes.clone().flat_map(|mode| {
            let way = problem.modes[mode];
            problem.nodes_of(way.class).map(move |node| (mode, node, way))
        });
        let ends = ways.map(|(mode, node, way)| {
            let start = profiles[node].earliest(items[item].release, way.width, way.duration);
            (start + way.duration, way.area(), mode, node, start)
        });
        match ends.min().filter(|end| end.0 <= latest) {
            Some((end, _, mode, node, start)) => {
                profiles[node].take(start, problem.modes[mode].width, end - start);
                slots[item] = Some(Slot { mode, node, start });
            }
            None => left_out.push(items[item].source),
        }
    }
    left_out.sort_unstable();
    let (items, slots) = items.into_iter().zip(slots).filter_map(|(item, slot)| Some((item.clone(), slot?))).unzip();
    let problem = Problem { items, aside: Vec::new(), ..problem.clone() };
    Fitted { problem, schedule: Schedule { slots }, left_out }
}
