//! From the event log of a run the same decisions follow.

use alto_core::fleet::{Event, Fleet, FleetError, Replayed};
use alto_sched::{Backfill, Cluster, FirstComeFirstServed, Scheduler, ShortestFirst};
use proptest::prelude::*;

use super::setup::{mixed_cluster, plain, run, schedulers, workload};

fn replay(fleet: &Fleet, scheduler: &dyn Scheduler, log: &[Event]) -> Result<Vec<Event>, FleetError> {
    let mut events = vec![];
    fleet.run(scheduler, &mut Replayed::new(log.to_vec()), &mut |event| events.push(event.clone()))?;
    Ok(events)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_replays_to_itself_also_out_of_a_file(workload in workload(20), bound in prop::option::of(0..4_u32)) {
        let fleet = Fleet { overtaking: bound, ..Fleet::new(mixed_cluster()) };
        for scheduler in schedulers() {
            let (_, log) = run(&fleet, &*scheduler, &workload);
            let lines: Vec<String> = log.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
            let stored: Vec<Event> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
            prop_assert_eq!(&replay(&fleet, &*scheduler, &stored).unwrap(), &log);
        }
    }
}

#[test]
fn other_decisions_are_found_out() {
    let tasks = [plain(0.0, "a", 1, 10.0), plain(1.0, "long", 1, 9.0), plain(2.0, "short", 1, 3.0)];
    let fleet = Fleet::new(Cluster::single("H100", 1));
    let (_, log) = run(&fleet, &FirstComeFirstServed, &tasks);
    assert!(matches!(replay(&fleet, &ShortestFirst, &log), Err(FleetError::NotRunning { task: 1, running: 1 })));
}

#[test]
fn a_log_that_stops_before_its_end_is_replayed_as_far_as_it_goes() {
    let fleet = Fleet::new(Cluster::single("H100", 1));
    let (_, log) = run(&fleet, &Backfill, &[plain(0.0, "a", 1, 10.0)]);
    let mut events = vec![];
    let mut site = Replayed::new(log[..3].to_vec());
    let error = fleet.run(&Backfill, &mut site, &mut |event| events.push(event.clone())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the site has nothing more to tell, but 1 tasks run and 0 wait, the first of them task 0"
    );
    assert_eq!(events, log[..3]);
}

#[test]
fn at_the_end_of_a_log_time_does_not_go_on_for_those_who_wait() {
    let fleet = Fleet::new(Cluster::single("H100", 1));
    let later = |at, name, release| {
        let submitted = plain(at, name, 1, 10.0);
        super::setup::Submitted { task: alto_sched::Task { release, ..submitted.task }, ..submitted }
    };
    let (_, log) = run(&fleet, &Backfill, &[plain(0.0, "a", 1, 10.0), later(1.0, "b", 0.0), later(1.0, "c", 50.0)]);
    for cut in 0..log.len() {
        let mut events = vec![];
        let mut site = Replayed::new(log[..cut].to_vec());
        let outcome = fleet.run(&Backfill, &mut site, &mut |event| events.push(event.clone()));
        // The last turn is decided upon to its end.
        let last = cut.checked_sub(1).map_or(0, |last| log.iter().filter(|event| event.turn <= log[last].turn).count());
        assert!(events.len() <= last && events[..cut] == log[..cut], "cut after {cut}: {events:#?}");
        assert!(cut == 0 || matches!(outcome, Err(FleetError::Silent { .. })), "cut after {cut}: {outcome:?}");
    }
}

#[test]
fn a_log_of_another_version_or_with_more_in_it_is_no_log() {
    let (_, log) = run(&Fleet::new(Cluster::single("H100", 1)), &Backfill, &[plain(0.0, "a", 1, 10.0)]);
    let mut value = serde_json::to_value(&log[0]).unwrap();
    value["version"] = 9.into();
    let error = serde_json::from_value::<Event>(value.clone()).unwrap_err().to_string();
    assert_eq!(error, "version 9 is unknown, expected 1");
    value["version"] = 1.into();
    value["mood"] = "good".into();
    assert!(serde_json::from_value::<Event>(value).is_err());
}
