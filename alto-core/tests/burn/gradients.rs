//! Gradients of long rows against what the loss does when a factor moves.

use alto_core::adapter::Adapter;
use alto_core::backend::{Backend, JobState};
use alto_core::batch::Batch;
use alto_core::burn::BurnBackend;
use alto_core::data::Dataset;
use alto_core::job::Job;
use alto_core::matrix::Matrix;
use alto_core::testing::parity::Inspect;

use super::setup::{ALL, alone, job, lane, rows, small};

/// The mean loss of all rows under this adapter.
fn loss(backend: &mut BurnBackend, job: &Job, adapter: Adapter, rows: &Dataset) -> f64 {
    let slot = backend.attach(job, Some(JobState::starting_from(adapter))).unwrap();
    let mut batch = Batch::default();
    batch.push(lane(Some(slot), rows.examples().len(), 1.0, false), rows.examples());
    let evaluation = backend.evaluate(&batch).unwrap().remove(0);
    backend.detach(slot).unwrap();
    evaluation.sum / evaluation.count as f64
}

/// A factor of an adapter.
fn factor<'a>(adapter: &'a mut Adapter, module: &str, in_a: bool) -> &'a mut Matrix {
    let pair = adapter.modules.get_mut(module).unwrap();
    if in_a { &mut pair.a } else { &mut pair.b }
}

/// Along its gradient, each factor changes the loss by the gradient's norm.
#[test]
fn every_factor_moves_the_loss_as_its_gradient_says() {
    // Longer than what attention takes in one block.
    let rows = rows(9, 3, 70..=200);
    let job = job("job", 4, &ALL);
    let mut backend = small();
    let (_, state) = alone(&mut backend, &job, &rows, 5);
    let adapter = state.adapter;

    let slot = backend.attach(&job, Some(JobState::starting_from(adapter.clone()))).unwrap();
    let labelled = rows.examples().iter().map(|row| row.labelled()).sum::<usize>();
    let mut batch = Batch::default();
    batch.push(lane(Some(slot), 3, labelled as f64, false), rows.examples());
    backend.step(&batch).unwrap();
    let gradient = backend.gradient(slot).unwrap();
    backend.detach(slot).unwrap();

    let mut largest = 0.0f64;
    for (module, pair) in &gradient {
        for (in_a, slope) in [(true, &pair.a), (false, &pair.b)] {
            let norm = slope.data().iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
            let mut moved = |distance: f64| {
                let mut adapter = adapter.clone();
                let entries = factor(&mut adapter, module, in_a).data_mut().iter_mut();
                entries.zip(slope.data()).for_each(|(x, g)| *x += (distance / norm * f64::from(*g)) as f32);
                loss(&mut backend, &job, adapter, &rows)
            };
            // Far enough that the loss moves by much more than f32 rounds it.
            let distance = 3e-3 / norm.max(0.05);
            let found = (moved(distance) - moved(-distance)) / (2.0 * distance);
            let error = (found / norm - 1.0).abs();
            assert!(error < 1e-3, "{module}, in lora_A {in_a}: the loss has the slope {found}, the gradient {norm}");
            largest = largest.max(error);
        }
    }
    println!("slopes within {largest:.1e}");
}
