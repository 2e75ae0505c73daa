//! Exited jobs that run on, to tell how often the policy was wrong.

use alto_core::job::Job;
use alto_core::simulated::RecordedRun;
use alto_core::trainer::{AuditRate, Ended, EventKind, TrainError, Trainer};
use alto_exit::{LossAware, Underperforming};

use super::follow::follow;
use super::setup::{backend, candidates, job, line, recorded, recorded_sweep, rows, run, run_on};
use super::watched::Watched;

/// At the rung after half of the budget two of four stay; of those that don't, one would have won.
fn jobs() -> Vec<(Job, RecordedRun)> {
    let late = recorded(vec![2.0, 2.0, 2.0, 2.0, 1.5, 1.0, 0.75, 0.5], &[(0, 2.0), (4, 2.0), (8, 0.5)]);
    let names = ["good", "fair", "lags", "late"];
    let runs = [line(8, 1.0), line(8, 1.25), line(8, 1.5), late];
    names.map(|name| job(name, 8)).into_iter().zip(runs).collect()
}

fn half() -> Underperforming {
    Underperforming { mark: 0.5, keep: 0.5 }
}

fn audited(audit: f64) -> Trainer {
    Trainer { slots: Some(2), interval: 0.25, audit, ..Trainer::default() }
}

#[test]
fn a_job_that_would_have_won_is_found_and_told_by_how_much() {
    let (outcome, events) = run(&audited(1.0), &jobs(), &half());
    let report = outcome.report;
    let audit = report.audit.as_ref().unwrap();
    let found: Vec<_> = audit.jobs.iter().map(|job| (job.job, job.ended.clone(), job.regret)).collect();
    assert_eq!(found, [(2, Ended::Finished, 0.0), (3, Ended::Finished, 0.5)]);
    assert_eq!(audit.jobs[1].best.map(|best| (best.step, best.loss)), Some((8, 0.5)));
    assert_eq!(audit.jobs[1].curve.train.len(), 8);
    assert_eq!(audit.samples, 8);
    let AuditRate { reason, exits, audited, wrong, interval, mean_regret, largest_regret } = &audit.rates[0];
    assert_eq!((reason, exits, audited, wrong), (&None, &2, &2, &1));
    assert_eq!((mean_regret, largest_regret), (&Some(0.25), &Some(0.5)));
    assert!(interval.0 < 0.1 && interval.1 > 0.9, "{interval:?}");
    assert_eq!(audit.rates[1].reason.as_deref(), Some("underperforming"));
    assert_eq!(audit.rates.len(), 2);
    let begins = events.iter().position(|event| matches!(event, EventKind::AuditStarted { .. })).unwrap();
    assert_eq!(events[begins], EventKind::AuditStarted { jobs: vec![2, 3] });
    follow(&events[..begins], 4, Some(2));
    assert!(report.table().to_string().contains(
        "Audit: 2 of 2 exits ran on to their end, 1 of them below the winner (50%, with 95% confidence 9 to 91%), by \
         0.2500 on average over all and 0.5000 at most.\n  underperforming: 2 of 2 exits"
    ));
}

