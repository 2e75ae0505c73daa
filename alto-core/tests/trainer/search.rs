//! Jobs that a search proposes while a run goes on.

use alto_core::job::Job;
use alto_core::simulated::{CostModel, SimulatedBackend};
use alto_core::trainer::{Candidate, Ended, EventKind, Outcome, Proposals, TrainError, Trainer};
use alto_exit::search::{Domain, Grid, Parameter, Point, Random, Search, Space, Tpe, Trial};
use alto_exit::{Curve, End, ExitPolicy, LossAware, Never, Reason, Underperforming, Verdict};
use proptest::prelude::*;

use super::follow::follow;
use super::setup::{job, line, rows};

const STEPS: u64 = 20;

fn space() -> Space {
    let parameters = vec![
        Parameter::new("learning_rate", Domain::LogUniform { low: 1e-6, high: 1e-1 }),
        Parameter::new("rank", Domain::Integer { low: 1, high: 64, log: true }),
    ];
    Space::new(parameters).expect("a right space")
}

/// A response surface: the loss falls in a line to the least at a rate of 1e-3 and a rank of 16.
fn loss(job: &Job) -> f64 {
    let rate = (job.optimizer.learning_rate.log10() + 3.0).powi(2);
    let rank = ((job.adapter.rank as f64).log2() - 4.0).powi(2);
    1.0 + 0.1 * rate + 0.02 * rank
}

fn surface(cost: CostModel) -> SimulatedBackend {
    SimulatedBackend::from_surface(|job| line(STEPS, loss(job)), cost).expect("a right cost")
}

fn candidate(index: usize, point: &Point) -> Result<Candidate, Box<dyn std::error::Error + Send + Sync>> {
    let mut job = job(&format!("job {index}"), STEPS);
    job.optimizer.learning_rate = point.number("learning_rate").ok_or("no learning rate")?;
    job.adapter.rank = point.integer("rank").unwrap_or(4) as usize;
    Ok(job.into())
}

fn proposals(search: &dyn Search, jobs: usize, first: usize) -> Proposals<'_> {
    Proposals { search, candidate: &candidate, jobs, first }
}

fn run_on(
    trainer: &Trainer,
    backend: &mut SimulatedBackend,
    proposals: &Proposals,
    policy: &dyn ExitPolicy,
) -> (Result<Outcome, TrainError>, Vec<EventKind>) {
    let mut events = vec![];
    let outcome = trainer.search(backend, &rows(8), &rows(3), proposals, policy, &mut |event| {
        events.push(event.kind.clone());
    });
    (outcome, events)
}

fn run(slots: usize, proposals: &Proposals, policy: &dyn ExitPolicy) -> (Outcome, Vec<EventKind>) {
    let trainer = Trainer { slots: Some(slots), interval: 0.05, ..Trainer::default() };
    let (outcome, events) = run_on(&trainer, &mut surface(CostModel::default()), proposals, policy);
    (outcome.expect("a run without faults"), events)
}

/// Checks every history that it is given.
#[derive(Debug)]
struct Asked<S>(S, std::sync::Mutex<Vec<(usize, usize)>>);

impl<S: Search> Search for Asked<S> {
    fn next(&self, tried: &[Trial]) -> Option<Point> {
        let running = tried.iter().filter(|trial| trial.curve.end.is_none()).count();
        self.1.lock().expect("one thread").push((tried.len(), running));
        self.0.next(tried)
    }
}

