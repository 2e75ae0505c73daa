//! What holds on CubeCL's devices alone: how much a step launches, and models in 16 bits.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use alto_core::backend::Backend;
use alto_core::burn::BurnBackend;
use alto_core::dtype::Dtype;
use alto_core::job::Job;
use alto_core::kernels::launches;
use alto_core::model::{ModelConfig, ModelWeights};
use alto_core::testing::parity::{CaseOutcome, case_dtype, cases, run_case};

use super::device::cubecl_device;
use super::setup::{ALL, job, join, read, rows, some_rows, testdata, train};

/// Launches are counted over the whole process, so these tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn model(layers: usize) -> (ModelConfig, ModelWeights) {
    let dir = testdata("oracle/llama_untied");
    let mut config = ModelConfig::read(&dir).unwrap();
    let mut weights = ModelWeights::read(&dir, &config).unwrap();
    config.layers = layers;
    weights.blocks.truncate(layers);
    (config, weights)
}

/// Adapters of ranks 1 to 12, each with a row of its own; every other one accumulates over two micro-batches if `uneven`.
fn adapters(count: usize, uneven: bool) -> Vec<Job> {
    let adapter = |index: usize| {
        let mut job = job(&format!("job {index}"), 1 + index % 12, if index % 5 == 1 { &ALL[..2] } else { &ALL });
        job.accumulation = if uneven && index % 2 == 1 { 2 } else { 1 };
        job
    };
    (0..count).map(adapter).collect()
}

/// What each of three steps launches, after one that isn't counted.
fn launched(layers: usize, jobs: &[Job]) -> Vec<BTreeMap<&'static str, u64>> {
    let (config, weights) = model(layers);
    let mut backend = BurnBackend::new(config, weights, &cubecl_device());
    let rows = some_rows();
    let mut tenants: Vec<_> = jobs.iter().map(|job| join(&mut backend, job, &rows)).collect();
    let mut step = |backend: &mut BurnBackend| train(backend, &mut tenants.iter_mut().collect::<Vec<_>>(), 1);
    step(&mut backend);
    let counts = (0..3).map(|_| launches(|| step(&mut backend)).1).collect();
    assert!(!read(&mut backend).is_empty());
    counts
}

#[test]
fn a_step_of_64_adapters_launches_what_one_of_2_does() {
    let _turn = turn();
    for (layers, uneven) in [(1, false), (2, false), (1, true)] {
        let few = launched(layers, &adapters(2, uneven));
        let many = launched(layers, &adapters(64, uneven));
        println!("{layers} layers, uneven {uneven}: {:?}", few[0]);
        assert_eq!(few, many, "{layers} layers, uneven {uneven}");
    }
}

#[test]
fn each_layer_launches_the_same() {
    let _turn = turn();
    let [one, two] = [1, 2].map(|layers| launched(layers, &adapters(3, false))[0].values().sum::<u64>());
    println!("a step of one layer launches {one} kernels, each further layer {}", two - one);
    assert!(one < two && two - one < one, "{one} with one layer, {two} with two");
}

/// Every recorded case in bf16, where the device has it.
#[test]
fn models_in_bf16_are_as_close_to_f32_as_the_references_are() {
    let _turn = turn();
    for name in ["llama_untied", "llama_tied"] {
        let dir = testdata("oracle").join(name);
        let config = ModelConfig::read(&dir).unwrap();
        let weights = ModelWeights::read(&dir, &config).unwrap();
        let mut backend = match BurnBackend::with_dtype(config, weights, &cubecl_device(), Dtype::Bf16) {
            Ok(backend) => backend,
            Err(error) => {
                assert!(error.to_string().contains("can't compute in bf16"), "{error}");
                return;
            }
        };
        for case in cases(&dir).unwrap().into_iter().filter(|case| case_dtype(case) == Dtype::Bf16) {
            let outcome = run_case(&mut backend, &case);
            if let CaseOutcome::Compared(errors) = &outcome {
                println!("{}: {errors}\naccepted: {:?}", case.display(), errors.tolerance);
            }
            assert!(outcome.passes(), "{}: {outcome:?}", case.display());
        }
    }
}

/// In f16 losses and gradient norms are near those in f32, also where a mean over many tokens makes each gradient small.
#[test]
fn steps_in_f16_are_nearly_those_in_f32() {
    let _turn = turn();
    let rows = rows(5, 8, 100..=200);
    let reports = [Dtype::F32, Dtype::F16].map(|dtype| {
        let (config, weights) = model(2);
        let mut backend = BurnBackend::with_dtype(config, weights, &cubecl_device(), dtype).unwrap();
        let mut job = job("job", 8, &ALL);
        job.batch = 8;
        let mut tenant = join(&mut backend, &job, &rows);
        train(&mut backend, &mut [&mut tenant], 3);
        read(&mut backend)
    });
    for (exact, rounded) in reports[0].iter().zip(&reports[1]) {
        assert_ne!(exact.loss, rounded.loss, "f16 rounds");
        for (exact, rounded, most) in [(exact.loss, rounded.loss, 1e-3), (exact.grad_norm, rounded.grad_norm, 5e-3)] {
            let error = (exact - rounded).abs() / exact;
            println!("{rounded} in f16, {exact} in f32: {error:.1e}");
            assert!(error < most, "{rounded} in f16, {exact} in f32");
        }
    }
}

#[test]
fn memory_is_what_the_device_reports() {
    let _turn = turn();
    let (config, weights) = model(2);
    let mut backend = BurnBackend::new(config, weights, &cubecl_device());
    let rows = some_rows();
    let job = job("job", 8, &ALL);
    let mut tenant = join(&mut backend, &job, &rows);
    let before = backend.memory();
    // The weights in f32: two blocks of 43,008 entries, embedding and head of 16,384.
    assert!(before.in_use >= 4 * (2 * 43_008 + 2 * 16_384), "{before:?}");
    train(&mut backend, &mut [&mut tenant], 2);
    read(&mut backend);
    let after = backend.memory();
    assert!(after.peak >= after.in_use && after.peak >= before.in_use, "{before:?}, then {after:?}");
}
