//! Leaving, coming back and being looked at.

use alto_core::backend::{Backend, JobState};
use alto_core::batch::Batch;
use alto_core::job::Job;

use super::setup::{
    adapter_error, advance, alone, bits, join, lane, leave, losses, read, rejoin, relative_error, small,
};
use super::setup::{some_rows, train, unlike_jobs};

fn jobs() -> [Job; 3] {
    let mut jobs = unlike_jobs();
    jobs[1].accumulation = 2;
    jobs
}

/// The job's state after half of its micro-batches, and its losses up to there.
fn half_way(job: &Job) -> (Vec<f64>, JobState) {
    alone(&mut small(), job, &some_rows(), 10)
}

#[test]
fn a_job_goes_on_bit_for_bit_on_the_same_and_on_another_backend() {
    let rows = some_rows();
    for job in jobs() {
        let (expected, end) = alone(&mut small(), &job, &rows, 20);
        let (before, state) = half_way(&job);
        assert_eq!(bits(&before), bits(&expected[..before.len()]));
        let mut same = small();
        alone(&mut same, &job, &rows, 10);
        for backend in [&mut same, &mut small()] {
            let mut tenant = rejoin(backend, &job, &rows, Some(state.clone()));
            assert_eq!(backend.snapshot(tenant.slot).unwrap(), state, "what went in comes out");
            train(backend, &mut [&mut tenant], 10);
            let found = losses(&read(backend), tenant.slot);
            assert_eq!(bits(&found), bits(&expected[before.len()..]), "{}", job.name);
            assert_eq!(leave(backend, tenant), end, "{}", job.name);
        }
    }
}

#[test]
fn a_job_goes_on_among_others() {
    let rows = some_rows();
    let [first, second, third] = jobs();
    let (expected, end) = alone(&mut small(), &second, &rows, 20);
    let (before, state) = half_way(&second);
    let mut backend = small();
    let mut one = join(&mut backend, &first, &rows);
    train(&mut backend, &mut [&mut one], 3);
    let mut back = rejoin(&mut backend, &second, &rows, Some(state));
    let mut other = join(&mut backend, &third, &rows);
    train(&mut backend, &mut [&mut other, &mut one, &mut back], 10);
    let found = losses(&read(&mut backend), back.slot);
    let loss = relative_error(&found, &expected[before.len()..]);
    let adapter = adapter_error(&leave(&mut backend, back).adapter, &end.adapter);
    println!("resumed among others: losses within {loss:.1e}, adapter within {adapter:.1e}");
    assert!(loss <= 1e-6 && adapter <= 1e-4, "{loss:e}, {adapter:e}");
}

/// Also in the middle of an optimizer step, whose gradient the state leaves out.
#[test]
fn snapshots_evaluations_and_memory_leave_everything_as_it_was() {
    let rows = some_rows();
    let jobs = jobs();
    let run = |look: bool| {
        let mut backend = small();
        let mut tenants = jobs.each_ref().map(|job| join(&mut backend, job, &rows));
        for _ in 0..8 {
            advance(&mut backend, &mut tenants.each_mut());
            if look {
                for tenant in &tenants {
                    let state = backend.snapshot(tenant.slot).unwrap();
                    assert_eq!(state.step, tenant.step);
                    assert_eq!(backend.snapshot(tenant.slot).unwrap(), state);
                }
                let mut batch = Batch::default();
                for tenant in &tenants {
                    batch.push(lane(Some(tenant.slot), 3, 0.0, true), &rows.examples()[..3]);
                }
                let evaluations = backend.evaluate(&batch).unwrap();
                assert_eq!(backend.evaluate(&batch).unwrap(), evaluations);
                backend.memory();
            }
        }
        let reports = read(&mut backend);
        (reports, tenants.map(|tenant| leave(&mut backend, tenant)))
    };
    assert_eq!(run(true), run(false));
}