#[test]
fn nothing_about_the_competition_changes() {
    for policy in [&half() as &dyn alto_exit::ExitPolicy, &LossAware::default()] {
        let jobs = [jobs(), recorded_sweep()].concat();
        let trainer = |audit| Trainer { slots: Some(3), audit, ..Trainer::default() };
        let (without, plain) = run(&trainer(0.0), &jobs, policy);
        let (with, events) = run(&trainer(1.0), &jobs, policy);
        // A skipped step leaves what is not finite, so that the events are compared as text.
        let text = |events: &[EventKind]| events.iter().map(|event| format!("{event:?}")).collect::<Vec<_>>();
        assert_eq!(text(&events[..plain.len()]), text(&plain));
        assert!(matches!(events[plain.len()], EventKind::AuditStarted { .. }));
        assert_eq!(with.adapters, without.adapters);
        assert_eq!(with.report.winner, without.report.winner);
        let jobs = |report: &alto_core::trainer::Report| -> Vec<String> {
            let mut jobs = report.jobs.clone();
            jobs.iter_mut().for_each(|job| job.seconds = 0.0);
            jobs.iter().map(|job| format!("{job:?}")).collect()
        };
        assert_eq!(jobs(&with.report), jobs(&without.report));
        assert_eq!(with.report.totals.samples, without.report.totals.samples);
        assert_eq!(without.report.audit, None);
        // Whoever exited ran on, and so saw what is saved otherwise.
        let audit = with.report.audit.unwrap();
        assert_eq!(audit.rates[0].exits, audit.jobs.len() as u64);
        assert!(audit.jobs.iter().all(|job| matches!(job.ended, Ended::Finished | Ended::Quarantined { .. })));
        for job in &audit.jobs {
            let seen = &with.report.jobs[job.job].curve;
            assert!(matches!(with.report.jobs[job.job].ended, Ended::Exited(_)));
            assert_eq!(job.curve.train[..seen.train.len()], seen.train[..], "what the policy saw comes first");
        }
    }
}

#[test]
fn a_share_is_drawn_by_name_and_seed_whatever_the_places() {
    let jobs: Vec<_> = (0..60).map(|i| (job(&format!("job {i}"), 8), line(8, 1.0 + f64::from(i) / 64.0))).collect();
    let ran_on = |slots, audit_seed| -> Vec<usize> {
        let trainer = Trainer { slots, audit_seed, ..audited(0.25) };
        run(&trainer, &jobs, &half()).0.report.audit.unwrap().jobs.iter().map(|job| job.job).collect()
    };
    let found = ran_on(Some(2), 0);
    assert!(found.len() > 2 && found.len() < 15, "{found:?}");
    assert_eq!(ran_on(None, 0), found);
    assert_ne!(ran_on(Some(2), 1), found);
}

#[test]
fn a_fault_of_the_audit_leaves_the_competition_whole() {
    let jobs = jobs();
    let (whole, _) = run(&audited(0.0), &jobs, &half());
    let mut watched = Watched::new(backend(&jobs));
    let steps = {
        let mut counted = Watched::new(backend(&jobs));
        run_on(&audited(0.0), &mut counted, &jobs, &half()).0.unwrap();
        counted.steps.len()
    };
    watched.fail_at = Some(steps + 1);
    let (outcome, _) = run_on(&audited(1.0), &mut watched, &jobs, &half());
    let TrainError::Interrupted { outcome, .. } = outcome.unwrap_err() else { panic!("it fails while it trains") };
    assert_eq!(outcome.adapters, whole.adapters);
    assert_eq!(outcome.report.winner, Some(0));
    let audit = outcome.report.audit.unwrap();
    assert_eq!((audit.rates[0].exits, audit.rates[0].audited, audit.rates[0].interval), (2, 0, (0.0, 1.0)));
    assert_eq!(watched.attached, [], "nobody stays on the backend");
}

#[test]
fn a_share_out_of_range_is_refused_and_reports_with_an_audit_survive_json() {
    for audit in [-0.1, 1.5, f64::NAN] {
        let run =
            audited(audit).run(&mut backend(&jobs()), &rows(8), &rows(3), candidates(&jobs()), &half(), &mut |_| ());
        let error = run.unwrap_err().to_string();
        assert!(error.starts_with("trainer: audit is") && error.ends_with("must be from 0 to 1"), "{error}");
    }
    let (outcome, _) = run(&audited(1.0), &jobs(), &half());
    let text = serde_json::to_string(&outcome.report).unwrap();
    let mut read: alto_core::trainer::Report = serde_json::from_str(&text).unwrap();
    read.totals = outcome.report.totals;
    read.jobs.iter_mut().zip(&outcome.report.jobs).for_each(|(read, job)| read.seconds = job.seconds);
    assert_eq!(read, outcome.report);
}
