//! How often something is read from the device, which is when the host waits for it.

use alto_core::backend::Backend;
use alto_core::batch::Batch;
use alto_core::burn::BurnBackend;
use alto_core::data::Dataset;

use super::setup::{ALL, alone, bits, job, join, lane, leave, losses, read, small, some_rows, train, unlike_jobs};

/// How many reads the act makes.
fn reads<T>(backend: &mut BurnBackend, act: impl FnOnce(&mut BurnBackend) -> T) -> u64 {
    let before = backend.device_reads();
    act(backend);
    backend.device_reads() - before
}

#[test]
fn steps_read_nothing_and_everything_else_reads_once() {
    let (rows, jobs) = (some_rows(), unlike_jobs());
    let mut backend = small();
    let mut tenants = jobs.each_ref().map(|job| join(&mut backend, job, &rows));
    assert_eq!(backend.device_reads(), 0, "attaching reads nothing");
    for steps in [1, 7] {
        assert_eq!(reads(&mut backend, |backend| train(backend, &mut tenants.each_mut(), steps)), 0);
        assert_eq!(reads(&mut backend, |backend| assert_eq!(read(backend).len(), steps * jobs.len())), 1);
    }
    assert_eq!(reads(&mut backend, |backend| assert_eq!(read(backend), [])), 0, "there is nothing left to read");
    let mut batch = Batch::default();
    for slot in [None, Some(tenants[0].slot), Some(tenants[2].slot)] {
        batch.push(lane(slot, 5, 1.0, false), &rows.examples()[..5]);
    }
    assert_eq!(reads(&mut backend, |backend| backend.evaluate(&batch).unwrap()), 1);
    for tenant in tenants {
        assert_eq!(reads(&mut backend, |backend| backend.snapshot(tenant.slot).unwrap()), 1);
        assert_eq!(reads(&mut backend, |backend| leave(backend, tenant)), 1);
    }
}

/// Of a step that isn't finished, what was read is kept, and what comes later is added.
#[test]
fn a_read_in_the_middle_of_a_step_changes_no_loss() {
    let rows: Dataset = some_rows();
    let mut accumulating = job("accumulating", 4, &ALL);
    accumulating.accumulation = 3;
    let (expected, _) = alone(&mut small(), &accumulating, &rows, 12);
    for every in [1, 2, 5] {
        let mut backend = small();
        let mut tenant = join(&mut backend, &accumulating, &rows);
        let mut reports = Vec::new();
        for micro_batch in 0..12 {
            train(&mut backend, &mut [&mut tenant], 1);
            if micro_batch % every == 0 {
                reports.extend(read(&mut backend));
            }
        }
        reports.extend(read(&mut backend));
        assert_eq!(bits(&losses(&reports, tenant.slot)), bits(&expected), "read every {every} micro-batches");
    }
}
