//! Tasks that are alike are trained once.

use std::sync::Arc;

use alto_core::exit::LossAware;
use alto_core::simulated::systems::{Device, System};
use alto_core::simulated::workload::TuningTask;
use alto_core::study::{StudyError, Trainings, train};

use crate::setup::{corpora, h100, job, setup, task};

#[test]
fn tasks_that_are_alike_are_trained_once_and_others_by_themselves() {
    let (corpora, policy) = (corpora(), LossAware::default());
    let mut trainings = Trainings::new(h100(), &corpora[..2], &policy);
    trainings.validation_rows = 2;
    let first = task((0..24).map(|_| job(16, 1, 100)).collect());
    let renamed = TuningTask { name: "another".to_owned(), release: 7.0, ..first.clone() };
    let mut other = first.clone();
    other.jobs[5].samples = 101;
    let system = System::AdapterParallel;
    let one = trainings.of(&first, system, Some(0)).unwrap();
    assert!(Arc::ptr_eq(&one, &trainings.of(&renamed, system, Some(2)).unwrap()));
    let others = [
        trainings.of(&first, system, Some(1)).unwrap(),
        trainings.of(&first, system, None).unwrap(),
        trainings.of(&first, System::OneAfterAnother, Some(0)).unwrap(),
        trainings.of(&other, system, Some(0)).unwrap(),
        trainings.of(&TuningTask { row_tokens: 101, ..first.clone() }, system, Some(0)).unwrap(),
    ];
    assert!(others.iter().all(|other| **other != *one));
    assert_eq!(*one, train(&first, &setup(&first, system), &corpora[0].runs, &policy, 2).unwrap());
    trainings.validation_rows = 3;
    assert!(trainings.of(&first, system, Some(0)).unwrap().seconds() > one.seconds());
}

#[test]
fn without_recorded_runs_nothing_can_be_trained() {
    let policy = LossAware::default();
    let error = Trainings::new(h100(), &[], &policy).of(&task(vec![job(1, 1, 1)]), System::MLora, None).unwrap_err();
    assert_eq!(error.to_string(), "corpora is empty, expected at least one entry");
}

#[test]
fn activations_are_recomputed_where_that_is_faster_or_the_only_way() {
    let (corpora, policy) = (corpora(), LossAware::default());
    let mut trainings = Trainings::new(h100(), &corpora, &policy);
    trainings.validation_rows = 1;
    let small = task(vec![job(16, 1, 20)]);
    assert!(!trainings.of(&small, System::AdapterParallel, None).unwrap().recompute);
    // Room for two of the wide one's six rows, if all is kept of them.
    let setup = setup(&small, System::AdapterParallel);
    let needed = |batch: usize| setup.needed_bytes(&[job(16, batch, 1).load(100)]).unwrap() as f64;
    let on = |memory| {
        let mut trainings = Trainings::new(Device { memory, ..h100() }, &corpora, &policy);
        trainings.validation_rows = 1;
        trainings
    };
    let wide = task(vec![job(16, 6, 60)]);
    let trained = on(needed(2)).of(&wide, System::AdapterParallel, Some(0)).unwrap();
    assert!(trained.recompute);
    let error = on(1e9).of(&wide, System::MLora, None).unwrap_err();
    assert!(matches!(error, StudyError::NeverFits { .. }), "{error}");
}