#[test]
fn a_freed_place_asks_the_search_with_all_that_is_known() {
    let search = Asked(Random { space: space(), seed: 0 }, Default::default());
    let (outcome, events) = run(3, &proposals(&search, 9, 3), &Never);
    assert_eq!(follow(&events, 9, Some(3)), 3);
    // Three by three, as all have one budget: at first all run, then the former have ended.
    let asked = search.1.into_inner().unwrap();
    assert_eq!(asked, [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2), (6, 0), (7, 1), (8, 2)]);
    let report = outcome.report;
    assert_eq!(report.jobs.len(), 9);
    let first = Random { space: space(), seed: 0 }.next(&[]);
    assert_eq!(report.jobs[0].point, first);
    let proposed = events.iter().filter_map(|event| match event {
        EventKind::Proposed { job, name, point } => Some((*job, name.clone(), Some(point.clone()))),
        _ => None,
    });
    let jobs = report.jobs.iter().enumerate().map(|(i, report)| (i, report.job.name.clone(), report.point.clone()));
    assert!(proposed.eq(jobs));
    assert!(report.search.is_some_and(|text| text.contains("jobs: 9")));
}

#[test]
fn the_run_ends_when_the_search_has_nothing_left() {
    let rates = Parameter::new("learning_rate", Domain::Choice(vec![1e-4.into(), 1e-3.into(), 1e-2.into()]));
    let grid = Grid::new(Space::new(vec![rates]).unwrap()).unwrap();
    let (outcome, events) = run(2, &proposals(&grid, 100, 1), &LossAware::default());
    follow(&events, 3, Some(2));
    assert_eq!(outcome.report.jobs.len(), 3);
    assert_eq!(outcome.report.winner, Some(1));
}

#[test]
fn a_late_job_is_judged_at_once_by_the_record_of_the_closed_rung() {
    let search = Random { space: space(), seed: 1 };
    let policy = Underperforming { mark: 0.2, keep: 0.25 };
    let (outcome, events) = run(4, &proposals(&search, 40, 8), &policy);
    follow(&events, 40, Some(4));
    let closings = events.iter().filter(|event| matches!(event, EventKind::RungClosed { .. })).count();
    assert_eq!(closings, 1, "it closes once, for the first eight");
    let parked: Vec<usize> = events
        .iter()
        .filter_map(|event| match event {
            EventKind::Parked { job, .. } => Some(*job),
            _ => None,
        })
        .collect();
    // Those few that came while the first were still on their way to the rung wait with them.
    assert!((0..8).all(|job| parked.contains(&job)) && parked.len() < 12, "{parked:?}");
    let mut late = 0;
    for (index, job) in outcome.report.jobs.iter().enumerate() {
        if parked.contains(&index) {
            continue;
        }
        late += 1;
        match &job.ended {
            Ended::Exited(Reason::Underperforming { of, place, kept, step: 4, .. }) => {
                assert!(place > kept && *of > 8, "{:?}", job.ended);
            }
            ended => assert_eq!(ended, &Ended::Finished),
        }
    }
    assert!(late >= 28);
    assert_eq!(outcome.report.winner.map(|job| outcome.report.jobs[job].ended.clone()), Some(Ended::Finished));
}

#[test]
fn what_cant_be_trained_is_refused_counts_as_tried_and_stops_nobody() {
    let rates =
        Parameter::new("learning_rate", Domain::Choice((0..6).map(|i| (f64::from(i) * 1e-3).into()).rev().collect()));
    let ranks = Parameter::new("rank", Domain::Choice(vec![4.into(), 4000.into()]));
    let grid = Grid::new(Space::new(vec![rates, ranks]).unwrap()).unwrap();
    // The base takes 1000 bytes, a rank 10, a token 10: a rank of 4000 never fits, a rate of 0 is none.
    let cost = CostModel {
        fixed_bytes: 1000,
        adapter_bytes_per_rank: 10,
        bytes_per_token: 10,
        budget: Some(2000),
        ..CostModel::default()
    };
    let search = Asked(grid, Default::default());
    let trainer = Trainer { slots: Some(2), ..Trainer::default() };
    let (outcome, events) = run_on(&trainer, &mut surface(cost), &proposals(&search, 20, 1), &Never);
    let report = outcome.unwrap().report;
    assert_eq!((report.jobs.len(), report.refused.len()), (5, 7));
    assert!(report.refused[0].error.starts_with("job job 1 never fits: alone it needs"), "{}", report.refused[0].error);
    let told = events.iter().filter_map(|event| match event {
        EventKind::Refused(refused) => Some(refused.clone()),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), report.refused);
    let last = report.refused.last().unwrap();
    assert!(last.point.number("learning_rate") == Some(0.0), "{}", last.point);
    assert_eq!(search.1.into_inner().unwrap().last().map(|asked| asked.0), Some(12));
    follow(&events, 5, Some(2));
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<alto_core::trainer::Report>(&text).unwrap().refused, report.refused);
}

