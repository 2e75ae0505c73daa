//! Bad input: who is named, with what numbers, and what becomes of the others.

use alto_sched::{
    Choice, Cluster, LongestFirst, Makespan, Node, Plan, PlanError, Refused, Running, RunningFault, Scheduler,
    Snapshot, Task, TaskFault,
};

use crate::lists::lists;

/// Tasks of which the one at index 1 is bad.
fn with(bad: Task) -> Snapshot {
    let waiting = vec![Task::rigid("good", 2, 3.0), bad, Task::rigid("fine", 1, 1.0)];
    Snapshot { cluster: Cluster::single("H100", 4), waiting, ..Snapshot::default() }
}

fn option(kind: Option<&str>, width: u32, duration: f64, memory: u64) -> Choice {
    Choice { kind: kind.map(str::to_owned), width, duration, memory }
}

fn bad_tasks() -> Vec<(Task, &'static str)> {
    let rigid = |width, duration| Task::rigid("bad", width, duration);
    vec![
        (rigid(5, 1.0), "needs 5 devices on one node in option 0, but at most 4 of its kind are on one"),
        (rigid(0, 1.0), "needs 0 devices in option 0, expected at least 1"),
        (rigid(1, 0.0), "has a duration of 0 s in option 0, expected over 0 and at most 2251799814 s"),
        (rigid(1, -2.5), "has a duration of -2.5 s in option 0, expected over 0 and at most 2251799814 s"),
        (rigid(1, f64::NAN), "has a duration of infinity or NaN in option 0, expected over 0 and at most 2251799814 s"),
        (rigid(1, 1e300), "has a duration of 1e300 s in option 0"),
        (Task { release: -1.0, ..rigid(1, 1.0) }, "has a release of -1 s, expected 0 to 2251799814 s"),
        (Task { release: f64::INFINITY, ..rigid(1, 1.0) }, "has a release of infinity or NaN, expected"),
        (Task { weight: -1.0, ..rigid(1, 1.0) }, "has a weight of -1, expected 0 to 1e100"),
        (Task { weight: f64::INFINITY, ..rigid(1, 1.0) }, "has a weight of infinity or NaN, expected 0 to 1e100"),
        (Task { weight: 1e308, ..rigid(1, 1.0) }, "has a weight of 1e308, expected 0 to 1e100"),
        (Task { options: vec![], ..rigid(1, 1.0) }, "has no option, expected at least 1"),
        (
            Task { options: vec![option(None, 1, 1.0, 0), option(Some("A100"), 1, 1.0, 0)], ..rigid(1, 1.0) },
            "needs devices of kind \"A100\" in option 1, which no node of the cluster has",
        ),
    ]
}

#[test]
fn a_bad_task_is_named_with_what_is_wrong() {
    for (bad, message) in bad_tasks() {
        let error = LongestFirst.plan(&with(bad)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("task 1 (\"bad\") {message}")), "{error}");
    }
}

#[test]
fn the_others_are_planned_when_the_caller_says_so() {
    for (bad, message) in bad_tasks() {
        let snapshot = Snapshot { skip_bad: true, ..with(bad) };
        let plan = LongestFirst.plan(&snapshot).unwrap();
        plan.check(&snapshot).unwrap();
        assert!(plan.placements[0].is_some() && plan.placements[1].is_none() && plan.placements[2].is_some());
        let [Refused { task: 1, reason }] = &plan.refused[..] else { panic!("{:?}", plan.refused) };
        assert!(reason.to_string().starts_with(message), "{reason}");
        let file = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&file).unwrap(), plan);
    }
}

#[test]
fn memory_that_no_device_has_is_told() {
    let mut snapshot = with(Task { options: vec![option(None, 2, 1.0, 80)], ..Task::rigid("bad", 1, 1.0) });
    snapshot.cluster.nodes[0].memory = Some(40);
    let fault = TaskFault::NeverFits { option: 0, width: 2, memory: 80, most: 0 };
    let expected = PlanError::Task { task: 1, name: "bad".to_owned(), fault };
    assert_eq!(LongestFirst.plan(&snapshot), Err(expected));
}

#[test]
fn a_task_must_fit_on_one_node() {
    let snapshot = Snapshot { cluster: Cluster::default().with("H100", 8, 2), ..with(Task::rigid("bad", 3, 1.0)) };
    let error = LongestFirst.plan(&snapshot).unwrap_err().to_string();
    assert!(error.contains("needs 3 devices") && error.contains("at most 2"), "{error}");
}

#[test]
fn the_heaviest_tasks_have_a_finite_sum() {
    let heavy = || Task { weight: Task::MOST_WEIGHT, ..Task::rigid("heavy", 1, 2e5) };
    let waiting = (0..10_000).map(|_| heavy()).collect();
    let snapshot = Snapshot { cluster: Cluster::single("H100", 1), waiting, ..Snapshot::default() };
    let plan = LongestFirst.plan(&snapshot).unwrap();
    assert!(plan.weighted_completion.is_finite());
    plan.check(&snapshot).unwrap();
}

/// With all schedulers: the error names the longest, and without it the others are planned.
#[track_caller]
fn too_late(snapshot: &Snapshot, expected: &[usize], message: &str) {
    let search = Makespan { steps: 200, ..Makespan::default() };
    for scheduler in lists().into_iter().chain([Box::new(search) as Box<dyn Scheduler>]) {
        let error = scheduler.plan(snapshot).expect_err("it takes too long").to_string();
        assert_eq!(error, message, "{scheduler:?}");
        let snapshot = Snapshot { skip_bad: true, ..snapshot.clone() };
        let plan = scheduler.plan(&snapshot).expect("a plan of the others");
        plan.check(&snapshot).expect("a good plan");
        let refused: Vec<usize> = plan.refused.iter().map(|refused| refused.task).collect();
        assert_eq!(refused, expected, "{scheduler:?}");
    }
}

