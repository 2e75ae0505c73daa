//! An earlier plan as a starting point.

use super::devices::Devices;
use super::problem::{Problem, Time};
use super::profile::Profile;
use super::schedule::{Schedule, Slot};
use super::snapshot::Snapshot;
use super::time::micros;

/// Where an earlier plan has each item; `None` where it doesn't, or what it says can't be any more.
pub(crate) fn earlier(problem: &Problem, snapshot: &Snapshot) -> Vec<Option<Slot>> {
    if snapshot.previous.iter().all(Option::is_none) {
        return vec![None; problem.items.len()];
    }
    let now = micros(snapshot.now).unwrap_or(0);
    let Ok(devices) = Devices::new(&snapshot.cluster) else { unreachable!("the problem was made of this snapshot") };
    let mut node_of: Vec<Option<usize>> = vec![None; snapshot.cluster.nodes.len()];
    problem.nodes.iter().enumerate().for_each(|(node, bin)| node_of[bin.source] = Some(node));
    let slot = |item: usize| {
        let placement = snapshot.previous[problem.items[item].source].as_ref()?;
        let node = node_of[devices.node(*placement.devices.first()?)?]?;
        let class = problem.nodes[node].class as u32;
        let is_it = |mode: &usize| {
            (problem.modes[*mode].choice as usize, problem.modes[*mode].class) == (placement.choice, class)
        };
        let mode = problem.items[item].modes.clone().find(is_it)?;
        // Off the grid of times it couldn't be kept to the microsecond.
        let start = micros(placement.start)?.saturating_sub(now).div_ceil(problem.unit);
        Some(Slot { mode, node, start: start.max(problem.items[item].release) })
    };
    (0..problem.items.len()).map(slot).collect()
}

/// The earlier plan, with what no longer holds put right: each task at its former place or as soon after that as
/// there is room, the new ones where they end earliest.
pub(crate) fn repaired(problem: &Problem, earlier: &[Option<Slot>]) -> Schedule {
    let mut profiles: Vec<Profile> = (0..problem.nodes.len()).map(|node| Profile::new(problem, node)).collect();
    let mut slots = vec![Slot::default(); problem.items.len()];
    let mut known: Vec<(Slot, usize)> = (0..slots.len()).filter_map(|item| Some((earlier[item]?, item))).collect();
    known.sort_by_key(|(slot, item)| (slot.start, *item));
    for (slot, item) in known {
        let way = problem.modes[slot.mode];
        let start = profiles[slot.node].earliest(slot.start, way.width, way.duration);
        profiles[slot.node].take(start, way.width, way.duration);
        slots[item] = Slot { start, ..slot };
    }
    for item in (0..slots.len()).filter(|&item| earlier[item].is_none()) {
        let release = problem.items[item].release;
        let ways = problem.items[item].modes.clone().flat_map(|mode| {
            let way = problem.modes[mode];
            problem.nodes_of(way.class).map(move |node| (mode, node, way))
        });
        let ends = ways.map(|(mode, node, way)| {
            let start = profiles[node].earliest(release, way.width, way.duration);
            (start + way.duration, way.area(), mode, node, start)
        });
        if let Some((end, _, mode, node, start)) = ends.min() {
            profiles[node].take(start, problem.modes[mode].width, end - start);
            slots[item] = Slot { mode, node, start };
        }
    }
    Schedule { slots }
}

/// Puts tasks back to where they were, one by one, where nothing is lost by it: the makespan stays, and, if `strictly`,
/// no task of any weight ends later.
pub(crate) fn settle(problem: &Problem, earlier: &[Option<Slot>], schedule: &mut Schedule, strictly: bool) {
    let makespan = schedule.makespan(problem);
    let mut profiles: Vec<Profile> = (0..problem.nodes.len()).map(|node| Profile::new(problem, node)).collect();
    let size = |slot: &Slot| (problem.modes[slot.mode].width, problem.modes[slot.mode].duration);
    for slot in &schedule.slots {
        let (width, duration) = size(slot);
        profiles[slot.node].take(slot.start, width, duration);
    }
    let mut known: Vec<(Slot, usize)> =
        (0..schedule.slots.len()).filter_map(|item| Some((earlier[item]?, item))).collect();
    known.sort_by_key(|(slot, item)| (slot.start, *item));
    for (wanted, item) in known {
        let slot = schedule.slots[item];
        let end = |slot: &Slot| -> Time { slot.start + problem.modes[slot.mode].duration };
        let later = strictly && problem.items[item].weight > 0.0 && end(&wanted) > end(&slot);
        if wanted == slot || end(&wanted) > makespan || later {
            continue;
        }
        let ((width, duration), (wide, long)) = (size(&slot), size(&wanted));
        profiles[slot.node].give(slot.start, width, duration);
        let back = profiles[wanted.node].fits(wanted.start, wide, long);
        let kept = if back { wanted } else { slot };
        let (width, duration) = size(&kept);
        profiles[kept.node].take(kept.start, width, duration);
        schedule.slots[item] = kept;
    }
}
