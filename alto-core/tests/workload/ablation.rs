//! The paper's ablation.

use std::path::Path;

use alto_core::exit::replay::{Corpus, Replay};
use alto_core::exit::{LossAware, Never};
use alto_core::simulated::read_corpus;
use alto_core::simulated::systems::{Device, System};
use alto_core::simulated::workload::{Ablation, AblationRow, WorkloadError, kept_shares};

fn corpora() -> Vec<Corpus> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/curves/gsm-nano"));
    let names = ["answer-s0", "ask-s0", "cram-s0", "solve-s0"];
    names.map(|name| read_corpus(folder.join(format!("{name}.json"))).expect("a committed corpus")).into()
}

fn kept() -> Vec<Vec<f64>> {
    kept_shares(&corpora(), &LossAware::default(), &Replay::default()).expect("corpora that can be replayed")
}

#[test]
fn shares_are_those_of_the_replay() {
    let (corpora, kept) = (corpora(), kept());
    let report = Replay::default().report("loss aware", &LossAware::default(), &corpora).unwrap();
    for ((corpus, shares), task) in corpora.iter().zip(&kept).zip(&report.tasks) {
        let trained: f64 = corpus.runs.iter().zip(shares).map(|(run, share)| share * run.samples() as f64).sum();
        let saved = 1.0 - trained / task.budget as f64;
        assert!((saved - task.saved_share()).abs() < 1e-9, "{}: {saved}", corpus.task);
    }
    let all = kept_shares(&corpora, &Never, &Replay::default()).unwrap();
    assert!(all.iter().flatten().all(|&share| share == 1.0));
}

#[test]
fn each_component_helps_and_all_together_most() {
    for device in ["H100 SXM", "H200 SXM"] {
        let device = Device::named(device).unwrap();
        let ablation = Ablation::new(Ablation::paper_tasks(), &device, 8, &kept(), &[System::DataParallel]).unwrap();
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
    let device = Device::named("H100 SXM").unwrap();
    let ablation = Ablation::new(Ablation::paper_tasks(), &device, 8, &[vec![0.2]], &[System::DataParallel]).unwrap();
    let paper: Vec<f64> = ablation.rows.iter().filter_map(|row| row.paper).collect();
    assert_eq!(paper, [1.00, 1.46, 1.80, 1.50, 3.48, 5.22]);
    assert_eq!(ablation.rows[0].speedup, 1.0);
    assert_eq!(ablation.row(false, false, false).unwrap().over_none, 1.0);
    assert_eq!(ablation.tasks.len(), 11);
    let models: std::collections::BTreeSet<&str> =
        ablation.tasks.iter().map(|timed| timed.task.model.as_str()).collect();
    assert_eq!(models.len(), 4);
}

#[test]
fn what_can_not_be_planned_or_timed_is_an_error() {
    let device = Device::named("H100 SXM").unwrap();
    let ablation = |device: &Device, devices, kept: &[Vec<f64>]| {
        Ablation::new(Ablation::paper_tasks(), device, devices, kept, &[System::DataParallel]).unwrap_err()
    };
    assert_eq!(ablation(&device, 8, &[]).to_string(), "kept shares is empty, expected at least one entry");
    assert!(matches!(ablation(&device, 2, &[vec![0.2]]), WorkloadError::Plan(_)));
    let small = Device::named("A100 PCIe 40 GB").unwrap();
    assert!(matches!(ablation(&small, 8, &[vec![0.2]]), WorkloadError::NeverFits { .. }));
}

#[test]
fn without_batching_the_fastest_system_given_is_taken() {
    let device = Device::named("H100 SXM").unwrap();
    let ablation = |systems: &[System]| Ablation::new(Ablation::paper_tasks(), &device, 8, &[vec![0.2]], systems);
    let systems = [System::DataParallel, System::Pipeline, System::TensorParallel];
    let each = systems.map(|system| ablation(&[system]).unwrap());
    for (index, timed) in ablation(&systems).unwrap().tasks.iter().enumerate() {
        let least = each.iter().map(|ablation| ablation.tasks[index].alone).fold(f64::INFINITY, f64::min);
        assert_eq!(timed.alone, least);
        assert_eq!(timed.alone_by == System::OneAfterAnother, timed.task.devices == 1);
    }
    let error = ablation(&[]).unwrap_err().to_string();
    assert_eq!(error, "systems without batching is empty, expected at least one entry");
}

#[test]
fn against_tensor_parallelism_planning_and_exits_still_help() {
    let device = Device::named("H100 SXM").unwrap();
    let ablation = Ablation::new(Ablation::paper_tasks(), &device, 8, &kept(), &[System::TensorParallel]).unwrap();
    let makespan = |batching, scheduling, exits| ablation.row(batching, scheduling, exits).unwrap().makespan;
    for batching in [false, true] {
        for other in [false, true] {
            assert!(makespan(batching, true, other) <= makespan(batching, false, other));
            assert!(makespan(batching, other, true) < makespan(batching, other, false));
        }
    }
    // Batching doesn't, where the model is gathered for each pass and memory leaves few rows.
    let large = ablation.tasks.iter().filter(|timed| timed.task.devices == 4);
    assert!(large.into_iter().all(|timed| timed.alone < timed.batched));
    assert!(ablation.tasks.iter().filter(|timed| timed.task.devices < 4).all(|timed| timed.batched < timed.alone));
}
