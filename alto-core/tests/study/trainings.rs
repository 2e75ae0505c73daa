//! Tasks that are alike are trained once.

use std::sync::Arc;

use alto_core::exit::LossAware;
use alto_core::simulated::systems::System;
use alto_core::simulated::workload::TuningTask;
use alto_core::study::{Trainings, train};

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
