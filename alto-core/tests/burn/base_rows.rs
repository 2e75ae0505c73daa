//! Rows through the base model alone, and rows and lanes of awkward sizes.

use std::fs;

use alto_core::backend::{Backend, Slot};
use alto_core::batch::{Batch, Example};
use alto_core::burn::BurnBackend;
use alto_core::data::{Dataset, Tokenizer};
use alto_core::testing::parity::Inspect;
use serde_json::Value;

use super::setup::{ALL, Tenant, bits, job, join, lane, losses, push_next, read, relative_error, rows, small};
use super::setup::{read_model, some_rows, testdata, train, unlike_jobs};

/// Minus the log-probability of the labelled tokens, from the scores of the whole vocabulary.
fn loss_from_logits(backend: &mut BurnBackend, slot: Option<Slot>, rows: &[Example]) -> f64 {
    let mut loss = 0.0;
    for Example { tokens, targets } in rows {
        let logits = backend.logits(tokens, slot).unwrap();
        for (scores, target) in logits.data().chunks_exact(logits.columns()).zip(targets) {
            let Some(target) = target else { continue };
            let scores = scores.iter().map(|&x| f64::from(x));
            let sum: f64 = scores.clone().map(f64::exp).sum();
            loss += sum.ln() - scores.clone().nth(*target as usize).unwrap();
        }
    }
    loss
}

/// The summed loss and count of every lane.
fn evaluate(backend: &mut BurnBackend, batch: &Batch) -> Vec<(f64, u64)> {
    let evaluations = backend.evaluate(batch).unwrap();
    assert_eq!(evaluations.iter().map(|e| e.lane).collect::<Vec<_>>(), (0..batch.lanes.len()).collect::<Vec<_>>());
    evaluations.into_iter().map(|e| (e.sum, e.count)).collect()
}

fn labelled(rows: &[Example]) -> u64 {
    rows.iter().map(|row| row.labelled() as u64).sum()
}

#[test]
fn lanes_without_a_slot_go_through_the_base_model() {
    let data = some_rows();
    let rows = data.examples();
    let mut backend = small();
    let base = loss_from_logits(&mut backend, None, rows);
    let [first, second, _] = unlike_jobs();
    let mut tenants = [&first, &second].map(|job| join(&mut backend, job, &data));
    train(&mut backend, &mut tenants.each_mut(), 12);
    let fresh = join(&mut backend, &job("fresh", 4, &ALL), &data).slot;
    let slots = [None, Some(tenants[0].slot), None, Some(tenants[1].slot), Some(fresh)];
    let mut batch = Batch::default();
    for slot in slots {
        batch.push(lane(slot, rows.len(), 1.0, false), rows);
    }
    let found = evaluate(&mut backend, &batch);
    for (&slot, &(sum, count)) in slots.iter().zip(&found) {
        let expected = loss_from_logits(&mut backend, slot, rows);
        assert!((sum / expected - 1.0).abs() < 1e-6, "{slot:?}: {sum}, {expected} from the logits");
        assert_eq!(count, labelled(rows));
    }
    assert!((found[0].0 / base - 1.0).abs() < 1e-6, "adapters beside it leave the base model as it is");
    assert_eq!(found[2], found[0]);
    assert!((found[4].0 / base - 1.0).abs() < 1e-6, "an adapter that has learnt nothing is the base model");
    assert!(found[3].0 < 0.9 * base, "a trained adapter isn't: {} of {base}", found[3].0);
}