#[test]
fn nothing_to_train_and_a_first_point_without_a_job_are_errors() {
    let random = Random { space: Space::default(), seed: 0 };
    let backend = &mut surface(CostModel::default());
    let (outcome, _) = run_on(&Trainer::default(), backend, &proposals(&random, 0, 1), &Never);
    assert!(matches!(outcome, Err(TrainError::NoJobs)));
    let (outcome, _) = run_on(&Trainer::default(), backend, &proposals(&random, 3, 1), &Never);
    assert!(matches!(outcome, Err(TrainError::Proposal { .. })));
    let wrong = Tpe { gamma: 0.0, ..Tpe::new(space(), 0) };
    let (outcome, _) = run_on(&Trainer::default(), backend, &proposals(&wrong, 3, 1), &Never);
    assert_eq!(outcome.unwrap_err().to_string(), "tpe: gamma is 0, but must be over 0 and at most 1");
}

#[test]
fn equal_runs_propose_equal_jobs() {
    let search = Tpe::new(space(), 3);
    let (found, events) = run(4, &proposals(&search, 30, 10), &LossAware::default());
    let (again, same) = run(4, &proposals(&search, 30, 10), &LossAware::default());
    assert_eq!(events, same);
    assert_eq!(found.adapters, again.adapters);
}

#[test]
fn an_audit_of_a_search_changes_no_proposal() {
    let search = Tpe::new(space(), 3);
    let run = |audit| {
        let trainer = Trainer { slots: Some(4), interval: 0.05, audit, ..Trainer::default() };
        let (outcome, events) =
            run_on(&trainer, &mut surface(CostModel::default()), &proposals(&search, 30, 10), &LossAware::default());
        (outcome.unwrap().report, events)
    };
    let ((without, plain), (with, events)) = (run(0.0), run(1.0));
    assert_eq!(events[..plain.len()], plain);
    assert_eq!(with.winner, without.winner);
    assert_eq!(with.jobs.len(), 30);
    assert!(with.jobs.iter().all(|job| job.curve.end != Some(End::Finished) || job.ended == Ended::Finished));
}

/// Rungs and exits at random, yet the same for the same curve.
#[derive(Debug)]
struct Whims(u64);

impl Whims {
    fn hash(&self, job: usize, more: usize) -> u64 {
        let mut hash = self.0 ^ (job as u64) << 32 ^ more as u64;
        for _ in 0..3 {
            hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        }
        hash >> 32
    }
}

impl ExitPolicy for Whims {
    fn rungs(&self, job: usize) -> Vec<f64> {
        let marks = [0.0, 0.05, 0.1, 0.3, 0.5, 0.9, 1.0];
        marks
            .into_iter()
            .enumerate()
            .filter(|&(i, _)| self.hash(job, i).is_multiple_of(3))
            .map(|(_, mark)| mark)
            .collect()
    }

