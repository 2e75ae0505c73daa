//! How long tasks take.

use alto_core::simulated::systems::{AdapterLoad, Device, Launch, Setup, System};
use alto_core::simulated::workload::{Arrivals, DataSize, Generator, Space, TaskJob, TuningTask, durations};

fn task(jobs: Vec<TaskJob>) -> TuningTask {
    TuningTask {
        name: "small".to_owned(),
        release: 0.0,
        model: "Llama-3.2-1B".to_owned(),
        devices: 1,
        row_tokens: 100,
        jobs,
    }
}

fn job(rank: usize, batch: usize, samples: u64) -> TaskJob {
    TaskJob { rank, learning_rate: 1e-4, batch, samples }
}

fn setup(task: &TuningTask, system: System) -> Setup {
    task.setup(system, &Device::named("H100 SXM").expect("a shipped device")).expect("a shipped model")
}

fn step(setup: &Setup, loads: &[AdapterLoad]) -> f64 {
    setup.step(loads).expect("a setup with all parameters").seconds()
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected, "{found}, expected {expected}");
}

#[test]
fn one_after_another_is_the_sum_of_all_steps() {
    let task = task(vec![job(16, 1, 10), job(64, 4, 42)]);
    let setup = setup(&task, System::OneAfterAnother);
    let expected =
        10.0 * step(&setup, &[AdapterLoad::new(16, 1, 100)]) + 11.0 * step(&setup, &[AdapterLoad::new(64, 4, 100)]);
    close(task.seconds(&setup, &[]).unwrap(), expected);
}

#[test]
fn together_jobs_step_until_each_has_ended() {
    let task = task(vec![job(16, 1, 10), job(64, 4, 42)]);
    let setup = setup(&task, System::AdapterParallel);
    let (small, large) = (AdapterLoad::new(16, 1, 100), AdapterLoad::new(64, 4, 100));
    close(task.seconds(&setup, &[]).unwrap(), 10.0 * step(&setup, &[large, small]) + step(&setup, &[large]));
    // Half of the first's steps, rounded up, and all of the second's.
    close(
        task.seconds(&setup, &[0.5, 1.0]).unwrap(),
        5.0 * step(&setup, &[large, small]) + 6.0 * step(&setup, &[large]),
    );
    assert_eq!(task.seconds(&setup, &[0.0]).unwrap(), 0.0);
}

#[test]
fn who_does_not_fit_waits_for_a_place() {
    let task = task(vec![job(16, 8, 80), job(16, 1, 30), job(16, 8, 80)]);
    let mut setup = setup(&task, System::AdapterParallel);
    let (wide, thin) = (AdapterLoad::new(16, 8, 100), AdapterLoad::new(16, 1, 100));
    // Room for one of the wide and the thin one.
    setup.device.memory = setup.needed_bytes(&[wide, thin]).unwrap() as f64;
    let expected = 20.0 * step(&setup, &[wide, thin]) + 10.0 * step(&setup, &[thin]);
    close(task.seconds(&setup, &[]).unwrap(), expected);
    setup.device.memory = setup.needed_bytes(&[wide]).unwrap() as f64 - 1.0;
    let error = task.seconds(&setup, &[]).unwrap_err().to_string();
    assert!(error.starts_with("task small: rank 16 and batch 8 need "), "{error}");
}

#[test]
fn a_place_goes_to_a_job_of_the_same_batch_before_a_larger_one() {
    let jobs = [(16, 8), (112, 4), (16, 2), (16, 2), (1, 1)];
    let task = task(jobs.map(|(rank, batch)| job(rank, batch, 10 * batch as u64)).into());
    let [first, large, small, next, single] = jobs.map(|(rank, batch)| AdapterLoad::new(rank, batch, 100));
    let mut setup = setup(&task, System::AdapterParallel);
    setup.device.memory = setup.needed_bytes(&[first, small]).unwrap() as f64;
    // So that it matters who steps together: few tokens wait for the weights, more for the operations.
    setup.device.launch = Launch { send_seconds: 1e-12, setup_seconds: 1e-12 };
    assert!(setup.fits(&[large, single]).unwrap() && !setup.fits(&[large, next]).unwrap());
    // When the first and the small one end, the next of batch 2 begins, not the large one.
    let expected = step(&setup, &[first, small]) + step(&setup, &[next, single]) + step(&setup, &[large]);
    let otherwise = step(&setup, &[first, small]) + step(&setup, &[large, single]) + step(&setup, &[next]);
    assert!((expected - otherwise).abs() > 1e-3 * expected);
    close(task.seconds(&setup, &[]).unwrap(), 10.0 * expected);
}

#[test]
fn batching_is_never_slower_than_one_after_another_and_exits_never_than_none() {
    let samples = DataSize::GSM8K.rows;
    for (model, devices) in [("Llama-3.1-8B", 1), ("Qwen2.5-32B", 2), ("Llama-3.1-70B", 4)] {
        let jobs = Space::paper(devices).jobs(samples);
        let task = TuningTask { model: model.to_owned(), devices, row_tokens: 140, ..task(jobs) };
        let alone = if devices > 1 { System::DataParallel } else { System::OneAfterAnother };
        let seconds = |system, kept: &[f64]| task.seconds(&setup(&task, system), kept).unwrap();
        assert!(seconds(System::AdapterParallel, &[]) < seconds(alone, &[]), "{model}");
        for system in [alone, System::AdapterParallel] {
            let (all, half) = (seconds(system, &[]), seconds(system, &[0.1, 0.9, 0.5]));
            assert!(half < all, "{model}: {half} s, all {all} s");
        }
    }
}

#[test]
fn sizes_and_shares_that_make_no_sense_are_refused() {
    let refused = |jobs: Vec<TaskJob>, kept: &[f64]| {
        let task = task(jobs);
        task.seconds(&setup(&task, System::AdapterParallel), kept).unwrap_err().to_string()
    };
    assert_eq!(refused(vec![], &[]), "jobs is empty, expected at least one entry");
    assert_eq!(refused(vec![job(0, 1, 1)], &[]), "rank is 0, expected from 1 to 65536");
    assert_eq!(refused(vec![job(1, 0, 1)], &[]), "batch is 0, expected from 1 to 1048576");
    assert_eq!(refused(vec![job(1, 1, 0)], &[]), "samples is 0, expected from 1 to 2^53");
    assert_eq!(refused(vec![job(1, 1, 1)], &[1.5]), "kept share is 1.5, expected from 0 to 1");
    assert_eq!(refused(vec![job(1, 1, 1)], &[f64::NAN]), "kept share is NaN, expected from 0 to 1");
}

#[test]
fn many_tasks_take_what_each_takes_by_itself() {
    let device = Device::named("H100 SXM").unwrap();
    let mut tasks = Generator::paper(2, 12, Arrivals::AtOnce).tasks().unwrap();
    tasks[5].jobs.truncate(3);
    let kept = [vec![0.1], vec![0.2, 0.9]];
    let found = durations(&tasks, System::AdapterParallel, &device, &kept).unwrap();
    for (index, task) in tasks.iter().enumerate() {
        let expected = task.seconds(&setup(task, System::AdapterParallel), &kept[index % 2]).unwrap();
        assert_eq!(found[index], expected, "{}", task.name);
    }
    let all = durations(&tasks[..1], System::AdapterParallel, &device, &[]).unwrap();
    assert_eq!(all, [tasks[0].seconds(&setup(&tasks[0], System::AdapterParallel), &[]).unwrap()]);
}