/// The recorded loss on 64 rows of up to 320 tokens, from text and bf16 weights on.
#[test]
fn the_pretrained_model_has_the_loss_that_transformers_measured() {
    let dir = testdata("quickstart/gsm-nano");
    let tokenizer = Tokenizer::read(&dir).unwrap();
    let data = Dataset::read(&testdata("quickstart/data/val.jsonl"), &tokenizer, 512).unwrap();
    let rows = &data.examples()[..64];
    let mut batch = Batch::default();
    batch.push(lane(None, 64, 1.0, false), rows);
    let (sum, count) = evaluate(&mut read_model(&dir), &batch)[0];
    let recorded: Value = serde_json::from_slice(&fs::read(testdata("quickstart/lora_check.json")).unwrap()).unwrap();
    let expected = recorded["runs"][0]["val"][0][1].as_f64().unwrap();
    let (found, longest) = (sum / count as f64, rows.iter().map(|row| row.tokens.len()).max());
    println!("{found} on rows of up to {longest:?} tokens, {expected} recorded");
    assert!(longest > Some(250) && (found / expected - 1.0).abs() < 1e-5, "{found}, {expected} recorded");
}

/// Base rows may stand in a batch that trains; they report nothing and move nobody.
#[test]
fn base_rows_beside_a_job_leave_its_training_alone() {
    let data = some_rows();
    let [_, job, _] = unlike_jobs();
    let run = |beside: &[Example]| {
        let mut backend = small();
        let mut tenant = join(&mut backend, &job, &data);
        for _ in 0..8 {
            let mut batch = Batch::default();
            batch.push(lane(None, beside.len(), f64::NAN, true), beside);
            push_next(&mut batch, &mut tenant);
            batch.push(lane(None, beside.len(), 0.0, false), beside);
            backend.step(&batch).unwrap();
        }
        let reports = read(&mut backend);
        assert_eq!(reports.len(), 8, "one for each step of the job, none for the base rows");
        losses(&reports, tenant.slot)
    };
    let (without, with) = (run(&[]), run(&data.examples()[..4]));
    let error = relative_error(&with, &without);
    println!("beside base rows: within {error:.1e}");
    assert!(error <= 1e-5, "{error:e}");
}

#[test]
fn a_backend_without_jobs_steps_and_evaluates() {
    let data = some_rows();
    let mut backend = small();
    let mut batch = Batch::default();
    backend.step(&batch).unwrap();
    assert!(backend.evaluate(&batch).unwrap().is_empty());
    batch.push(lane(None, 2, 1.0, true), &data.examples()[..2]);
    backend.step(&batch).unwrap();
    assert!(read(&mut backend).is_empty());
    let expected = loss_from_logits(&mut backend, None, &data.examples()[..2]);
    assert!((evaluate(&mut backend, &batch)[0].0 / expected - 1.0).abs() < 1e-6);
}

#[test]
fn empty_rows_and_empty_lanes_count_for_nothing() {
    let data = some_rows();
    let rows = data.examples();
    let empty = Example::default();
    let jobs = unlike_jobs();
    let mut backend = small();
    let mut tenants = jobs.each_ref().map(|job| join(&mut backend, job, &data));
    train(&mut backend, &mut tenants.each_mut(), 3);
    let slots = tenants.each_ref().map(|tenant| Some(tenant.slot));
    let mut plain = Batch::default();
    plain.push(lane(slots[0], 2, 1.0, false), &rows[..2]);
    plain.push(lane(slots[1], 1, 1.0, false), &rows[2..3]);
    let mut gappy = Batch::default();
    gappy.push(lane(None, 0, 1.0, false), []);
    gappy.push(lane(slots[0], 5, 1.0, false), [&empty, &rows[0], &empty, &rows[1], &empty]);
    gappy.push(lane(slots[2], 0, 1.0, false), []);
    gappy.push(lane(None, 2, 1.0, false), [&empty, &empty]);
    gappy.push(lane(slots[1], 2, 1.0, false), [&rows[2], &empty]);
    let (plain, gappy) = (evaluate(&mut backend, &plain), evaluate(&mut backend, &gappy));
    assert_eq!(vec![gappy[1], gappy[4]], plain);
    assert_eq!(vec![gappy[0], gappy[2], gappy[3]], vec![(0.0, 0); 3]);
}

