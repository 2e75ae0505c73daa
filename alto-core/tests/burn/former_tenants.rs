//! A place that was used is as good as a new one.

use alto_core::backend::{Backend, JobState};
use alto_core::burn::BurnBackend;
use alto_core::data::Dataset;
use alto_core::job::Job;

use super::setup::{ALL, adapter_bits, advance, alone, bits, job, join, leave, losses, read, rejoin, small, some_rows};
use super::setup::{train, unlike_jobs};

/// What a former tenant did before it left.
type Former = fn(&mut BurnBackend, &Dataset);

fn trained(backend: &mut BurnBackend, rows: &Dataset) {
    let former = job("former", 8, &ALL);
    alone(backend, &former, rows, 5);
}

fn left_in_the_middle_of_a_step(backend: &mut BurnBackend, rows: &Dataset) {
    let mut former = job("former", 8, &ALL);
    former.accumulation = 4;
    let mut tenant = join(backend, &former, rows);
    train(backend, &mut [&mut tenant], 6);
    leave(backend, tenant);
}

fn had_nan_weights_and_an_unfinished_step(backend: &mut BurnBackend, rows: &Dataset) {
    let mut former = job("former", 8, &ALL);
    former.accumulation = 2;
    let slot = backend.attach(&former, None).unwrap();
    let mut state = backend.detach(slot).unwrap();
    for pair in state.adapter.modules.values_mut() {
        pair.a.data_mut().fill(f32::NAN);
        pair.b.data_mut().fill(f32::INFINITY);
    }
    let mut tenant = rejoin(backend, &former, rows, Some(state));
    train(backend, &mut [&mut tenant], 5);
    leave(backend, tenant);
}

fn diverged_to_infinity(backend: &mut BurnBackend, rows: &Dataset) {
    let mut former = job("former", 8, &ALL);
    former.optimizer.learning_rate = 1e38;
    former.optimizer.weight_decay = 10.0;
    let mut tenant = join(backend, &former, rows);
    train(backend, &mut [&mut tenant], 6);
    let state = leave(backend, tenant);
    let infinite =
        |state: &JobState| state.adapter.modules.values().any(|pair| pair.b.data().iter().any(|x| !x.is_finite()));
    assert!(infinite(&state), "it did diverge");
}

const FORMER: [(&str, Former); 4] = [
    ("trained", trained),
    ("left in the middle of a step", left_in_the_middle_of_a_step),
    ("had NaN weights", had_nan_weights_and_an_unfinished_step),
    ("diverged to infinity", diverged_to_infinity),
];

fn heirs() -> Vec<Job> {
    let mut jobs = unlike_jobs().to_vec();
    // The same layout as the former's, so that every entry comes to lie where one of the former's was.
    jobs.push(job("alike", 8, &ALL));
    jobs[1].accumulation = 2;
    jobs
}

#[test]
fn the_next_job_is_bit_for_bit_as_on_a_fresh_backend() {
    let rows = some_rows();
    for heir in heirs() {
        let (expected, end) = alone(&mut small(), &heir, &rows, 12);
        for (what, former) in FORMER {
            let mut backend = small();
            former(&mut backend, &rows);
            read(&mut backend);
            let (found, state) = alone(&mut backend, &heir, &rows, 12);
            assert_eq!(bits(&found), bits(&expected), "{} after one that {what}", heir.name);
            assert_eq!(state, end, "{} after one that {what}", heir.name);
        }
    }
}

/// Also where the place lies between those of others, who notice nothing either.
#[test]
fn the_next_job_between_two_others_is_bit_for_bit_as_if_there_had_been_no_other_before() {
    let rows = some_rows();
    let [left, right, heir] = unlike_jobs();
    let run = |former: Option<Former>| {
        let mut backend = small();
        let mut first = join(&mut backend, &left, &rows);
        if let Some(former) = former {
            former(&mut backend, &rows);
            read(&mut backend);
        }
        let mut second = join(&mut backend, &right, &rows);
        let mut third = join(&mut backend, &heir, &rows);
        train(&mut backend, &mut [&mut first, &mut second, &mut third], 8);
        advance(&mut backend, &mut [&mut third]);
        let reports = read(&mut backend);
        let losses = [first.slot, second.slot, third.slot].map(|slot| bits(&losses(&reports, slot)));
        let states = [first, second, third].map(|tenant| adapter_bits(&leave(&mut backend, tenant).adapter));
        (losses, states)
    };
    let expected = run(None);
    for (what, former) in FORMER {
        assert_eq!(run(Some(former)), expected, "after one that {what}");
    }
}
