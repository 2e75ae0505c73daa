//! A job whose numbers aren't finite is skipped, named, and touches no other.

use alto_core::adapter::Adapter;
use alto_core::backend::{Backend, JobState, StepReport};
use alto_core::batch::Batch;
use alto_core::data::Dataset;
use alto_core::job::Job;

use super::setup::{ALL, AdapterBits, adapter_bits, bits, job, join, lane, leave, losses, read, rejoin};
use super::setup::{relative_error, small, some_rows, train, unlike_jobs};

/// The state that the job starts from.
fn start(job: &Job) -> JobState {
    let mut backend = small();
    let slot = backend.attach(job, None).unwrap();
    backend.detach(slot).unwrap()
}

/// Trains the others with the job between them; bits of the others' losses and adapters, and what became of the job.
struct Run {
    others: Vec<f64>,
    adapters: Vec<AdapterBits>,
    reports: Vec<StepReport>,
    state: Option<JobState>,
}

fn run(guest: Option<(&Job, JobState)>, rows: &Dataset) -> Run {
    let [left, right, _] = unlike_jobs();
    let mut backend = small();
    let mut left = join(&mut backend, &left, rows);
    let mut guest = guest.map(|(job, state)| rejoin(&mut backend, job, rows, Some(state)));
    let mut right = join(&mut backend, &right, rows);
    for _ in 0..10 {
        let mut tenants: Vec<_> = [Some(&mut left), guest.as_mut(), Some(&mut right)].into_iter().flatten().collect();
        train(&mut backend, &mut tenants, 1);
    }
    let reports = read(&mut backend);
    let others = [losses(&reports, left.slot), losses(&reports, right.slot)].concat();
    let slot = guest.as_ref().map(|guest| guest.slot);
    let state = guest.map(|guest| leave(&mut backend, guest));
    let adapters = [left, right].map(|tenant| adapter_bits(&leave(&mut backend, tenant).adapter)).into();
    let reports = reports.into_iter().filter(|report| Some(report.slot) == slot).collect();
    Run { others, adapters, reports, state }
}

/// Bit for bit beside a healthy job of the same shape, within float reordering beside none.
fn assert_others_unmoved(beside: &Run, healthy: &Run, nobody: &Run) {
    assert_eq!(bits(&beside.others), bits(&healthy.others));
    assert_eq!(beside.adapters, healthy.adapters);
    let error = relative_error(&beside.others, &nobody.others);
    println!("others with it and without: within {error:.1e}");
    assert!(error <= 1e-5, "{error:e}");
}

#[test]
fn one_bad_entry_stops_its_job_alone() {
    let rows = some_rows();
    let mut sick = job("sick", 5, &ALL);
    sick.accumulation = 2;
    let (healthy, nobody) = (run(Some((&sick, start(&sick))), &rows), run(None, &rows));
    assert!(healthy.reports.iter().all(|report| report.not_finite.is_none()));
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for (module, in_a) in [
            ("model.layers.0.self_attn.q_proj", true),
            ("model.layers.0.self_attn.v_proj", false),
            ("model.layers.1.mlp.down_proj", true),
            ("model.layers.1.mlp.down_proj", false),
        ] {
            let mut state = start(&sick);
            let pair = state.adapter.modules.get_mut(module).unwrap();
            let factor = if in_a { &mut pair.a } else { &mut pair.b };
            factor.data_mut()[7] = value;
            let before = adapter_bits(&state.adapter);
            let beside = run(Some((&sick, state)), &rows);
            assert_others_unmoved(&beside, &healthy, &nobody);
            assert_eq!(beside.reports.len(), 5);
            for report in &beside.reports {
                assert_eq!(report.not_finite.as_deref(), Some("loss"), "{value} in {module}");
                assert!(!report.loss.is_finite());
            }
            let after = beside.state.unwrap();
            assert_eq!(adapter_bits(&after.adapter), before, "{value} in {module}");
            assert_eq!(after.step, 5, "skipped steps count in the schedule");
            let moments = after.moments.values().flat_map(|m| [&m.first.a, &m.first.b, &m.second.a, &m.second.b]);
            assert!(moments.into_iter().all(|moment| moment.data().iter().all(|&x| x == 0.0)));
        }
    }
}