/// Steps that end without a row of their own, whatever the divisor of no rows may be.
#[test]
fn an_empty_lane_ends_its_step_with_what_came_before() {
    let data = some_rows();
    let job = job("job", 4, &ALL);
    let row = &data.examples()[0];
    let run = |ending: &[f64]| {
        let mut backend = small();
        let tenant: Tenant<'_> = join(&mut backend, &job, &data);
        for _ in 0..4 {
            let mut batch = Batch::default();
            batch.push(lane(Some(tenant.slot), 1, row.labelled() as f64, ending.is_empty()), [row]);
            backend.step(&batch).unwrap();
            for &divisor in ending {
                let mut batch = Batch::default();
                batch.push(lane(Some(tenant.slot), 0, divisor, true), []);
                backend.step(&batch).unwrap();
            }
        }
        let reports = read(&mut backend);
        assert!(reports.iter().all(|report| report.not_finite.is_none()), "{reports:?}");
        losses(&reports, tenant.slot)
    };
    let whole = run(&[]);
    assert_eq!(whole.len(), 4);
    for divisor in [1.0, 0.0, f64::NAN] {
        assert_eq!(bits(&run(&[divisor])), bits(&whole), "no rows, divided by {divisor}");
    }
}

#[test]
fn rows_of_one_token_and_of_the_whole_context_train() {
    for (lengths, beside) in [(1..=1, 1..=1), (256..=256, 1..=1), (1..=1, 256..=256)] {
        let (data, others) = (rows(5, 3, lengths), rows(6, 2, beside));
        let job = job("job", 4, &ALL);
        let mut backend = small();
        let (mut tenant, mut other) = (join(&mut backend, &job, &data), join(&mut backend, &job, &others));
        for _ in 0..3 {
            let row = &[data.micro_batch(&job, tenant.step, 0)[0].clone()];
            let expected = loss_from_logits(&mut backend, Some(tenant.slot), row) / labelled(row) as f64;
            train(&mut backend, &mut [&mut tenant, &mut other], 1);
            let found = losses(&read(&mut backend), tenant.slot)[0];
            assert!((found / expected - 1.0).abs() < 1e-6, "{found}, {expected} from the logits");
        }
        let state = backend.snapshot(tenant.slot).unwrap();
        assert!(!state.adapter.is_identity());
    }
}

/// One key has all the weight whatever its score, so rounding must not become a slope that the optimizer normalizes.
#[test]
fn a_lone_token_teaches_queries_and_keys_nothing() {
    let (data, job) = (rows(5, 4, 1..=1), job("job", 4, &ALL));
    let mut backend = small();
    let mut tenant = join(&mut backend, &job, &data);
    train(&mut backend, &mut [&mut tenant], 4);
    for (path, pair) in backend.snapshot(tenant.slot).unwrap().adapter.modules {
        let learnt = pair.b.data().iter().any(|&x| x != 0.0);
        let scores = path.ends_with("q_proj") || path.ends_with("k_proj");
        assert_eq!(learnt, !scores, "{path}");
    }
}

/// A row may be unlabelled, and so may a whole lane; its step then only decays the moments.
#[test]
fn a_lane_without_labels_has_no_loss() {
    let data = some_rows();
    let job = job("job", 4, &ALL);
    let unlabelled = Example { targets: vec![None; 7], tokens: vec![9; 7] };
    let mut backend = small();
    let tenant = join(&mut backend, &job, &data);
    let start = backend.snapshot(tenant.slot).unwrap().adapter;
    let mut batch = Batch::default();
    batch.push(lane(Some(tenant.slot), 2, 1.0, true), [&unlabelled, &unlabelled]);
    backend.step(&batch).unwrap();
    let report = &read(&mut backend)[0];
    assert_eq!((report.loss, report.grad_norm, &report.not_finite), (0.0, 0.0, &None));
    assert_eq!(backend.snapshot(tenant.slot).unwrap().adapter, start);
    assert_eq!(evaluate(&mut backend, &batch), [(0.0, 0)]);
}
