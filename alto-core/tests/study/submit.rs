//! Tasks on a virtual site take what the trainer takes, and plans don't know of exits.

use alto_core::exit::LossAware;
use alto_core::fleet::{Fleet, FleetError, Virtual};
use alto_core::sched::{Cluster, FirstComeFirstServed, Makespan};
use alto_core::simulated::systems::System;
use alto_core::simulated::workload::{Arrivals, DataSize, Generator, TuningTask, read_trace};
use alto_core::study::{StudyError, Trainings};

use crate::setup::{corpora, h100, job, task};

#[test]
fn a_fleet_runs_generated_tasks_for_as_long_as_the_trainer_takes() {
    let (corpora, policy) = (corpora(), LossAware::default());
    let mut trainings = Trainings::new(h100(), &corpora, &policy);
    trainings.validation_rows = 1;
    let data = vec![DataSize { rows: 40, row_tokens: 140 }];
    let generator = Generator { data, ..Generator::paper(3, 20, Arrivals::Poisson { per_hour: 100.0 }) };
    let (mut site, tasks) = (Virtual::default(), generator.tasks().unwrap());
    let mut trained = vec![];
    for (index, task) in tasks.iter().enumerate() {
        trained.push(trainings.submit(&mut site, task, System::AdapterParallel, index).unwrap());
    }
    let fleet = Fleet::new(Cluster::single(&h100().name, 8));
    let report = fleet.run(&Makespan::default(), &mut site, &mut |_| {}).unwrap();
    for ((done, task), trained) in report.tasks.iter().zip(&tasks).zip(&trained) {
        assert!((done.run().unwrap() - trained.seconds()).abs() < 1e-5, "{}", task.name);
        assert!((done.arrived - task.release).abs() < 1e-5 && done.devices.len() == task.devices, "{done:?}");
        // It was to take much longer.
        assert!(done.planned.unwrap() - done.started.unwrap() > 1.5 * trained.seconds(), "{done:?}");
    }
}

fn traced(text: &str, devices: u32) -> Result<Vec<f64>, StudyError> {
    let (corpora, policy) = (corpora(), LossAware::default());
    let mut trainings = Trainings::new(h100(), &corpora, &policy);
    trainings.validation_rows = 1;
    let mut site = Virtual::default();
    for (index, task) in read_trace(text.as_bytes()).expect("a trace").iter().enumerate() {
        trainings.submit_traced(&mut site, task, System::AdapterParallel, index)?;
    }
    let fleet = Fleet::new(Cluster::single(&h100().name, devices));
    let report = fleet.run(&FirstComeFirstServed, &mut site, &mut |_| {})?;
    Ok(report.tasks.iter().filter_map(|task| task.ended).collect())
}

#[test]
fn a_trace_runs_its_durations_and_trains_its_jobs() {
    let header = "arrival,devices,kind,duration,model,row_tokens,jobs\n";
    let jobs = "16:1e-4:2:60;64:5e-4:4:60";
    let ends = traced(&format!("{header}0,2,,100,,,\n10,1,H100 SXM,,Llama-3.2-1B,140,{jobs}\n"), 2).unwrap();
    let (corpora, policy) = (corpora(), LossAware::default());
    let mut trainings = Trainings::new(h100(), &corpora, &policy);
    trainings.validation_rows = 1;
    let mut tuning = TuningTask { row_tokens: 140, ..task(vec![job(16, 2, 60), job(64, 4, 60)]) };
    tuning.jobs[1].learning_rate = 5e-4;
    let seconds = trainings.of(&tuning, System::AdapterParallel, Some(1)).unwrap().seconds();
    assert_eq!(ends[0], 100.0);
    assert!((ends[1] - 100.0 - seconds).abs() < 1e-5, "{ends:?}, {seconds}");
}

#[test]
fn a_trace_that_can_not_be_run_says_why() {
    let kind = traced("name,arrival,devices,kind,duration\nbig,0,4,A100,3600\n", 8).unwrap_err();
    let StudyError::Fleet(FleetError::Task { .. }) = &kind else { panic!("{kind:?}") };
    let fault = std::error::Error::source(&kind).expect("a reason").to_string();
    assert!(fault.starts_with("task 0 (\"big\") needs devices of kind \"A100\""), "{fault}");
    let model = traced("arrival,devices,model,row_tokens,jobs\n0,1,GPT-9,140,16:1e-4:2:10\n", 8).unwrap_err();
    assert_eq!(model.to_string(), "task line 2 can't be trained on this device");
    let source = std::error::Error::source(&model).expect("a reason").to_string();
    assert!(source.starts_with("no model is named \"GPT-9\"; there are Llama-3.1-8B"), "{source}");
}
