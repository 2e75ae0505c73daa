//! The same run, again.

use alto_core::backend::Backend;
use alto_core::batch::Batch;

use super::setup::{join, lane, leave, read, small, some_rows, train, unlike_jobs};

#[test]
fn the_same_run_gives_the_same_bits() {
    let rows = some_rows();
    let mut jobs = unlike_jobs();
    jobs[2].accumulation = 2;
    let run = || {
        let mut backend = small();
        let mut tenants = jobs.each_ref().map(|job| join(&mut backend, job, &rows));
        train(&mut backend, &mut tenants.each_mut(), 12);
        let mut batch = Batch::default();
        for tenant in &tenants {
            batch.push(lane(Some(tenant.slot), 12, 1.0, false), rows.examples());
        }
        let evaluations = backend.evaluate(&batch).unwrap();
        (read(&mut backend), evaluations, tenants.map(|tenant| leave(&mut backend, tenant)))
    };
    let expected = run();
    assert_eq!(expected.0.len(), 12 + 12 + 6);
    for _ in 0..3 {
        assert_eq!(run(), expected);
    }
}

#[test]
fn a_start_follows_from_the_seed() {
    let [_, job, _] = unlike_jobs();
    let start = |job| {
        let mut backend = small();
        let slot = backend.attach(job, None).unwrap();
        backend.detach(slot).unwrap()
    };
    let mut other = job.clone();
    other.seed += 1;
    let (first, other) = (start(&job), start(&other));
    assert_eq!(start(&job), first);
    assert_ne!(other, first);
    assert!(first.adapter.is_identity() && first.step == 0 && first.moments.is_empty());
    for (path, pair) in &first.adapter.modules {
        let bound = 1.0 / (pair.a.columns() as f32).sqrt();
        let largest = pair.a.data().iter().fold(0.0f32, |most, x| most.max(x.abs()));
        assert!(largest <= bound && largest > 0.9 * bound, "{path}: {largest} of {bound}");
        assert_ne!(pair.a, other.adapter.modules[path].a);
    }
}
