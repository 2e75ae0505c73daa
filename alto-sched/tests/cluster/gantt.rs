//! Plans as drawings.

use alto_sched::{Backfill, Cluster, Running, Scheduler, Snapshot, Task};

#[test]
fn running_tasks_and_idle_devices_are_drawn_too() {
    let running = vec![Running { name: "earlier".to_owned(), devices: vec![1], until: 25.0 }];
    let waiting = vec![Task::rigid("one", 1, 50.0), Task::rigid("other", 2, 50.0), Task::rigid("blink", 1, 1e-3)];
    let snapshot = Snapshot { cluster: Cluster::single("H100", 3), running, waiting, now: 5.0, ..Snapshot::default() };
    let plan = Backfill.plan(&snapshot).unwrap();
    // From 5 to 75 s: the wide one waits for the device that is taken.
    assert_eq!((plan.makespan, plan.placements[1].as_ref().map(|placement| placement.start)), (70.0, Some(25.0)));
    let text = plan.gantt(&snapshot).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("H100    0 {}{}", "a".repeat(71), ".".repeat(29)));
    assert_eq!(lines[1], format!("H100    1 {}{}", "#".repeat(29), "b".repeat(71)));
    assert_eq!(lines[2], format!("H100    2 c{}{}", ".".repeat(28), "b".repeat(71)));
    assert_eq!(lines[3], "a: one from 5.0 to 55.0 s");
    assert_eq!(lines.len(), 6);
}