#[test]
fn a_job_that_explodes_does_so_alone() {
    let rows = some_rows();
    let mut wild = job("wild", 5, &ALL);
    wild.optimizer.learning_rate = 1e30;
    let mut tame = wild.clone();
    tame.optimizer.learning_rate = 1e-3;
    let (healthy, nobody) = (run(Some((&tame, start(&tame))), &rows), run(None, &rows));
    let beside = run(Some((&wild, start(&wild))), &rows);
    assert_others_unmoved(&beside, &healthy, &nobody);
    assert_eq!(beside.reports[0].not_finite, None, "its first step is at its start, which is sound");
    for report in &beside.reports[1..] {
        let named = report.not_finite.as_deref().expect("a step at 1e30");
        assert!(named == "loss" || named.ends_with(".lora_A") || named.ends_with(".lora_B"), "{named}");
    }
    // The one step that was taken is the last.
    let once = {
        let mut backend = small();
        let mut tenant = join(&mut backend, &wild, &rows);
        train(&mut backend, &mut [&mut tenant], 1);
        leave(&mut backend, tenant)
    };
    assert_eq!(adapter_bits(&beside.state.unwrap().adapter), adapter_bits(&once.adapter));
}

/// A divisor so small that gradients overflow while the loss, which is added up in f64, doesn't.
#[test]
fn the_first_gradient_that_overflows_is_named() {
    for (targets, first) in [
        (&ALL[..], "model.layers.0.self_attn.q_proj.lora_A"),
        (&["v_proj", "down_proj"], "model.layers.0.self_attn.v_proj.lora_A"),
        (&["up_proj"], "model.layers.0.mlp.up_proj.lora_A"),
    ] {
        let overflowing = overflow_in_the_first_step(targets, 1e-42);
        assert_eq!(overflowing.reports[0].not_finite.as_deref(), Some(first));
        assert!(overflowing.reports[0].loss.is_finite());
        assert_eq!(overflowing.after_first, overflowing.start, "the step was skipped");
        for report in &overflowing.reports[1..] {
            assert_eq!(report.not_finite, None, "nothing of it is left in the next step");
        }
        let sound = overflow_in_the_first_step(targets, 9.0);
        assert_eq!(sound.reports[0].not_finite, None);
        assert_ne!(sound.after_first, sound.start);
        assert_eq!(overflowing.beside, sound.beside);
    }
}

/// What became of a job whose first step has this divisor.
struct Overflow {
    reports: Vec<StepReport>,
    start: Adapter,
    after_first: Adapter,
    /// Losses of the job beside it, which is in the middle of a step when the first one overflows.
    beside: Vec<u64>,
}

fn overflow_in_the_first_step(targets: &[&str], divisor: f64) -> Overflow {
    let rows = some_rows();
    let row = &rows.examples()[0];
    let (sick, sound) = (job("sick", 3, targets), job("sound", 3, &ALL));
    let mut backend = small();
    let [slot, beside] = [&sick, &sound].map(|job| backend.attach(job, None).unwrap());
    let start = backend.snapshot(slot).unwrap().adapter;
    let mut after_first = None;
    for step in 0..4 {
        let mut batch = Batch::default();
        batch.push(lane(Some(slot), 1, if step == 0 { divisor } else { 9.0 }, true), [row]);
        batch.push(lane(Some(beside), 1, 18.0, step % 2 == 1), [row]);
        backend.step(&batch).unwrap();
        let adapter = backend.snapshot(slot).unwrap().adapter;
        after_first.get_or_insert(adapter);
    }
    let reports = read(&mut backend);
    let beside = bits(&losses(&reports, beside));
    let reports = reports.into_iter().filter(|report| report.slot == slot).collect();
    Overflow { reports, start, after_first: after_first.unwrap(), beside }
}
