//! Admission and backfill, against cases worked out by hand and a brute-force reading of the rule.

use alto_sched::{AdmissionError, Coefficients, Load, MemoryModel, Need, Room, admit, backfill, check};
use proptest::prelude::*;

/// 100 bytes fixed, 1 byte per token, 10 bytes margin.
fn model() -> MemoryModel {
    let coefficients = Coefficients { fixed: 100.0, per_token: 1.0, margin: 10.0, ..Default::default() };
    MemoryModel::from_coefficients(coefficients).expect("non-negative coefficients")
}

/// A job of this batch size that takes this many bytes.
fn need(batch: usize, bytes: u64) -> Need {
    Need { load: Load { adapter_bytes: bytes / 2, tokens: bytes - bytes / 2, squared_tokens: 0 }, batch }
}

fn bytes(budget: u64) -> Room {
    Room { budget: Some(110 + budget), slots: None }
}

#[test]
fn the_largest_batch_size_goes_first_and_ties_go_by_index() {
    let waiting = [need(1, 10), need(4, 10), need(2, 10), need(4, 10)];
    assert_eq!(admit(&model(), &[], &waiting, &bytes(40)).unwrap(), [1, 3, 2, 0]);
}

#[test]
fn a_job_that_does_not_fit_is_passed_over_and_a_smaller_one_is_not() {
    let waiting = [need(8, 60), need(4, 50), need(2, 40)];
    assert_eq!(admit(&model(), &[], &waiting, &bytes(100)).unwrap(), [0, 2]);
}

#[test]
fn the_margin_is_set_aside_once() {
    let waiting = [need(1, 40), need(1, 40)];
    assert_eq!(admit(&model(), &[], &waiting, &bytes(80)).unwrap(), [0, 1]);
    assert_eq!(admit(&model(), &[], &waiting, &bytes(79)).unwrap(), [0]);
}

#[test]
fn running_jobs_take_bytes_and_slots() {
    let running = [need(1, 50)];
    let waiting = [need(1, 50), need(1, 50), need(1, 50)];
    assert_eq!(admit(&model(), &running, &waiting, &bytes(100)).unwrap(), [0]);
    let slots = Room { budget: None, slots: Some(3) };
    assert_eq!(admit(&model(), &running, &waiting, &slots).unwrap(), [0, 1]);
    assert_eq!(admit(&model(), &running, &waiting, &Room::default()).unwrap(), [0, 1, 2]);
}

#[test]
fn nothing_is_added_to_an_overfull_device() {
    assert_eq!(admit(&model(), &[need(1, 200)], &[need(1, 0)], &bytes(100)).unwrap(), []);
}

#[test]
fn a_freed_place_goes_to_the_same_batch_size_before_a_larger_one() {
    let waiting = [need(8, 50), need(2, 50), need(2, 50)];
    assert_eq!(backfill(&model(), &[], &waiting, &[2], &bytes(50)).unwrap(), [1]);
    // What is left over goes to the largest again.
    assert_eq!(backfill(&model(), &[], &waiting, &[2], &bytes(100)).unwrap(), [1, 0]);
    assert_eq!(backfill(&model(), &[], &waiting, &[2, 2], &bytes(100)).unwrap(), [1, 2]);
}

#[test]
fn without_one_of_the_same_batch_size_any_that_fits_takes_the_place() {
    let waiting = [need(8, 90), need(1, 20), need(4, 50)];
    assert_eq!(backfill(&model(), &[need(1, 40)], &waiting, &[2], &bytes(100)).unwrap(), [2]);
    // One of the same batch size that doesn't fit is no candidate.
    let waiting = [need(2, 90), need(1, 20), need(2, 60)];
    assert_eq!(backfill(&model(), &[need(1, 40)], &waiting, &[2], &bytes(100)).unwrap(), [2]);
}

#[test]
fn a_job_that_can_never_fit_is_an_error_with_its_index_and_bytes() {
    let waiting = [need(1, 50), need(2, 101)];
    let error = AdmissionError::NeverFits { job: 1, bytes: 211, budget: 210 };
    assert_eq!(check(&model(), &waiting, &bytes(100)), Err(error.clone()));
    assert_eq!(admit(&model(), &[], &waiting, &bytes(100)), Err(error.clone()));
    assert_eq!(backfill(&model(), &[], &waiting, &[1], &bytes(100)), Err(error.clone()));
    assert_eq!(error.to_string(), "job 1 needs 211 bytes even alone, but the budget is 210");
    // One that only has to wait is none.
    assert_eq!(admit(&model(), &[need(1, 60)], &waiting[..1], &bytes(100)), Ok(vec![]));
}

#[test]
fn a_device_without_slots_is_an_error_only_if_a_job_waits() {
    let room = Room { budget: None, slots: Some(0) };
    assert_eq!(admit(&model(), &[], &[need(1, 1)], &room), Err(AdmissionError::NoSlots { jobs: 1 }));
    assert_eq!(admit(&model(), &[], &[], &room), Ok(vec![]));
}