    fn judge(&self, job: usize, cohort: &[Curve]) -> Verdict {
        match self.hash(job, 100 + cohort[job].evaluations.len()) % 10 {
            0 => Verdict::Exit(Reason::Custom { policy: "whims".into(), numbers: Default::default() }),
            _ => Verdict::Keep,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_that_is_proposed_ends_or_is_refused_whatever_policy_places_and_memory(
        seed: u64,
        (jobs, first, slots) in (1..25_usize, 0..12_usize, prop::option::of(1..6_usize)),
        budget in prop::option::of(1200..4000_u64),
        audit in prop::sample::select(vec![0.0, 0.5, 1.0]),
    ) {
        let cost = CostModel { fixed_bytes: 1000, adapter_bytes_per_rank: 10, bytes_per_token: 10, budget, ..CostModel::default() };
        let search = Random { space: space(), seed };
        let made = |index: usize, point: &Point| {
            let Candidate { mut job, .. } = candidate(index, point)?;
            (job.batch, job.steps) = (1 + index % 3, 5 + (index as u64 * 7) % STEPS);
            Ok(job.into())
        };
        let proposals = Proposals { search: &search, candidate: &made, jobs, first };
        let trainer = Trainer { slots, interval: 0.2, audit, ..Trainer::default() };
        // The simulated device refuses what is over its budget, so that admitting too much is an error.
        let (outcome, events) = run_on(&trainer, &mut surface(cost), &proposals, &Whims(seed));
        let report = match outcome {
            // Before any training: no job fits, or even measuring is over the budget. Later it would be `Interrupted`.
            Err(TrainError::NeverFits { .. } | TrainError::Backend(_)) => return Ok(()),
            other => other.expect("a run without faults").report,
        };
        prop_assert_eq!(report.jobs.len() + report.refused.len(), jobs);
        let competition = events.split(|event| matches!(event, EventKind::AuditStarted { .. })).next().unwrap_or(&[]);
        follow(competition, report.jobs.len(), slots);
        let ended = |ended: &Ended| matches!(ended, Ended::Finished | Ended::Exited(_));
        prop_assert!(report.jobs.iter().all(|job| ended(&job.ended)));
        let exits = report.jobs.iter().filter(|job| job.ended != Ended::Finished).count();
        if audit == 1.0 {
            prop_assert_eq!(report.audit.map_or(0, |audit| audit.rates[0].audited), exits as u64);
        }
    }
}

#[test]
fn tpe_finds_a_lower_loss_than_random_search_in_no_more_samples() {
    let seeds = 30;
    let (mut won, mut sums, mut samples) = (0, [0.0; 2], [0; 2]);
    for seed in 0..seeds {
        let tpe = Tpe::new(space(), seed);
        let random = Random { space: space(), seed: seed + 1000 };
        let found = [&tpe as &dyn Search, &random].map(|search| {
            let report = run(4, &proposals(search, 40, 10), &LossAware::default()).0.report;
            (report.winner.and_then(|winner| report.jobs[winner].best).unwrap().loss, report)
        });
        // A budget of samples, not of jobs: the better search has more jobs that stay. Random search gets more jobs until
        // it has seen as many samples.
        let budget = found[0].1.totals.samples;
        let mut jobs = 40;
        let mut other = found[1].1.clone();
        while other.totals.samples < budget {
            jobs += 4;
            other = run(4, &proposals(&random, jobs, 10), &LossAware::default()).0.report;
        }
        let other_loss = other.winner.and_then(|winner| other.jobs[winner].best).unwrap().loss;
        won += usize::from(found[0].0 < other_loss);
        for (of, (loss, seen)) in [(found[0].0, budget), (other_loss, other.totals.samples)].into_iter().enumerate() {
            sums[of] += loss / seeds as f64;
            samples[of] += seen;
        }
    }
    println!("better with {won} of {seeds} seeds, {:.4} against {:.4}, samples {samples:?}", sums[0], sums[1]);
    // A search that is no better wins so often with a chance under 5% (binomial, 20 of 30). The least loss there is is 1.
    let [tpe, random] = sums.map(|loss| loss - 1.0);
    assert!(won >= 20 && tpe < 0.5 * random, "better with {won} of {seeds} seeds, {tpe} against {random}");
}
