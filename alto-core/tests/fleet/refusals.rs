//! Tasks, settings and schedulers that a fleet can't do with.

use alto_core::fleet::{Event, Fleet, FleetError, Replayed, Timeline, Virtual};
use alto_sched::{Backfill, Choice, Cluster, Plan, PlanError, Scheduler, Snapshot, Task};

use super::follow::follow;
use super::setup::{plain, site};

fn bad_tasks() -> Vec<(Task, &'static str)> {
    let with = |option: Choice| Task { options: vec![option], ..Task::rigid("odd", 1, 5.0) };
    let choice =
        |kind: Option<&str>, width, duration| Choice { kind: kind.map(str::to_owned), width, duration, memory: 0 };
    vec![
        (
            with(choice(Some("B200"), 1, 5.0)),
            "needs devices of kind \"B200\" in option 0, which no node of the cluster has",
        ),
        (with(choice(None, 3, 5.0)), "needs 3 devices on one node in option 0, but at most 2 of its kind are on one"),
        (with(choice(None, 0, 5.0)), "needs 0 devices in option 0, expected at least 1"),
        (
            with(choice(None, 1, f64::NAN)),
            "has a duration of infinity or NaN in option 0, expected over 0 and at most 2251799814 s",
        ),
        (Task { options: vec![], ..Task::rigid("odd", 1, 1.0) }, "has no option, expected at least 1"),
    ]
}

#[test]
fn a_task_that_cannot_run_ends_the_run_with_an_error_that_names_it() {
    for (task, fault) in bad_tasks() {
        let mut site = site(&[plain(0.0, "good", 1, 5.0)]);
        site.submit(1.0, task, |_| Timeline::lasting(1.0));
        let error = Fleet::new(Cluster::single("H100", 2)).run(&Backfill, &mut site, &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string(), format!("task 1 (\"odd\") {fault}"));
    }
}

#[test]
fn it_is_refused_and_the_others_go_on_if_the_caller_says_so() {
    let mut site = site(&[plain(0.0, "good", 1, 5.0)]);
    for (task, _) in bad_tasks() {
        site.submit(0.5, task, |_| Timeline::lasting(1.0));
    }
    site.submit(1.0, Task::rigid("too", 2, 3.0), |_| Timeline::lasting(3.0));
    let fleet = Fleet { skip_bad: true, ..Fleet::new(Cluster::single("H100", 2)) };
    let mut log: Vec<Event> = vec![];
    let report = fleet.run(&Backfill, &mut site, &mut |event| log.push(event.clone())).unwrap();
    follow(&log, &fleet.cluster);
    assert_eq!((report.totals.finished, report.totals.refused), (2, 5));
    assert_eq!((report.tasks[6].ended, report.totals.makespan), (Some(8.0), 8.0));
    for ((_, fault), task) in bad_tasks().iter().zip(&report.tasks[1..]) {
        assert_eq!((task.failure.as_deref(), task.started), (Some(*fault), None));
    }
    // Also a log with such a task survives a file and replays, though JSON has no NaN.
    let text = serde_json::to_string(&log).unwrap();
    let mut again = vec![];
    let mut site = Replayed::new(serde_json::from_str::<Vec<Event>>(&text).unwrap());
    fleet.run(&Backfill, &mut site, &mut |event| again.push(event.clone())).unwrap();
    assert_eq!(again, log);
}

#[test]
fn a_task_that_would_end_past_all_time_is_refused_alone() {
    let long = 2e9;
    let tasks = [plain(0.0, "a", 1, long), plain(0.0, "b", 1, long), plain(0.0, "c", 1, 10.0)];
    let fleet = Fleet { skip_bad: true, ..Fleet::new(Cluster::single("H100", 1)) };
    let mut log = vec![];
    let report =
        fleet.run(&alto_sched::ShortestFirst, &mut site(&tasks), &mut |event| log.push(event.clone())).unwrap();
    assert_eq!((report.totals.finished, report.totals.refused), (2, 1));
    follow(&log, &fleet.cluster);
    let mut again = vec![];
    fleet
        .run(&alto_sched::ShortestFirst, &mut Replayed::new(log.clone()), &mut |event| again.push(event.clone()))
        .unwrap();
    assert_eq!(again, log);
    let strict = Fleet { skip_bad: false, ..fleet };
    let error = strict.run(&alto_sched::ShortestFirst, &mut site(&tasks), &mut |_| {}).unwrap_err();
    assert!(error.to_string().starts_with("task 1 (\"b\") would end"), "{error}");
}

#[test]
fn a_threshold_that_is_no_share_is_an_error() {
    for threshold in [-0.1, f64::NAN, f64::INFINITY] {
        let fleet = Fleet { threshold, ..Fleet::new(Cluster::single("H100", 1)) };
        let error = fleet.run(&Backfill, &mut Virtual::default(), &mut |_| {}).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("fleet: threshold is {threshold}, but must be a finite number of at least 0")
        );
    }
}

/// Puts every task on the first device, now.
#[derive(Debug)]
struct Careless;

impl Scheduler for Careless {
    fn plan(&self, snapshot: &Snapshot) -> Result<Plan, PlanError> {
        let mut plan = Backfill.plan(snapshot)?;
        plan.placements.iter_mut().flatten().for_each(|placement| placement.devices = vec![0]);
        Ok(plan)
    }
}

#[test]
fn a_plan_that_cannot_be_carried_out_is_not_carried_out() {
    let mut events = vec![];
    let tasks = [plain(0.0, "a", 1, 5.0), plain(0.0, "b", 1, 5.0)];
    let fleet = Fleet::new(Cluster::single("H100", 2));
    let error = fleet.run(&Careless, &mut site(&tasks), &mut |event| events.push(event.clone())).unwrap_err();
    assert!(matches!(error, FleetError::BrokenPlan { .. }), "{error:?}");
    assert_eq!(error.to_string(), "the plan of Careless can't be carried out");
    assert_eq!(super::setup::starts(&events), []);
    assert!(fleet.dry_run(&Careless, tasks.map(|task| task.task).to_vec()).is_err());
}

#[test]
fn a_cluster_that_lists_a_device_twice_is_an_error() {
    let mut cluster = Cluster::default().with("H100", 4, 2);
    cluster.nodes[1].devices[0] = 1;
    let error = Fleet::new(cluster).run(&Backfill, &mut site(&[plain(0.0, "a", 1, 5.0)]), &mut |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "device 1 is listed twice, in node 0 and in node 1");
}

#[test]
fn settings_come_out_of_files_and_unknown_ones_are_errors() {
    let text = r#"{"cluster": {"nodes": [{"kind": "H100", "devices": [0, 1]}]}}"#;
    let fleet: Fleet = serde_json::from_str(text).unwrap();
    assert_eq!(fleet, Fleet::new(Cluster::single("H100", 2)));
    let text = text.replace("\"cluster\"", "\"treshold\": 0.2, \"cluster\"");
    assert!(serde_json::from_str::<Fleet>(&text).unwrap_err().to_string().starts_with("unknown field `treshold`"));
}
