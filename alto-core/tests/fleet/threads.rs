//! Tasks on threads, in real time.

use std::sync::mpsc::channel;

use alto_core::exit::{LossAware, Never};
use alto_core::fleet::{Event, EventKind, Fleet, Replayed, Report, Threads};
use alto_core::simulated::CostModel;
use alto_core::trainer::{Candidate, Trainer};
use alto_sched::{Cluster, Makespan, Task};

use super::follow::follow;
use super::training::{backend, jobs, rows};

fn run(fleet: &Fleet, site: &mut Threads) -> (Report, Vec<Event>) {
    let mut events = vec![];
    let report = fleet.run(&Makespan::default(), site, &mut |event| events.push(event.clone()));
    let report = report.expect("a run without faults");
    follow(&events, &fleet.cluster);
    (report, events)
}

fn task(name: &str, width: u32) -> Task {
    Task::rigid(name, width, 0.01)
}

#[test]
fn trainings_arrivals_in_the_middle_errors_and_panics() {
    let fleet = Fleet { skip_bad: true, ..Fleet::new(Cluster::single("CPU", 2)) };
    let (mut site, submitter) = Threads::new();
    let later = submitter.clone();
    submitter.submit(task("trains", 1), move |_, watch| {
        let jobs = jobs(4, 100);
        let candidates = jobs.iter().cloned().map(Candidate::from).collect();
        let (mut backend, mut observe) = (backend(CostModel::default()), watch.follow(&jobs));
        let trainer = Trainer::default();
        let outcome = trainer.run(&mut backend, &rows(8), &rows(3), candidates, &LossAware::default(), &mut observe)?;
        assert_eq!(outcome.report.winner, Some(3));
        // While this one runs, another comes.
        later.submit(task("comes later", 2), |placement, _| {
            assert_eq!(placement.devices, [0, 1]);
            Ok(())
        });
        Ok(())
    });
    submitter.submit(task("no jobs", 1), |_, _| {
        Trainer::default().run(&mut backend(CostModel::default()), &rows(8), &rows(3), vec![], &Never, &mut |_| {})?;
        Ok(())
    });
    submitter.submit(task("panics", 2), |_, _| panic!("index {} is out of range", 7));
    submitter.submit(task("too wide", 3), |_, _| Ok(()));
    submitter.refuse("no model", &std::io::Error::other("models/none has no config.json"));
    drop(submitter);
    let (report, log) = run(&fleet, &mut site);
    let failures: Vec<_> = report.tasks.iter().map(|task| (task.name.as_str(), task.failure.as_deref())).collect();
    assert_eq!(failures[0], ("trains", None));
    assert_eq!(failures[1], ("no jobs", Some("no jobs: the grid is empty, give at least one job")));
    assert_eq!(failures[2], ("panics", Some("it panicked: index 7 is out of range")));
    assert!(failures[3].1.is_some_and(|why| why.starts_with("needs 3 devices")), "{failures:?}");
    assert_eq!(failures[4], ("no model", Some("models/none has no config.json")));
    assert_eq!(failures[5], ("comes later", None));
    assert_eq!((report.totals.finished, report.totals.failed, report.totals.refused), (2, 2, 2));

    // What happened in real time happens again on no clock at all.
    let mut again = vec![];
    fleet.run(&Makespan::default(), &mut Replayed::new(log.clone()), &mut |event| again.push(event.clone())).unwrap();
    assert_eq!(again, log);
}

#[test]
fn tasks_on_devices_of_their_own_run_at_the_same_time() {
    // Each waits for the other's word: one after another, they would wait for ever.
    let (mut site, submitter) = Threads::new();
    let ((tell_a, hear_a), (tell_b, hear_b)) = (channel(), channel());
    submitter.submit(task("a", 1), move |_, _| {
        tell_a.send(())?;
        Ok(hear_b.recv()?)
    });
    submitter.submit(task("b", 1), move |_, _| {
        tell_b.send(())?;
        Ok(hear_a.recv()?)
    });
    drop(submitter);
    let (report, _) = run(&Fleet::new(Cluster::single("CPU", 2)), &mut site);
    assert_eq!(report.totals.finished, 2);
}

#[test]
fn what_a_task_expects_is_told() {
    let (mut site, submitter) = Threads::new();
    submitter.submit(task("slow", 1), |_, watch| {
        watch.expect(3600.0);
        watch.expect(f64::NAN);
        Ok(())
    });
    submitter.submit(task("next", 1), |_, _| Ok(()));
    drop(submitter);
    let (report, events) = run(&Fleet::new(Cluster::single("CPU", 1)), &mut site);
    let expected = events.iter().find_map(|event| match event.kind {
        EventKind::Expected { task: 0, end } => Some(end - event.seconds),
        _ => None,
    });
    assert!(expected.is_some_and(|left| left > 3000.0 && left <= 3600.0), "{expected:?}");
    assert_eq!(report.totals.finished, 2);
}

#[test]
fn a_watch_that_outlives_its_task_harms_nobody() {
    let (mut site, submitter) = Threads::new();
    let (give, take) = channel();
    submitter.submit(task("a", 1), move |_, watch| Ok(give.send(watch.clone())?));
    submitter.submit(task("b", 1), move |_, _| {
        take.recv()?.expect(100.0);
        Ok(())
    });
    drop(submitter);
    let (report, events) = run(&Fleet::new(Cluster::single("CPU", 1)), &mut site);
    assert_eq!(report.totals.finished, 2);
    assert!(!events.iter().any(|event| matches!(event.kind, EventKind::Expected { .. })), "{events:?}");
}
