//! The recorded sweep in `testdata/curves`.

use alto_core::job::Job;
use alto_core::simulated::RecordedRun;
use alto_core::trainer::{Ended, EventKind, Outcome, TrainError, Trainer};
use alto_exit::{LossAware, Never, Reason, Underperforming};

use super::follow::follow;
use super::setup::{candidates, job, recorded, recorded_sweep, run, run_on, trained_steps};
use super::watched::Watched;

/// Evaluates where the recorded runs were.
fn trainer() -> Trainer {
    Trainer { interval: 0.25, ..Trainer::default() }
}

#[test]
fn of_twelve_jobs_three_stay_at_the_rung_and_the_best_of_them_wins() {
    let jobs = recorded_sweep();
    assert_eq!(jobs.len(), 12);
    let (outcome, events) = run(&trainer(), &jobs, &LossAware::default());
    follow(&events, 12, None);
    let report = &outcome.report;

    // The rung at 5% of 32 steps is reached at step 2, where each run was recorded.
    let mut ranked: Vec<(usize, f64)> = jobs.iter().map(|(_, run)| run.val_loss[1]).enumerate().collect();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut stay: Vec<usize> = ranked[..3].iter().map(|entry| entry.0).collect();
    stay.sort();
    let closed = events.iter().filter_map(|event| match event {
        EventKind::RungClosed { mark, record, kept, exited } => Some((*mark, record.len(), kept.clone(), exited.len())),
        _ => None,
    });
    assert_eq!(closed.collect::<Vec<_>>(), [(0.05, 12, stay.clone(), 9)]);
    for (index, job) in report.jobs.iter().enumerate() {
        let lags = matches!(job.ended, Ended::Exited(Reason::Underperforming { step: 2, of: 12, kept: 3, .. }));
        assert_eq!(lags, !stay.contains(&index), "{}: {}", job.job.name, job.ended);
        assert_eq!(job.samples, job.steps * 2);
    }

    let best = |index: &usize| report.jobs[*index].best.unwrap().loss;
    let winner = report.winner.unwrap();
    assert!(stay.contains(&winner) && stay.iter().all(|index| best(&winner) <= best(index)));
    assert_eq!(report.totals.samples_budgeted, 12 * 32 * 2);
    assert_eq!(report.totals.samples, report.jobs.iter().map(|job| job.samples).sum::<u64>());
    assert!(report.totals.saved() > 0.7, "{}", report.totals.saved());
}

#[test]
fn every_job_leaves_behind_the_adapter_of_its_best_validation_loss() {
    let jobs = recorded_sweep();
    let (outcome, _) = run(&trainer(), &jobs, &LossAware::default());
    for (job, adapter) in outcome.report.jobs.iter().zip(&outcome.adapters) {
        let best = job.curve.best().unwrap();
        assert_eq!(job.best.as_ref(), Some(best));
        assert_eq!(trained_steps(adapter.as_ref().unwrap()), best.step as f32, "{}", job.job.name);
    }
    let early = outcome.report.jobs.iter().filter(|job| job.best.unwrap().step < job.steps);
    assert!(early.count() > 0, "none of the jobs got worse before its end, so the test shows nothing");
}

#[test]
fn a_run_that_a_job_left_behind_takes_the_same_course_again() {
    let mut jobs = recorded_sweep();
    // One skips a step and goes on, one is ended for that.
    for (name, lost) in [("skips", 1), ("is lost", 3)] {
        // Far ahead, so that no policy ends it.
        let mut run = recorded(vec![0.5; 32], &[(0, 0.5), (32, 0.1)]);
        run.train_loss[6..6 + lost].fill(f64::NAN);
        jobs.push((job(name, 32), run));
    }
    let (outcome, events) = run(&trainer(), &jobs, &LossAware::default());
    let reports = &outcome.report.jobs;
    assert!(reports.iter().any(|job| matches!(job.ended, Ended::Quarantined { .. })));
    assert!(reports.iter().any(|job| matches!(job.ended, Ended::Exited(_))));
    let runs: Vec<_> = jobs.iter().zip(reports).map(|((job, _), report)| (job.clone(), report.to_run())).collect();
    assert!(runs.iter().all(|(job, run)| run.check().is_ok() && run.samples() == job.samples(job.steps)));
    let (_, again) = run_on(&trainer(), &mut super::setup::backend(&runs), &runs, &LossAware::default());
    assert_eq!(events, again);
}

