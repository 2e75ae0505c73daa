//! Work on threads that does all it can to be missed, or never to be.

use std::fmt;
use std::panic::panic_any;

use alto_core::fleet::{Fleet, Replayed, Report, Threads};
use alto_sched::{Backfill, Cluster, Task};

use super::checker::{Promise, check};

fn run(fleet: &Fleet, mut site: Threads) -> Report {
    fleet.run(&Backfill, &mut site, &mut |_| {}).expect("a run without faults")
}

fn task(width: u32) -> Task {
    Task::rigid("t", width, 0.01)
}

#[test]
fn refused_work_that_could_submit_more_does_not_keep_the_site_open() {
    let fleet = Fleet { skip_bad: true, ..Fleet::new(Cluster::single("CPU", 2)) };
    let (site, submitter) = Threads::new();
    let later = submitter.clone();
    submitter.submit(task(3), move |_, _| {
        later.submit(task(1), |_, _| Ok(()));
        Ok(())
    });
    drop(submitter);
    let report = run(&fleet, site);
    assert_eq!((report.totals.refused, report.tasks.len()), (1, 1));
}

#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Unspeakable {}

#[test]
fn an_error_that_panics_when_it_is_told_is_a_failure() {
    let (site, submitter) = Threads::new();
    submitter.submit(task(1), |_, _| Err(Box::new(Unspeakable)));
    submitter.submit(task(1), |_, _| Ok(()));
    drop(submitter);
    let report = run(&Fleet::new(Cluster::single("CPU", 1)), site);
    assert_eq!((report.totals.failed, report.totals.finished), (1, 1));
    assert_eq!(report.tasks[0].failure.as_deref(), Some("it panicked: no words"));
}

struct Clinging;

impl Drop for Clinging {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("not so fast");
        }
    }
}

#[test]
fn a_panic_with_something_that_panics_when_dropped_is_a_failure() {
    let (site, submitter) = Threads::new();
    submitter.submit(task(1), |_, _| panic_any(Clinging));
    submitter.submit(task(1), |_, _| Ok(()));
    drop(submitter);
    let report = run(&Fleet::new(Cluster::single("CPU", 1)), site);
    assert_eq!(report.tasks[0].failure.as_deref(), Some("it panicked: with something that is no text"));
    assert_eq!((report.totals.failed, report.totals.finished), (1, 1));
}

#[test]
fn a_task_that_never_stops_telling_does_not_keep_others_from_starting() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let (site, submitter) = Threads::new();
    let quiet = Arc::new(AtomicBool::new(false));
    for _ in 0..4 {
        let quiet = quiet.clone();
        submitter.submit(task(1), move |_, watch| {
            while !quiet.load(Ordering::Relaxed) {
                watch.expect(5.0);
            }
            Ok(())
        });
    }
    submitter.submit(task(1), move |_, watch| {
        watch.expect(0.0);
        Ok(())
    });
    submitter.submit(task(1), move |_, _| {
        quiet.store(true, Ordering::Relaxed);
        Ok(())
    });
    drop(submitter);
    let report = run(&Fleet::new(Cluster::single("CPU", 5)), site);
    assert_eq!(report.totals.finished, 6);
}

#[test]
fn a_thousand_tiny_tasks_from_ten_threads_that_come_and_go() {
    let (site, submitter) = Threads::new();
    for _ in 0..10 {
        let submitter = submitter.clone();
        std::thread::spawn(move || {
            for index in 0..100_u32 {
                let more = submitter.clone();
                submitter.submit(task(1 + index % 3), move |_, watch| {
                    watch.expect(f64::from(index) - 50.0);
                    if index % 10 == 0 {
                        let watch = watch.clone();
                        std::thread::spawn(move || {
                            more.submit(task(1), |_, _| Ok(()));
                            watch.expect(1.0);
                        });
                    }
                    if index % 7 == 3 { Err("seven".into()) } else { Ok(()) }
                });
            }
        });
    }
    drop(submitter);
    let fleet = Fleet { overtaking: Some(3), ..Fleet::new(Cluster::single("CPU", 4)) };
    let (mut site, mut log, mut again) = (site, vec![], vec![]);
    let report = fleet.run(&Backfill, &mut site, &mut |event| log.push(event.clone())).expect("a run without faults");
    assert_eq!((report.tasks.len(), report.totals.failed), (1100, 140));
    check(&fleet, Promise::None, false, &log, &report);
    fleet.run(&Backfill, &mut Replayed::new(log.clone()), &mut |event| again.push(event.clone())).expect("a replay");
    assert!(again == log);
}

#[test]
fn a_site_that_is_gone_harms_nobody_who_still_submits_or_runs() {
    let (mut site, submitter) = Threads::new();
    let (give, take) = std::sync::mpsc::channel();
    submitter.submit(task(1), move |_, watch| Ok(give.send(watch.clone())?));
    submitter.submit(task(9), |_, _| Ok(()));
    let error = Fleet::new(Cluster::single("CPU", 1)).run(&Backfill, &mut site, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("needs 9 devices"), "{error}");
    drop(site);
    submitter.submit(task(1), |_, _| Ok(()));
    if let Ok(watch) = take.recv() {
        watch.expect(1.0);
    }
}

#[test]
fn a_start_that_lies_in_the_future_comes() {
    let (site, submitter) = Threads::new();
    submitter.submit(Task { release: 0.05, ..task(1) }, |_, _| Ok(()));
    drop(submitter);
    let report = run(&Fleet::new(Cluster::single("CPU", 1)), site);
    assert!(report.tasks[0].started.is_some_and(|at| at >= 0.05), "{report:?}");
}
