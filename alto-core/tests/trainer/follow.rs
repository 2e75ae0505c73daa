//! An independent check of a run's events.

use alto_core::trainer::EventKind;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Where {
    Unseen,
    Resident,
    Parked,
    Kept,
    Ended,
}

/// Checks that every job goes from place to place as it may, that no more than `slots` have one at a time, and that all
/// end. Returns the most that had one.
pub(crate) fn follow(events: &[EventKind], jobs: usize, slots: Option<usize>) -> usize {
    let mut places = vec![Where::Unseen; jobs];
    let mut most = 0;
    for event in events {
        let moves: Vec<(usize, &[Where], Where)> = match event {
            EventKind::Started { job, .. } => vec![(*job, &[Where::Unseen], Where::Resident)],
            EventKind::Resumed { job, .. } => vec![(*job, &[Where::Kept], Where::Resident)],
            EventKind::Evaluated { job, .. } | EventKind::Skipped { job, .. } => {
                vec![(*job, &[Where::Resident], Where::Resident)]
            }
            EventKind::Parked { job, .. } => vec![(*job, &[Where::Resident], Where::Parked)],
            EventKind::RungClosed { kept, .. } => {
                kept.iter().map(|&job| (job, &[Where::Parked][..], Where::Kept)).collect()
            }
            EventKind::Ended { job, .. } => vec![(*job, &[Where::Resident, Where::Parked], Where::Ended)],
            _ => vec![],
        };
        for (job, from, to) in moves {
            assert!(from.contains(&places[job]), "job {job} is {:?} at {event:?}", places[job]);
            places[job] = to;
        }
        let residents = places.iter().filter(|&&place| place == Where::Resident).count();
        assert!(slots.is_none_or(|slots| residents <= slots), "{residents} jobs have a place at {event:?}");
        most = most.max(residents);
    }
    assert!(places.iter().all(|&place| place == Where::Ended), "not all ended: {places:?}");
    most
}
