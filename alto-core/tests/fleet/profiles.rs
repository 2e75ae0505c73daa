//! What is measured of a backend, and what is known already.

use alto_core::backend::{Backend, BackendError, Evaluation, JobState, Memory, Slot, StepReport};
use alto_core::batch::Batch;
use alto_core::fleet::{Profile, ProfileKey, Profiles};
use alto_core::job::Job;
use alto_core::simulated::{CostModel, SimulatedBackend};

use super::training::{backend, jobs, rows};

const COST: CostModel = CostModel {
    launch_seconds: 0.5,
    evaluation_launch_seconds: Some(0.25),
    seconds_per_token: 0.25,
    seconds_per_evaluated_token: 0.05,
    fixed_bytes: 1000,
    bytes_per_token: 10,
    adapter_bytes_per_rank: 16,
    budget: None,
};

fn key(device: &str) -> ProfileKey {
    ProfileKey { model: "m".into(), shape: "8 x 4".into(), device: device.into(), version: "1".into() }
}

fn measured(cost: CostModel, lanes: usize) -> Result<Profile, BackendError> {
    let mut backend = backend(cost);
    let clock = backend.clock();
    let profile = Profile::measure(&mut backend, &rows(8), &vec![jobs(1, 100)[0].clone(); lanes], &|| clock.seconds());
    assert_eq!(backend.memory().in_use, cost.fixed_bytes, "nobody is left on the backend");
    profile
}

#[test]
fn a_profile_finds_the_costs_that_a_backend_charges() {
    let profile = measured(COST, 8).unwrap();
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{profile:?}");
    near(profile.step.call, 0.5);
    near(profile.step.token, 0.25);
    near(profile.evaluation.call, 0.25);
    near(profile.evaluation.token, 0.05);
    let memory = profile.memory.expect("a model");
    let load = alto_sched::Load { adapter_bytes: 640, tokens: 100, squared_tokens: 0 };
    assert_eq!(memory.predict(&load), 1000 + 640 + 1000);
    assert!(profile.seconds > 0.0);
}

#[test]
fn a_profile_of_one_lane_has_no_slope_to_find_and_still_tells_that_lanes_time() {
    let profile = measured(COST, 1).unwrap();
    assert!((profile.step.call + 4.0 * profile.step.token - 1.5).abs() < 1e-9, "{profile:?}");
}

#[test]
fn a_backend_that_is_too_small_says_so() {
    let error = measured(CostModel { budget: Some(1100), ..COST }, 8).unwrap_err();
    assert!(error.to_string().contains("but the budget is 1100"), "{error}");
}

#[test]
fn what_was_measured_once_is_known_until_something_differs() {
    let mut profiles = Profiles::default();
    let first =
        profiles.get_or_measure(key("H100"), || measured(COST, 8)).map(|(profile, seconds)| (profile.clone(), seconds));
    let (profile, seconds) = first.unwrap();
    assert_eq!(seconds, profile.seconds);
    let never = || -> Result<Profile, BackendError> { panic!("it is known") };
    assert_eq!(profiles.get_or_measure(key("H100"), never).unwrap(), (&profile, 0.0));
    let (other, seconds) = profiles.get_or_measure(key("A100"), || measured(CostModel::default(), 8)).unwrap();
    assert_eq!((other.step.token, seconds), (0.0, 0.0));
}

#[test]
fn they_survive_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profiles.json");
    let mut profiles = Profiles::read(&path).unwrap();
    assert_eq!(profiles, Profiles::default());
    profiles.get_or_measure(key("H100"), || measured(COST, 8)).unwrap();
    profiles.write(&path).unwrap();
    assert_eq!(Profiles::read(&path).unwrap(), profiles);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn a_file_of_something_else_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profiles.json");
    for text in ["", "{}", r#"{"version": 2, "profiles": []}"#, r#"{"version": 1, "profiles": [], "x": 1}"#] {
        std::fs::write(&path, text).unwrap();
        let error = Profiles::read(&path).unwrap_err().to_string();
        assert_eq!(error, format!("{}: not profiles of version 1; remove it to measure anew", path.display()));
    }
    let nowhere = folder.path().join("none").join("profiles.json");
    assert!(Profiles::default().write(&nowhere).unwrap_err().to_string().ends_with("can't be written"));
}

/// Detaches all, but says of the first that this failed.
#[derive(Debug)]
struct Sticky {
    inner: SimulatedBackend,
    detached: usize,
}

impl Backend for Sticky {
    fn check(&self, job: &Job) -> Result<(), BackendError> {
        self.inner.check(job)
    }

    fn adapter_bytes(&self, job: &Job) -> u64 {
        self.inner.adapter_bytes(job)
    }

    fn attach(&mut self, job: &Job, state: Option<JobState>) -> Result<Slot, BackendError> {
        self.inner.attach(job, state)
    }

    fn step(&mut self, batch: &Batch) -> Result<(), BackendError> {
        self.inner.step(batch)
    }

    fn read(&mut self) -> Result<Vec<StepReport>, BackendError> {
        self.inner.read()
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<Vec<Evaluation>, BackendError> {
        self.inner.evaluate(batch)
    }

    fn snapshot(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        self.inner.snapshot(slot)
    }

    fn detach(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        self.detached += 1;
        let state = self.inner.detach(slot)?;
        if self.detached == 1 { Err(BackendError::Device { source: "lost".into() }) } else { Ok(state) }
    }

    fn memory(&mut self) -> Memory {
        self.inner.memory()
    }
}

#[test]
fn a_slot_that_cannot_be_given_back_leaves_the_others_to_be() {
    let mut backend = Sticky { inner: backend(COST), detached: 0 };
    let error = Profile::measure(&mut backend, &rows(8), &jobs(8, 100), &|| 0.0).unwrap_err();
    assert_eq!((error.to_string().as_str(), backend.detached), ("the device failed", 8));
}
