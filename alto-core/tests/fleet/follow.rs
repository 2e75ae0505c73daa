//! Whether what a fleet tells can have happened, found out from its events alone.

use std::collections::BTreeMap;

use alto_core::fleet::{Event, EventKind};
use alto_sched::{Cluster, Placement, Task};

use super::checker::check_place;

/// Checks that every task starts once, by one of its options, on free devices of one fitting node and not before it may,
/// that it keeps them to its end, and that all that came have ended. Gives how often each was overtaken.
pub(crate) fn follow(events: &[Event], cluster: &Cluster) -> BTreeMap<usize, u32> {
    let mut waiting: BTreeMap<usize, (Task, f64, u32)> = BTreeMap::new();
    let mut running: BTreeMap<usize, Placement> = BTreeMap::new();
    let mut overtaken = BTreeMap::new();
    let (mut turn, mut now) = (0, 0.0);
    for event in events {
        assert!(event.turn == turn || event.turn == turn + 1 && event.seconds >= now, "{event:?} after turn {turn}");
        (turn, now) = (event.turn, event.seconds);
        match &event.kind {
            EventKind::Arrived { task, needs, .. } => {
                let since = needs.release.max(now);
                assert!(waiting.insert(*task, (needs.clone(), since, 0)).is_none(), "{event:?}");
            }
            EventKind::Refused { task, .. } => {
                waiting.remove(task);
            }
            EventKind::Started { task, placement, overtaken: told } => {
                let (needs, since, count) = waiting.remove(task).expect("a task that waits");
                check_place(&needs, placement, cluster);
                assert!(placement.start == now && now >= since, "{event:?}: it may not before {since}");
                for (other, held) in &running {
                    let shared = held.devices.iter().find(|device| placement.devices.contains(device));
                    assert!(shared.is_none(), "{event:?}: device {shared:?} is task {other}'s");
                }
                running.insert(*task, placement.clone());
                assert_eq!(*told, count, "{event:?}");
                overtaken.insert(*task, count);
                for (other, (_, earlier, count)) in &mut waiting {
                    *count += u32::from((*earlier, *other) < (since, *task));
                }
            }
            EventKind::Ended { task } | EventKind::Failed { task, .. } => {
                assert!(running.remove(task).is_some(), "{event:?}");
            }
            EventKind::Expected { task, .. } => assert!(running.contains_key(task), "{event:?}"),
            EventKind::Replanned(replan) => {
                assert!(!replan.causes.is_empty(), "{event:?}");
                assert!(replan.changes.iter().all(|change| waiting.contains_key(&change.task)), "{event:?}");
                assert!(replan.lower_bound <= replan.after.min(replan.before), "{event:?}");
            }
            _ => panic!("unknown: {event:?}"),
        }
    }
    assert!(waiting.is_empty() && running.is_empty(), "left over: {waiting:?} {running:?}");
    overtaken
}
