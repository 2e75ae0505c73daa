//! What would be done, of which nothing is.

use alto_core::fleet::Fleet;
use alto_sched::{Backfill, Choice, Cluster, Makespan, Task};

#[test]
fn the_plan_is_drawn_with_makespan_and_bound() {
    let cluster = Cluster::default().with("H100", 2, 2).with("A100", 1, 1);
    let on = |kind: &str, width, duration| vec![Choice { kind: Some(kind.to_owned()), width, duration, memory: 0 }];
    let task = |name: &str, release, options| Task { name: name.to_owned(), release, weight: 1.0, options };
    let tasks = vec![
        task("wide", 0.0, on("H100", 2, 50.0)),
        task("late", 75.0, on("H100", 1, 25.0)),
        task("small", 0.0, on("A100", 1, 10.0)),
    ];
    let dry = Fleet::new(cluster).dry_run(&Makespan::default(), tasks).unwrap();
    let text = dry.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        format!("H100    0 {}{}", "a".repeat(50), if lines[0].contains('b') { late() } else { nobody() })
    );
    assert_eq!([lines[0], lines[1]].concat().matches('b').count(), 25);
    assert_eq!(lines[2], format!("A100    2 {}{}", "c".repeat(10), ".".repeat(90)));
    assert_eq!(lines[3], "a: wide from 0.0 to 50.0 s");
    assert_eq!(lines[6], "The last task ends after 100.0 s, which no plan can do better.");
}

fn late() -> String {
    format!("{}{}", ".".repeat(25), "b".repeat(25))
}

fn nobody() -> String {
    ".".repeat(50)
}

#[test]
fn what_is_not_proven_says_how_far_it_may_be_from_the_best() {
    let tasks = vec![Task::rigid("a", 1, 1.0), Task::rigid("b", 1, 10.0), Task::rigid("c", 1, 9.0)];
    let dry = Fleet::new(Cluster::single("H100", 2)).dry_run(&Backfill, tasks).unwrap();
    assert!(dry.to_string().ends_with("The last task ends after 10.0 s, which no plan can do better.\n"), "{dry}");
    let tasks = vec![Task::rigid("a", 1, 5.0), Task::rigid("b", 1, 5.0), Task::rigid("c", 1, 10.0)];
    let dry = Fleet::new(Cluster::single("H100", 2)).dry_run(&Backfill, tasks).unwrap();
    let last = "The last task ends after 15.0 s; no plan can do it in less than 10.0 s, so this is at most 50.0% from the best.\n";
    assert!(dry.to_string().ends_with(last), "{dry}");
}

#[test]
fn a_task_that_cannot_run_is_named_or_left_out() {
    let tasks = || vec![Task::rigid("a", 1, 5.0), Task::rigid("huge", 9, 5.0)];
    let fleet = Fleet::new(Cluster::single("H100", 2));
    let error = fleet.dry_run(&Backfill, tasks()).unwrap_err();
    assert!(error.to_string().starts_with("task 1 (\"huge\") needs 9 devices"), "{error}");
    let dry = Fleet { skip_bad: true, ..fleet }.dry_run(&Backfill, tasks()).unwrap();
    assert!(dry.to_string().contains("Task 1 (huge) is left out: it needs 9 devices"), "{dry}");
}

#[test]
fn an_empty_plan_is_drawn_too() {
    let dry = Fleet::new(Cluster::single("H100", 1)).dry_run(&Backfill, vec![]).unwrap();
    let expected =
        format!("H100    0 {}\nThe last task ends after 0.0 s, which no plan can do better.\n", ".".repeat(100));
    assert_eq!(dry.to_string(), expected);
}
