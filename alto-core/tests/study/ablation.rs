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
    tasks.iter_mut().flat_map(|task| &mut task.jobs).for_each(|job| job.samples /= 120);
    tasks
}

fn ablation(device: Device, devices: u32, systems: &[System]) -> Result<Ablation, StudyError> {
    ablations(device, devices, &[systems]).map(|mut ablations| ablations.remove(0))
}

/// One for each of these lists of systems without batching.
fn ablations(device: Device, devices: u32, systems: &[&[System]]) -> Result<Vec<Ablation>, StudyError> {
    let (corpora, policy) = (corpora(), LossAware::default());
    let mut trainings = Trainings::new(device, &corpora, &policy);
    trainings.validation_rows = 1;
    systems.iter().map(|systems| Ablation::new(tasks(), devices, &mut trainings, systems)).collect()
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
fn against_the_fastest_system_without_batching_all_together_is_most_too() {
    let [data, pipeline, tensor] = [System::DataParallel, System::Pipeline, System::TensorParallel];
    let mut each = ablations(h100(), 8, &[&[data, pipeline, tensor], &[data], &[pipeline], &[tensor]]).unwrap();
    let fastest = each.remove(0);
    for (index, timed) in fastest.tasks.iter().enumerate() {
        let least = each.iter().map(|ablation| ablation.tasks[index].alone.seconds()).fold(f64::INFINITY, f64::min);
        assert_eq!(timed.alone.seconds(), least);
        assert_eq!(timed.alone_by == System::OneAfterAnother, timed.task.devices == 1);
        assert!(timed.batched.seconds() < timed.alone.seconds(), "{}", timed.task.name);
        // Memory would hold so few rows of the largest model that batching would win nothing.
        assert!(timed.batched.recompute || timed.task.devices < 4);
    }
    let all = fastest.row(true, true, true).unwrap();
    assert!(fastest.rows.iter().all(|row| row.speedup <= all.speedup), "{:?}", fastest.rows);
}
