//! What a run says of itself.

use alto_core::fleet::{Event, Fleet, Report, Timeline, Virtual};
use alto_sched::{Backfill, Cluster, Task};

use super::setup::{Submitted, plain, run, site};

#[test]
fn waits_runs_devices_and_sums_are_right() {
    let tasks = [
        plain(10.0, "a", 2, 20.0),
        Submitted { fails: true, factor: 0.5, ..plain(15.0, "b", 4, 10.0) },
        plain(16.0, "c", 1, 24.0),
    ];
    // Aggressive backfilling: c starts at once beside a, and b waits for both.
    let (report, _) = run(&Fleet::new(Cluster::single("H100", 4)), &Backfill, &tasks);
    let found: Vec<_> = report.tasks.iter().map(|task| (task.wait(), task.run(), task.devices.len())).collect();
    assert_eq!(found, [(Some(0.0), Some(20.0), 2), (Some(25.0), Some(5.0), 4), (Some(0.0), Some(24.0), 1)]);
    assert_eq!(report.tasks[1].overtaken, 1);
    let totals = report.totals;
    assert_eq!((totals.finished, totals.failed, totals.makespan), (2, 1, 35.0));
    assert!((totals.utilization - (40.0 + 20.0 + 24.0) / (4.0 * 35.0)).abs() < 1e-12, "{totals:?}");
    assert!((totals.mean_wait - 25.0 / 3.0).abs() < 1e-12 && totals.longest_wait == 25.0, "{totals:?}");
    assert_eq!(totals.run_seconds, 49.0);
}

#[test]
fn the_share_of_time_spent_on_profiles_is_told() {
    let mut site = Virtual::default();
    site.submit_profiled(0.0, Task::rigid("a", 1, 9.0), 1.0, |_| Timeline::lasting(9.0));
    site.submit(0.0, Task::rigid("a", 1, 10.0), |_| Timeline::lasting(10.0));
    let report = Fleet::new(Cluster::single("H100", 1)).run(&Backfill, &mut site, &mut |_| {}).unwrap();
    assert_eq!((report.totals.profile_seconds, report.totals.profile_share()), (1.0, 0.05));
}

#[test]
fn seconds_of_a_profile_that_are_none_count_as_none() {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
        let mut site = Virtual::default();
        site.submit_profiled(0.0, Task::rigid("a", 1, 9.0), odd, |_| Timeline::lasting(9.0));
        let mut log = vec![];
        let fleet = Fleet::new(Cluster::single("H100", 1));
        let report = fleet.run(&Backfill, &mut site, &mut |event| log.push(event.clone())).unwrap();
        assert_eq!(report.totals.profile_seconds, 0.0);
        let stored: Vec<Event> = serde_json::from_str(&serde_json::to_string(&log).unwrap()).unwrap();
        assert_eq!(stored, log);
    }
}

#[test]
fn sums_of_nothing_are_zero_and_not_below() {
    let report = Fleet::new(Cluster::single("H100", 1)).run(&Backfill, &mut site(&[]), &mut |_| {}).unwrap();
    let text = format!("{}{}", report.table(), serde_json::to_string(&report.totals).unwrap());
    assert!(!text.contains("-0"), "{text}");
}

#[test]
fn a_report_survives_a_file_and_is_a_table() {
    let mut site = site(&[plain(0.0, "first", 2, 20.0)]);
    site.submit(1.0, Task::rigid("huge", 9, 1.0), |_| Timeline::lasting(1.0));
    site.submit(2.0, Task::rigid("third", 1, 5.0), |_| Timeline::failing(3.0, "out of memory"));
    let fleet = Fleet { skip_bad: true, ..Fleet::new(Cluster::single("H100", 4)) };
    let report = fleet.run(&Backfill, &mut site, &mut |_| {}).unwrap();
    let stored: Report = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
    assert_eq!(stored, report);
    let table = report.table().to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "task   came  waited   ran  devices  ended");
    assert_eq!(lines[1], "first   0.0     0.0  20.0      0-1  finished");
    assert!(lines[2].starts_with("huge    1.0       -     -        -  refused: needs 9 devices"), "{table}");
    assert_eq!(lines[3], "third   2.0     0.0   3.0        2  failed: out of memory");
    assert_eq!(lines[5], "1 tasks ended, 1 failed, 1 were refused; 20.0 s in all, devices in use 53.8% of it.");
}