/// Whether a set of waiting jobs fits beside the running ones, by the formula of [`model`].
fn fits(running: &[Need], waiting: &[Need], set: &[usize], room: &Room) -> bool {
    let taken = |need: &Need| need.load.adapter_bytes + need.load.tokens;
    let total = 110 + running.iter().map(taken).sum::<u64>() + set.iter().map(|&i| taken(&waiting[i])).sum::<u64>();
    set.is_empty()
        || room.budget.is_none_or(|budget| total <= budget)
            && room.slots.is_none_or(|slots| running.len() + set.len() <= slots)
}

/// The rule read literally. Replacements: for each freed place, the first of the same batch size with which the set
/// still fits. Then, of all sets that contain those and fit, the one that has the first job in the order of batch
/// sizes, of these the one that has the second, and so on.
fn oracle(running: &[Need], waiting: &[Need], freed: &[usize], room: &Room) -> Vec<usize> {
    let mut replacements: Vec<usize> = Vec::new();
    for &batch in freed {
        for i in 0..waiting.len() {
            let with: Vec<usize> = replacements.iter().copied().chain([i]).collect();
            if waiting[i].batch == batch && !replacements.contains(&i) && fits(running, waiting, &with, room) {
                replacements = with;
                break;
            }
        }
    }
    let mut order: Vec<usize> = (0..waiting.len()).filter(|i| !replacements.contains(i)).collect();
    order.sort_by(|&a, &b| waiting[b].batch.cmp(&waiting[a].batch).then(a.cmp(&b)));
    let sets = (0..1_u32 << order.len())
        .map(|bits| -> Vec<bool> { (0..order.len()).map(|place| bits >> place & 1 == 1).collect() });
    let picked = |set: &[bool]| -> Vec<usize> {
        let more = order.iter().zip(set).filter(|(_, taken)| **taken).map(|(i, _)| *i);
        replacements.iter().copied().chain(more).collect()
    };
    let best = sets.filter(|set| fits(running, waiting, &picked(set), room)).max();
    best.map_or(vec![], |set| picked(&set))
}

prop_compose! {
    fn any_need()(batch in 1_usize..5, bytes in 0_u64..60) -> Need { need(batch, bytes) }
}

prop_compose! {
    fn any_room()(budget in prop::option::weighted(0.9, 60_u64..200), slots in prop::option::of(1_usize..7)) -> Room {
        Room { budget: budget.map(|b| 110 + b), slots }
    }
}

proptest! {
    #[test]
    fn picks_are_those_of_the_rule_read_literally(
        running in prop::collection::vec(any_need(), 0..4),
        waiting in prop::collection::vec(any_need(), 0..8),
        freed in prop::collection::vec(1_usize..5, 0..3),
        room in any_room(),
    ) {
        let picked = backfill(&model(), &running, &waiting, &freed, &room).unwrap();
        prop_assert_eq!(&picked, &oracle(&running, &waiting, &freed, &room));
        prop_assert_eq!(picked, backfill(&model(), &running, &waiting, &freed, &room).unwrap());
    }

    #[test]
    fn what_is_picked_fits_and_no_job_left_out_would_fit_beside_it(
        running in prop::collection::vec(any_need(), 0..4),
        waiting in prop::collection::vec(any_need(), 0..40),
        freed in prop::collection::vec(1_usize..5, 0..3),
        room in any_room(),
    ) {
        let picked = backfill(&model(), &running, &waiting, &freed, &room).unwrap();
        let load = |set: &[usize]| running.iter().chain(set.iter().map(|&i| &waiting[i])).map(|n| n.load).sum::<Load>();
        let has_room = |set: &[usize]| {
            room.budget.is_none_or(|budget| model().reserve(&load(set)) <= budget)
                && room.slots.is_none_or(|slots| running.len() + set.len() <= slots)
        };
        prop_assert!(picked.is_empty() || has_room(&picked));
        let mut once = picked.clone();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), picked.len());
        for i in (0..waiting.len()).filter(|i| !picked.contains(i)) {
            let with: Vec<usize> = picked.iter().copied().chain([i]).collect();
            prop_assert!(!has_room(&with), "job {i} was left out but fits beside {picked:?}");
        }
    }

    #[test]
    fn the_order_of_arrival_decides_only_between_equal_batch_sizes(
        mut waiting in prop::collection::vec(any_need(), 0..12),
        seed in prop::collection::vec(any::<u32>(), 12),
        room in any_room(),
    ) {
        // One job of each batch size, in two orders.
        waiting.sort_by_key(|need| need.batch);
        waiting.dedup_by_key(|need| need.batch);
        let mut order: Vec<usize> = (0..waiting.len()).collect();
        order.sort_by_key(|&i| seed[i]);
        let shuffled: Vec<Need> = order.iter().map(|&i| waiting[i]).collect();
        let picked: Vec<usize> = admit(&model(), &[], &shuffled, &room).unwrap().iter().map(|&i| order[i]).collect();
        prop_assert_eq!(picked, admit(&model(), &[], &waiting, &room).unwrap());
    }
}
