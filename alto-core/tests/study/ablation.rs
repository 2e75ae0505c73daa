//! The paper's ablation.

use std::collections::BTreeSet;

use alto_core::exit::LossAware;
use alto_core::simulated::systems::{Device, System};
use alto_core::simulated::workload::TuningTask;
use alto_core::study::{Ablation, AblationRow, StudyError, Trainings};

use crate::setup::{corpora, h100};

/// The paper's tasks on a part of the data: ratios depend little on how many rows there are.
fn tasks() -> Vec<TuningTask> {
    let mut tasks = Ablation::paper_tasks();
    tasks.iter_mut().flat_map(|task| &mut task.jobs).for_each(|job| job.samples /= 60);
    tasks
}

fn ablation(device: Device, devices: u32, systems: &[System]) -> Result<Ablation, StudyError> {
    let (corpora, policy) = (corpora(), LossAware::default());
    let mut trainings = Trainings::new(device, &corpora, &policy);
    trainings.validation_rows = 1;
    Ablation::new(tasks(), devices, &mut trainings, systems)
}

#[test]
fn each_component_helps_and_all_together_most() {
    for device in ["H100 SXM", "H200 SXM"] {
        let ablation = ablation(Device::named(device).unwrap(), 8, &[System::DataParallel]).unwrap();
        let row = |batching, scheduling, exits| *ablation.row(batching, scheduling, exits).unwrap();
        let switches = [false, true];
        for first in switches {
            for second in switches {
                let helps = |without: AblationRow, with: AblationRow| {
                    assert!(with.makespan <= without.makespan, "{without:?}, {with:?}");
                };
                helps(row(false, first, second), row(true, first, second));
                helps(row(first, false, second), row(first, true, second));
                helps(row(first, second, false), row(first, second, true));
            }
        }
        let all = row(true, true, true);
        let others = ablation.rows.iter().filter(|other| **other != all);
        assert!(others.into_iter().all(|other| other.speedup < all.speedup), "{:?}", ablation.rows);
        // As in the paper, batching's and exits' win together is more than planning's with either.
        assert!(row(true, false, true).speedup > row(true, true, false).speedup);
    }
}

#[test]
fn the_rows_stand_beside_the_paper_s_figures() {
    let ablation = ablation(h100(), 8, &[System::DataParallel]).unwrap();
    let paper: Vec<f64> = ablation.rows.iter().filter_map(|row| row.paper).collect();
    assert_eq!(paper, [1.00, 1.46, 1.80, 1.50, 3.48, 5.22]);
    assert_eq!(ablation.rows[0].speedup, 1.0);
    assert_eq!(ablation.row(false, false, false).unwrap().over_none, 1.0);
    assert_eq!(ablation.tasks.len(), 11);
    let models: BTreeSet<&str> = ablation.tasks.iter().map(|timed| timed.task.model.as_str()).collect();
    assert_eq!(models.len(), 4);
}

#[test]
fn what_can_not_be_run_or_trained_is_an_error() {
    assert!(matches!(ablation(h100(), 2, &[System::DataParallel]), Err(StudyError::Fleet(_))));
    let small = Device::named("A100 PCIe 40 GB").unwrap();
    assert!(matches!(ablation(small, 8, &[System::DataParallel]), Err(StudyError::NeverFits { .. })));
    let error = ablation(h100(), 8, &[]).unwrap_err().to_string();
    assert_eq!(error, "systems without batching is empty, expected at least one entry");
}

#[test]
fn without_batching_the_fastest_system_given_is_taken() {
    let systems = [System::DataParallel, System::Pipeline, System::TensorParallel];
    let each = systems.map(|system| ablation(h100(), 8, &[system]).unwrap());
    for (index, timed) in ablation(h100(), 8, &systems).unwrap().tasks.iter().enumerate() {
        let least = each.iter().map(|ablation| ablation.tasks[index].alone.seconds()).fold(f64::INFINITY, f64::min);
        assert_eq!(timed.alone.seconds(), least);
        assert_eq!(timed.alone_by == System::OneAfterAnother, timed.task.devices == 1);
    }
}

#[test]
fn all_together_is_most_against_the_fastest_system_too() {
    let systems = [System::DataParallel, System::Pipeline, System::TensorParallel];
    let ablation = ablation(h100(), 8, &systems).unwrap();
    let all = ablation.row(true, true, true).unwrap();
    assert!(ablation.rows.iter().all(|row| row.speedup <= all.speedup), "{:?}", ablation.rows);
    // What memory holds of the largest model without recomputation leaves batching nothing to win.
    let large = ablation.tasks.iter().filter(|timed| timed.task.devices == 4);
    assert!(large.into_iter().all(|timed| timed.batched.recompute));
    assert!(ablation.tasks.iter().all(|timed| timed.batched.seconds() < timed.alone.seconds()));
}
