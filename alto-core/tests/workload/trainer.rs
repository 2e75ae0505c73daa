//! A trainer on a simulated backend takes as long as the task is said to.

use alto_core::batch::Example;
use alto_core::data::Dataset;
use alto_core::exit::Never;
use alto_core::simulated::systems::{Device, System};
use alto_core::simulated::workload::{TaskJob, TuningTask};
use alto_core::simulated::{RecordedRun, SimulatedBackend};
use alto_core::trainer::{Admission, Trainer};

const ROW: u64 = 100;

fn rows(count: usize, length: u64) -> Dataset {
    let tokens: Vec<u32> = (0..length as u32).collect();
    let row = Example { targets: tokens.iter().map(|&token| Some(token)).collect(), tokens };
    Dataset::from_examples(vec![row; count]).expect("rows")
}

/// Seconds of virtual time for all jobs, evaluated before their first step and after their last.
fn trained(task: &TuningTask, system: System, slots: Option<usize>) -> f64 {
    let run = r#"{"rank": 4, "alpha": 8, "lr": 0.001, "batch": 1, "steps": 1,
        "train_loss": [1], "eval_step": [0, 1], "val_loss": [2, 1]}"#;
    let run: RecordedRun = serde_json::from_str(run).expect("a recorded run");
    let setup = task.setup(system, &Device::named("H100 SXM").expect("a shipped device")).expect("a setup");
    let cost = setup.cost_model(&[task.jobs[0].load(ROW)]).expect("a setup with all parameters");
    let jobs: Vec<_> = task.jobs.iter().enumerate().map(|(index, job)| job.to_job(&index.to_string(), 0)).collect();
    let mut backend = SimulatedBackend::from_surface(move |_| run.clone(), cost)
        .expect("a cost model")
        .timed_by(setup)
        .expect("a setup");
    let trainer = Trainer { interval: 1.0, slots, admission: Admission::Unlimited, ..Trainer::default() };
    let candidates = jobs.into_iter().map(Into::into).collect();
    let (train, validation) = (rows(64, ROW), rows(1, 1));
    trainer.run(&mut backend, &train, &validation, candidates, &Never, &mut |_| {}).expect("a run to its end");
    backend.elapsed().as_secs_f64()
}

#[test]
fn the_trainer_takes_what_the_task_is_said_to_take() {
    let jobs = [(16, 1), (16, 4), (64, 2), (32, 8), (64, 1)];
    let jobs = jobs.map(|(rank, batch)| TaskJob { rank, learning_rate: 1e-4, batch, samples: 1000 }).into();
    let mut task = TuningTask {
        name: "small".to_owned(),
        release: 0.0,
        model: "Llama-3.2-1B".to_owned(),
        devices: 1,
        row_tokens: ROW,
        jobs,
    };
    for (system, devices, slots) in [
        (System::AdapterParallel, 1, None),
        (System::AdapterParallel, 2, None),
        (System::OneAfterAnother, 1, Some(1)),
        (System::MLora, 1, None),
        (System::DataParallel, 2, Some(1)),
    ] {
        task.devices = devices;
        let setup = task.setup(system, &Device::named("H100 SXM").unwrap()).unwrap();
        let said = task.seconds(&setup, &[]).unwrap();
        let took = trained(&task, system, slots);
        // Evaluations of a token, twice for each job, are all that isn't said.
        assert!(took > said && took < 1.02 * said, "{system:?} on {devices}: {took} s, said {said} s");
    }
}
