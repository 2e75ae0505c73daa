//! Tasks that train: the very trainer, on a simulated backend, in the time that this charges.

use alto_core::batch::Example;
use alto_core::data::Dataset;
use alto_core::exit::{ExitPolicy, LossAware, Never};
use alto_core::fleet::{Cause, Event, EventKind, Fleet, Profile, Timeline, Virtual};
use alto_core::job::{AccumulationMode, AdamW, AdapterConfig, Decay, Job, Schedule};
use alto_core::simulated::{CostModel, RecordedRun, SimulatedBackend};
use alto_core::trainer::{Candidate, Trainer};
use alto_sched::{Cluster, Makespan, Task};

use super::follow::follow;

pub(crate) fn jobs(count: usize, steps: u64) -> Vec<Job> {
    let job = |index: usize| Job {
        name: index.to_string(),
        adapter: AdapterConfig { rank: 4, alpha: 8.0, rank_stabilized: false, targets: ["q_proj".into()].into() },
        optimizer: AdamW::new(1e-3 * (1 + index) as f64),
        schedule: Schedule { decay: Decay::Constant, warmup_steps: 0 },
        batch: 1,
        accumulation: 1,
        accumulation_mode: AccumulationMode::TokenMean,
        steps,
        seed: 7,
    };
    (0..count).map(job).collect()
}

/// Rows of four tokens.
pub(crate) fn rows(count: u32) -> Dataset {
    let row = |index: u32| Example { tokens: vec![index; 4], targets: vec![Some(index); 4] };
    Dataset::from_examples((0..count).map(row).collect()).expect("rows with labels")
}

/// The higher the learning rate, the lower the loss in the end.
fn course(job: &Job) -> RecordedRun {
    let last = 2.0 - 50.0 * job.optimizer.learning_rate;
    serde_json::from_value(serde_json::json!({
        "rank": 4, "alpha": 8, "lr": 1e-3, "batch": 1, "steps": 2,
        "train_loss": [2.0, last], "eval_step": [0, 2], "val_loss": [2.0, last],
    }))
    .expect("a recorded run")
}

pub(crate) fn backend(cost: CostModel) -> SimulatedBackend {
    SimulatedBackend::from_surface(course, cost).expect("a cost model")
}

const COST: CostModel = CostModel {
    launch_seconds: 0.5,
    evaluation_launch_seconds: None,
    seconds_per_token: 0.25,
    seconds_per_evaluated_token: 0.05,
    fixed_bytes: 1000,
    bytes_per_token: 10,
    adapter_bytes_per_rank: 16,
    budget: None,
};

fn timeline(policy: &dyn ExitPolicy) -> Timeline {
    let candidates = jobs(8, 100).into_iter().map(Candidate::from).collect();
    Timeline::training(&Trainer::default(), &mut backend(COST), &rows(8), &rows(3), candidates, policy)
}

fn profiled() -> f64 {
    let mut backend = backend(COST);
    let clock = backend.clock();
    let profile = Profile::measure(&mut backend, &rows(8), &jobs(8, 100), &|| clock.seconds()).expect("a profile");
    profile.duration(&Trainer::default(), &jobs(8, 100), &rows(8), &rows(3))
}

#[test]
fn a_profile_foretells_how_long_training_takes_when_no_job_exits() {
    let (expected, took) = (profiled(), timeline(&Never).end);
    assert!((expected / took - 1.0).abs() < 1e-6, "{expected} s expected, {took} s taken");
}

#[test]
fn exits_shorten_a_task_and_the_expected_end_follows() {
    let Timeline { expected, end, error } = timeline(&LossAware::default());
    assert_eq!(error, None);
    assert!(end < 0.6 * timeline(&Never).end);
    // The first expectations know of no exits; the last are right.
    assert!(expected[0].1 > 1.5 * end, "{expected:?}");
    let last = expected.last().expect("expectations");
    assert!((last.1 / end - 1.0).abs() < 0.1, "{expected:?}, it ended at {end}");
    assert!(expected.windows(2).all(|pair| pair[0].0 <= pair[1].0));
}

#[test]
fn exits_in_one_task_let_another_start_sooner() {
    let run = |policy: &dyn ExitPolicy| {
        let mut site = Virtual::default();
        for name in ["a", "b", "c"] {
            site.submit(0.0, Task::rigid(name, 2, profiled()), |_| timeline(policy));
        }
        // It would fit beside nobody.
        site.submit(5.0, Task::rigid("wide", 4, 100.0), |_| Timeline::lasting(100.0));
        let fleet = Fleet::new(Cluster::single("H100", 4));
        let mut events: Vec<Event> = vec![];
        let report = fleet.run(&Makespan::default(), &mut site, &mut |event| events.push(event.clone())).unwrap();
        follow(&events, &fleet.cluster);
        (report, events)
    };
    let (with, events) = run(&LossAware::default());
    let (without, _) = run(&Never);
    assert!(with.totals.makespan < 0.6 * without.totals.makespan, "{:?} {:?}", with.totals, without.totals);
    let causes = events.iter().filter_map(|event| match &event.kind {
        EventKind::Replanned(replan) => Some(&replan.causes),
        _ => None,
    });
    let shortened = |cause: &Cause| matches!(cause, Cause::Moved { from, to, .. } if to < from);
    assert!(causes.flatten().any(shortened), "{events:#?}");
}

#[test]
fn a_training_that_cannot_be_fails_alone() {
    let mut site = Virtual::default();
    site.submit(0.0, Task::rigid("none", 1, 10.0), |_| {
        Timeline::training(&Trainer::default(), &mut backend(COST), &rows(8), &rows(3), vec![], &Never)
    });
    site.submit(0.0, Task::rigid("some", 1, profiled()), |_| timeline(&Never));
    let report = Fleet::new(Cluster::single("H100", 1)).run(&Makespan::default(), &mut site, &mut |_| {}).unwrap();
    let failures: Vec<_> = report.tasks.iter().map(|task| task.failure.as_deref()).collect();
    assert_eq!(failures, [Some("no jobs: the grid is empty, give at least one job"), None]);
}
