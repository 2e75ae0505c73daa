//! How long tasks take, by the trainer.

use alto_core::exit::replay::RecordedRun;
use alto_core::exit::{ExitPolicy, LossAware, Never};
use alto_core::simulated::systems::{AdapterLoad, Launch, Setup, System};
use alto_core::simulated::workload::{Space, TaskJob, TuningTask};
use alto_core::study::{StudyError, Trained, train};

use crate::setup::{corpora, h100, job, run, setup, task};

fn trained(task: &TuningTask, setup: &Setup) -> Trained {
    train(task, setup, &[run()], &Never, 3).expect("a task that can be trained")
}

fn step(setup: &Setup, loads: &[AdapterLoad]) -> f64 {
    setup.step(loads).expect("a setup with all parameters").seconds()
}

/// Of three rows each for so many adapters of this rank.
fn evaluation(setup: &Setup, loads: &[AdapterLoad]) -> f64 {
    let loads: Vec<AdapterLoad> = loads.iter().map(|load| AdapterLoad::new(load.rank, 3, 100)).collect();
    setup.pass(&loads).expect("a setup with all parameters").seconds() / 2.0
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-6 * expected, "{found}, expected {expected}");
}

#[test]
fn one_after_another_is_the_sum_of_all_steps_and_evaluations() {
    let task = task(vec![job(16, 1, 10), job(64, 4, 42)]);
    for (system, devices) in [(System::OneAfterAnother, 1), (System::DataParallel, 2), (System::TensorParallel, 2)] {
        let setup = setup(&TuningTask { devices, ..task.clone() }, system);
        let alone = |load: AdapterLoad, steps: f64| {
            // One before the first step, and one after each, as there are fewer than a hundred.
            steps * step(&setup, &[load]) + (steps + 1.0) * evaluation(&setup, &[load])
        };
        let found = trained(&task, &setup);
        close(found.seconds(), alone(AdapterLoad::new(16, 1, 100), 10.0) + alone(AdapterLoad::new(64, 4, 100), 11.0));
        assert_eq!((found.samples, found.samples_budgeted, found.saved()), (54, 54, 0.0), "{system:?}");
    }
}

#[test]
fn together_jobs_step_until_each_has_ended() {
    let task = task(vec![job(16, 1, 10), job(64, 4, 42)]);
    for system in [System::AdapterParallel, System::MLora, System::LoraFusion] {
        let setup = setup(&task, system);
        let (small, large) = (AdapterLoad::new(16, 1, 100), AdapterLoad::new(64, 4, 100));
        let steps = 10.0 * step(&setup, &[small, large]) + step(&setup, &[large]);
        let evaluations = 11.0 * evaluation(&setup, &[small, large]) + evaluation(&setup, &[large]);
        close(trained(&task, &setup).seconds(), steps + evaluations);
    }
}

#[test]
fn who_does_not_fit_waits_for_a_place() {
    let task = task(vec![job(16, 8, 80), job(16, 1, 30), job(16, 8, 80)]);
    let mut setup = setup(&task, System::AdapterParallel);
    let (wide, thin) = (AdapterLoad::new(16, 8, 100), AdapterLoad::new(16, 1, 100));
    // Room for one of the wide and the thin one.
    setup.device.memory = setup.needed_bytes(&[wide, thin]).unwrap() as f64 + 1000.0;
    let steps = 20.0 * step(&setup, &[wide, thin]) + 10.0 * step(&setup, &[thin]);
    let both = 22.0 * evaluation(&setup, &[wide, thin]);
    let one = 10.0 * evaluation(&setup, &[thin]);
    let found = trained(&task, &setup).seconds();
    // The second wide one is evaluated before its first step when the thin one is not.
    assert!((found - steps - both - one).abs() < evaluation(&setup, &[wide]), "{found}");
    setup.device.memory = setup.needed_bytes(&[wide]).unwrap() as f64 - 1.0;
    let error = train(&task, &setup, &[run()], &Never, 3).unwrap_err();
    assert!(matches!(error, StudyError::NeverFits { rank: 16, batch: 8, .. }), "{error}");
    assert!(error.to_string().starts_with("task small: rank 16 and batch 8 need "), "{error}");
}