#[test]
fn an_interrupted_run_takes_the_same_course_again_also_where_jobs_had_no_place_yet() {
    let jobs = recorded_sweep();
    let trainer = Trainer { slots: Some(2), ..trainer() };
    let interrupted = |jobs: &[(Job, RecordedRun)]| {
        let mut backend = Watched::new(super::setup::backend(jobs));
        backend.fail_at = Some(5);
        let (outcome, events) = run_on(&trainer, &mut backend, jobs, &LossAware::default());
        let Err(TrainError::Interrupted { outcome, .. }) = outcome else { panic!("it fails while it trains") };
        (outcome, events)
    };
    let (outcome, events) = interrupted(&jobs);
    let reports = &outcome.report.jobs;
    assert!(reports.iter().any(|job| job.curve.evaluations.is_empty()));
    let runs: Vec<_> = jobs.iter().zip(reports).map(|((job, _), report)| (job.clone(), report.to_run())).collect();
    assert_eq!(runs.iter().find_map(|(_, run)| run.check().err()), None);
    assert_eq!(interrupted(&runs).1, events);
}

/// What must not depend on who trains beside whom.
fn verdicts(outcome: &Outcome) -> Vec<String> {
    let jobs = outcome.report.jobs.iter().zip(&outcome.adapters);
    jobs.map(|(job, adapter)| {
        let adapter = adapter.as_ref().map(|adapter| &adapter.modules["simulated.q_proj"]);
        let data = adapter.map(|pair| (pair.a.data().to_vec(), pair.b.data().to_vec()));
        format!("{} {:?} {:?} {:?} {} {data:?}", job.job.name, job.ended, job.curve, job.best, job.steps)
    })
    .collect()
}

#[test]
fn verdicts_curves_and_adapters_are_the_same_with_1_2_3_and_12_slots() {
    let mut jobs = recorded_sweep();
    for (index, (job, _)) in jobs.iter_mut().enumerate() {
        job.batch = [2, 1, 4][index % 3];
        job.steps = [32, 64, 17][index % 3];
    }
    let with = |slots| {
        let (outcome, events) = run(&Trainer { slots, ..trainer() }, &jobs, &LossAware::default());
        (verdicts(&outcome), follow(&events, 12, slots))
    };
    let (expected, most) = with(None);
    assert_eq!(most, 12);
    for slots in [1, 2, 3, 12] {
        let (found, most) = with(Some(slots));
        assert_eq!(found, expected, "{slots} slots");
        assert_eq!(most, slots, "no place stays empty while somebody waits");
    }
}

#[test]
fn equal_runs_tell_equal_events() {
    let jobs = recorded_sweep();
    let trainer = Trainer { slots: Some(5), ..trainer() };
    let events = || run(&trainer, &jobs, &LossAware::default()).1;
    assert_eq!(events(), events());
}

#[test]
fn a_parked_job_goes_on_exactly_from_where_it_was() {
    let jobs = recorded_sweep();
    // Keeps everybody, but has a rung.
    let parking = Underperforming { mark: 0.25, keep: 1.0 };
    let (parked, events) = run(&Trainer { slots: Some(2), ..trainer() }, &jobs, &parking);
    let (straight, _) = run(&trainer(), &jobs, &Never);
    assert_eq!(events.iter().filter(|event| matches!(event, EventKind::Parked { step: 8, .. })).count(), 12);
    assert_eq!(verdicts(&parked), verdicts(&straight));
    for (job, (_, run)) in parked.report.jobs.iter().zip(&jobs) {
        assert_eq!(job.curve.train.iter().map(|point| point.loss).collect::<Vec<_>>(), run.train_loss);
        assert_eq!(job.curve.evaluations.iter().map(|point| point.loss).collect::<Vec<_>>().len(), 5);
    }
}

#[test]
fn a_backend_of_a_finished_run_takes_the_next() {
    let jobs = recorded_sweep();
    let mut backend = super::setup::backend(&jobs);
    let first = run_on(&trainer(), &mut backend, &jobs, &LossAware::default());
    let second = run_on(&trainer(), &mut backend, &jobs, &LossAware::default());
    assert_eq!(verdicts(&first.0.unwrap()), verdicts(&second.0.unwrap()));
    assert_eq!(candidates(&jobs).len(), 12);
}