#[test]
fn of_tasks_that_pass_the_latest_time_the_longest_are_named() {
    let long = |name: &str| Task::rigid(name, 2, 2e9);
    let waiting = vec![Task::rigid("ok", 1, 5.0), long("l1"), long("l2")];
    let snapshot = Snapshot { cluster: Cluster::single("H100", 2), waiting, ..Snapshot::default() };
    let message = "would end at 4000000005 s if it ran after all others, past the latest time of 2251799814 s";
    too_late(&snapshot, &[2], &format!("task 2 (\"l2\") {message}"));
}

#[test]
fn a_task_that_begins_too_late_to_end_in_time_is_named() {
    let late = Task { release: 2.25e9, ..Task::rigid("late", 1, 5e6) };
    let message = "would end at 2255000000 s if it ran after all others, past the latest time of 2251799814 s";
    too_late(&with(late), &[1], &format!("task 1 (\"late\") {message}"));
}

#[test]
fn durations_that_add_up_to_more_than_can_be_counted_are_planned_where_there_are_the_devices() {
    let mut waiting = vec![Task::rigid("long", 1, 2.2e9); 3000];
    waiting.push(Task::rigid("short", 1, 1.0));
    let mut snapshot = Snapshot { cluster: Cluster::single("H100", 3001), waiting, ..Snapshot::default() };
    let plan = LongestFirst.plan(&snapshot).unwrap();
    plan.check(&snapshot).unwrap();
    assert_eq!((plan.makespan, plan.proven), (2.2e9, true));

    snapshot = Snapshot { cluster: Cluster::single("H100", 2), skip_bad: true, ..snapshot };
    let plan = LongestFirst.plan(&snapshot).unwrap();
    plan.check(&snapshot).unwrap();
    assert_eq!((plan.refused.len(), plan.placements[3000].is_some()), (2998, true));
}

#[test]
fn a_cluster_has_a_limit_to_its_devices() {
    let devices = Cluster::MOST_DEVICES;
    let mut snapshot = with(Task::rigid("t", 1, 1.0));
    snapshot.cluster = Cluster::single("H100", devices);
    let plan = LongestFirst.plan(&snapshot).unwrap();
    plan.check(&snapshot).unwrap();
    snapshot.cluster.nodes.push(Node { kind: "H100".to_owned(), devices: vec![devices], memory: None });
    let error = LongestFirst.plan(&snapshot).unwrap_err();
    assert_eq!(error, PlanError::TooManyDevices { devices: u64::from(devices) + 1 });
    assert_eq!(error.to_string(), "the cluster has 1048577 devices, expected at most 1048576");
}

#[test]
#[should_panic(expected = "1048577 devices, expected at most 1048576")]
fn a_cluster_is_not_made_past_that_limit() {
    let _ = Cluster::single("H100", Cluster::MOST_DEVICES).with("A100", 1, 1);
}

#[test]
fn a_device_twice_in_the_cluster_is_named() {
    let mut snapshot = with(Task::rigid("t", 1, 1.0));
    let copy = snapshot.cluster.nodes[0].clone();
    snapshot.cluster.nodes.push(copy);
    assert_eq!(LongestFirst.plan(&snapshot), Err(PlanError::DeviceTwice { device: 0, first: 0, second: 1 }));
}

#[test]
fn running_tasks_are_named_too() {
    let run = |devices: &[u32], until| Running { name: "r".to_owned(), devices: devices.to_vec(), until };
    let plan = |running| LongestFirst.plan(&Snapshot { running, ..with(Task::rigid("t", 1, 1.0)) });
    let error = |running, fault| Err(PlanError::Running { running, name: "r".to_owned(), fault });
    assert_eq!(plan(vec![run(&[9], 1.0)]), error(0, RunningFault::UnknownDevice { device: 9 }));
    assert_eq!(plan(vec![run(&[1, 1], 1.0)]), error(0, RunningFault::DeviceTwice { device: 1, other: 0 }));
    let twice = vec![run(&[1], 1.0), run(&[0, 1], 2.0)];
    assert_eq!(plan(twice), error(1, RunningFault::DeviceTwice { device: 1, other: 0 }));
    assert_eq!(plan(vec![run(&[1], -1.0)]), error(0, RunningFault::BadEnd { until: -1.0 }));
    let error = plan(vec![run(&[1], f64::NAN)]).unwrap_err().to_string();
    assert_eq!(error, "running task 0 (\"r\") is expected to end at NaN s, expected 0 to 2251799814 s");
}

#[test]
fn a_plan_of_another_version_is_refused() {
    let plan = LongestFirst.plan(&Snapshot::default()).unwrap();
    let file = serde_json::to_string(&plan).unwrap().replace("\"version\":1", "\"version\":2");
    let error = serde_json::from_str::<Plan>(&file).unwrap_err().to_string();
    assert!(error.contains("the plan has version 2, expected 1"), "{error}");
}

#[test]
fn a_previous_plan_for_other_tasks_is_refused() {
    let snapshot = Snapshot { previous: vec![None], ..with(Task::rigid("t", 1, 1.0)) };
    assert_eq!(LongestFirst.plan(&snapshot), Err(PlanError::PreviousLength { found: 1, expected: 3 }));
    let now = Snapshot { now: f64::NAN, ..with(Task::rigid("t", 1, 1.0)) };
    assert!(matches!(LongestFirst.plan(&now), Err(PlanError::BadNow { .. })));
}