#[test]
fn exits_shorten_a_task_and_the_expected_end_follows() {
    let runs = &corpora()[0].runs;
    let task = task((0..24).map(|index| job(16, 1 + index % 4, 400)).collect());
    for system in [System::OneAfterAnother, System::AdapterParallel] {
        let setup = setup(&task, system);
        let of = |policy: &dyn ExitPolicy| train(&task, &setup, runs, policy, 4).expect("a task");
        let (all, exits) = (of(&Never), of(&LossAware::default()));
        assert_eq!(all.saved(), 0.0);
        assert!(exits.saved() > 0.5 && exits.seconds() < 0.5 * all.seconds(), "{system:?}: {}", exits.saved());
        let (first, last) = (exits.timeline.expected[0].1, exits.timeline.expected.last().expect("several").1);
        let over = |expected: f64| expected / exits.seconds() - 1.0;
        assert!(over(first) > 0.5 && over(last).abs() < 0.2 * over(first), "{system:?}: {first}, {last}");
    }
}

#[test]
fn batching_is_faster_than_one_after_another() {
    for (model, devices) in [("Llama-3.1-8B", 1), ("Qwen2.5-32B", 2)] {
        let jobs = Space::paper(devices).jobs(120);
        let task = TuningTask { model: model.to_owned(), devices, row_tokens: 140, ..task(jobs) };
        let alone = if devices > 1 { System::DataParallel } else { System::OneAfterAnother };
        let seconds = |system| trained(&task, &setup(&task, system)).seconds();
        assert!(seconds(System::AdapterParallel) < seconds(alone), "{model}");
    }
}

#[test]
fn a_kernel_that_costs_nothing_to_launch_makes_a_task_faster() {
    let task = task(vec![job(16, 1, 20)]);
    let setup = setup(&task, System::AdapterParallel);
    let mut quick = setup.clone();
    quick.device.launch = Launch { send_seconds: 1e-12, setup_seconds: 1e-12 };
    assert!(trained(&task, &quick).seconds() < 0.5 * trained(&task, &setup).seconds());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |jobs: Vec<TaskJob>, runs: &[RecordedRun], rows| {
        let task = task(jobs);
        let setup = task.setup(System::AdapterParallel, &h100()).expect("a shipped model");
        train(&task, &setup, runs, &Never, rows).unwrap_err().to_string()
    };
    let run = [run()];
    assert_eq!(refused(vec![], &run, 1), "jobs is empty, expected at least one entry");
    assert_eq!(refused(vec![job(1, 1, 1)], &[], 1), "recorded runs is empty, expected at least one entry");
    assert_eq!(refused(vec![job(1, 1, 1)], &run, 0), "validation_rows is 0, expected from 1 to 1048576");
    assert_eq!(refused(vec![job(0, 1, 1)], &run, 1), "rank is 0, expected from 1 to 65536");
    assert_eq!(refused(vec![job(1, 0, 1)], &run, 1), "batch is 0, expected from 1 to 1048576");
    assert_eq!(refused(vec![job(1, 1, 0)], &run, 1), "samples is 0, expected from 1 to 2^53");
}

#[test]
fn what_is_too_large_to_count_is_refused() {
    let refused = |jobs: Vec<TaskJob>, row_tokens| {
        let task = TuningTask { row_tokens, ..task(jobs) };
        let setup = setup(&task, System::AdapterParallel);
        train(&task, &setup, &[run()], &Never, 1).unwrap_err().to_string()
    };
    let most = u64::MAX;
    assert_eq!(
        refused(vec![job(1, usize::MAX, 1)], 256),
        format!("batch is {}, expected from 1 to 1048576", most as f64)
    );
    assert_eq!(refused(vec![job(1 << 50, 1, 1)], 1), "rank is 1125899906842624, expected from 1 to 65536");
    assert_eq!(refused(vec![job(1, 1, 1)], most), format!("row_tokens is {}, expected from 1 to 2^32", most as f64));
    assert_eq!(refused(vec![job(1, 1, most)], 1), format!("samples is {}, expected from 1 to 2^53", most as f64));
    // The largest that counts is no row of any device, and is not even tried.
    assert!(refused(vec![job(65536, 1 << 20, 1)], 1 << 32).contains("need"));
    let largest = TuningTask { row_tokens: 1 << 32, devices: 8, ..task(vec![job(65536, 1 << 20, 1)]) };
    for system in System::ALL {
        let error = train(&largest, &setup(&largest, system), &[run()], &Never, 1).unwrap_err();
        assert!(matches!(error, StudyError::NeverFits { .. }), "{system:?}: {error}");
    }
}

#[test]
fn a_device_without_end_to_its_memory_has_room_for_all() {
    let task = task(vec![job(16, 1, 10), job(64, 4, 42)]);
    for system in [System::OneAfterAnother, System::AdapterParallel] {
        let mut endless = setup(&task, system);
        let ample = trained(&task, &endless);
        endless.device.memory = 1e30;
        assert_eq!(trained(&task, &endless), ample, "{system:?}");
    }
}