#[test]
fn a_run_of_nothing_is_a_report_too() {
    let report = Fleet::new(Cluster::single("H100", 4)).run(&Backfill, &mut Virtual::default(), &mut |_| {}).unwrap();
    assert_eq!((report.tasks.len(), report.totals.makespan, report.totals.utilization), (0, 0.0, 0.0));
}

#[test]
fn a_report_made_of_the_events_is_the_runs_but_for_the_time_that_planning_took() {
    let fleet = Fleet { skip_bad: true, ..Fleet::new(Cluster::single("H100", 4)) };
    let mut site = site(&[plain(0.0, "a", 2, 20.0), Submitted { fails: true, ..plain(1.0, "b", 4, 10.0) }]);
    site.submit_profiled(2.0, Task::rigid("c", 1, 9.0), 1.5, |_| Timeline::lasting(9.0));
    site.submit(3.0, Task::rigid("too wide", 5, 9.0), |_| Timeline::lasting(9.0));
    let mut log: Vec<Event> = vec![];
    let mut report = fleet.run(&Backfill, &mut site, &mut |event| log.push(event.clone())).unwrap();
    assert!(report.totals.planning_seconds.take().is_some_and(|seconds| seconds > 0.0));
    assert_eq!(Report::from_events(&fleet, &Backfill, &log).unwrap(), report);
    let totals = report.totals;
    assert_eq!((totals.finished, totals.failed, totals.refused, totals.unfinished), (2, 1, 1, 0));
}

#[test]
fn the_first_events_of_a_run_are_a_report_of_what_was_until_then() {
    let fleet = Fleet::new(Cluster::single("H100", 4));
    let (_, log) = run(&fleet, &Backfill, &[plain(10.0, "a", 2, 20.0), plain(15.0, "b", 4, 10.0)]);
    let until = log.iter().position(|event| event.seconds > 15.0).expect("a later event");
    let report = Report::from_events(&fleet, &Backfill, &log[..until]).unwrap();
    let totals = report.totals;
    assert_eq!((totals.finished, totals.unfinished, totals.replans), (0, 2, 2));
    // Two of four devices, for the 5 s since the first came.
    assert_eq!((totals.makespan, totals.utilization, totals.run_seconds), (5.0, 0.5, 5.0));
    let table = report.table().to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(&lines[1..3], ["a     10.0     0.0    -      0-1  runs", "b     15.0       -    -        -  waits"]);
    assert_eq!(lines[5], "2 tasks run or wait still.");
}

#[test]
fn events_that_begin_in_the_middle_are_an_error() {
    let fleet = Fleet::new(Cluster::single("H100", 1));
    let (_, log) = run(&fleet, &Backfill, &[plain(0.0, "a", 1, 10.0), plain(5.0, "b", 1, 10.0)]);
    let middle = log.iter().position(|event| event.seconds > 0.0).expect("a later event");
    let error = Report::from_events(&fleet, &Backfill, &log[middle..]).unwrap_err();
    let expected = "the events tell of task 1, but 0 tasks have come; expected all events of a run from its first on";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_task_has_one_line_in_the_table_whatever_it_is_called() {
    let mut site = Virtual::default();
    site.submit(0.0, Task::rigid("two\nlines", 1, 1.0), |_| Timeline::failing(1.0, "one\r\nand another"));
    let report = Fleet::new(Cluster::single("H100", 1)).run(&Backfill, &mut site, &mut |_| {}).unwrap();
    let table = report.table().to_string();
    assert!(table.lines().nth(1).is_some_and(|line| line.starts_with("two lines")), "{table}");
    assert!(table.contains("failed: one  and another\n\n"), "{table}");
}
