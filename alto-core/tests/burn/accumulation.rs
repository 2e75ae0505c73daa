//! Jobs whose optimizer steps end at different micro-batches.

use alto_core::backend::Backend;
use alto_core::job::{AccumulationMode, Job};

use super::setup::{ALL, adapter_bits, adapter_error, advance, alone, bits, job, join, leave, losses, read};
use super::setup::{relative_error, small, some_rows, train};

/// Accumulation 1, 2 and 3, and once more 2 with the other weighting.
fn jobs() -> [Job; 4] {
    let accumulating = |name: &str, rank, accumulation| Job { accumulation, ..job(name, rank, &ALL) };
    let mut means = accumulating("means", 4, 2);
    means.accumulation_mode = AccumulationMode::MeanOfMeans;
    means.batch = 2;
    [accumulating("one", 2, 1), accumulating("two", 3, 2), accumulating("three", 8, 3), means]
}

#[test]
fn in_lockstep_each_is_as_if_alone() {
    let (rows, jobs, micro_batches) = (some_rows(), jobs(), 36);
    let mut backend = small();
    let mut tenants = jobs.each_ref().map(|job| join(&mut backend, job, &rows));
    train(&mut backend, &mut tenants.each_mut(), micro_batches);
    let reports = read(&mut backend);
    for tenant in tenants {
        let (expected, end) = alone(&mut small(), tenant.job, &rows, micro_batches);
        let (name, found) = (&tenant.job.name, losses(&reports, tenant.slot));
        assert_eq!(found.len(), micro_batches / tenant.job.accumulation, "{name}");
        let loss = relative_error(&found, &expected);
        let adapter = adapter_error(&leave(&mut backend, tenant).adapter, &end.adapter);
        println!("{name}: losses within {loss:.1e}, adapter within {adapter:.1e}");
        assert!(loss <= 1e-5 && adapter <= 1e-4, "{name}: {loss:e}, {adapter:e}");
    }
}

/// The gradient of a step in several micro-batches is that of the same rows in one.
#[test]
fn micro_batches_add_up_to_the_whole_batch() {
    let rows = some_rows();
    let mut whole = job("whole", 8, &ALL);
    whole.batch = 6;
    let parts = Job { batch: 2, accumulation: 3, ..whole.clone() };
    let (expected, whole) = alone(&mut small(), &whole, &rows, 10);
    let (found, parts) = alone(&mut small(), &parts, &rows, 30);
    assert!(relative_error(&found, &expected) <= 1e-5);
    assert!(adapter_error(&parts.adapter, &whole.adapter) <= 1e-4);
}

/// Who comes, goes or just looks on in the middle of a job's step doesn't enter into it.
#[test]
fn coming_and_going_in_the_middle_of_a_step_disturbs_nobody() {
    let rows = some_rows();
    let [one, two, three, means] = jobs();
    let mut backend = small();
    let mut first = join(&mut backend, &one, &rows);
    let mut third = join(&mut backend, &three, &rows);
    let mut second = join(&mut backend, &two, &rows);
    // The third is now in the middle of its step, the second too.
    train(&mut backend, &mut [&mut first, &mut second, &mut third], 1);
    leave(&mut backend, first);
    train(&mut backend, &mut [&mut third], 1);
    let mut last = join(&mut backend, &means, &rows);
    // Now the last and the second are.
    train(&mut backend, &mut [&mut third, &mut last], 1);
    let abandoned = second.slot;
    leave(&mut backend, second);
    train(&mut backend, &mut [&mut last, &mut third], 9);
    let mut again = join(&mut backend, &two, &rows);
    train(&mut backend, &mut [&mut again, &mut third], 6);
    let reports = read(&mut backend);
    assert!(losses(&reports, abandoned).is_empty(), "its only step was never finished");
    for (tenant, micro_batches) in [(third, 18), (last, 10), (again, 6)] {
        let (expected, end) = alone(&mut small(), tenant.job, &rows, micro_batches);
        let (name, found) = (&tenant.job.name, losses(&reports, tenant.slot));
        let loss = relative_error(&found, &expected);
        let adapter = adapter_error(&leave(&mut backend, tenant).adapter, &end.adapter);
        assert!(loss <= 1e-5 && adapter <= 1e-4, "{name}: {loss:e}, {adapter:e}");
    }
}

/// A job that sits out micro-batches of the others, in the middle of its own step, goes on as if nothing had been.
#[test]
fn a_pause_in_the_middle_of_a_step_changes_nothing() {
    let rows = some_rows();
    let [one, _, three, _] = jobs();
    let (expected, end) = alone(&mut small(), &three, &rows, 9);
    let mut backend = small();
    let mut pauses = join(&mut backend, &three, &rows);
    let mut goes_on = join(&mut backend, &one, &rows);
    for _ in 0..9 {
        advance(&mut backend, &mut [&mut pauses]);
        train(&mut backend, &mut [&mut goes_on], 2);
    }
    let reports = read(&mut backend);
    assert_eq!(bits(&losses(&reports, pauses.slot)), bits(&expected));
    assert_eq!(adapter_bits(&backend.snapshot(pauses.slot).unwrap().adapter), adapter_bits(&end.adapter));
}
