//! What is measured of a backend, and what is known already.

use alto_core::backend::{Backend, BackendError};
use alto_core::fleet::{Profile, ProfileKey, Profiles};
use alto_core::simulated::CostModel;

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
