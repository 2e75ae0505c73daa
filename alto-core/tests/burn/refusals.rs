//! What is refused, with which words, and that nothing has happened then.

use alto_core::backend::{Backend, BackendError, JobState, Slot};
use alto_core::batch::{Batch, Example, Lane};
use alto_core::burn::BurnBackend;
use alto_core::job::Job;
use alto_core::matrix::Matrix;

use super::setup::{ALL, AdapterBits, Tenant, adapter_bits, advance, bits, job, join, lane, leave, losses, read};
use super::setup::{rejoin, small, some_rows, train, unlike_jobs};

/// Trains three jobs, lets `interfere` try something in the middle of a step, and trains on; the bits of all that came of it.
fn run(interfere: &dyn Fn(&mut BurnBackend, &[Slot])) -> Vec<(Vec<u64>, AdapterBits)> {
    let rows = some_rows();
    let mut jobs = unlike_jobs();
    jobs[1].accumulation = 2;
    let mut backend = small();
    let mut tenants = jobs.each_ref().map(|job| join(&mut backend, job, &rows));
    let slots = tenants.each_ref().map(|tenant| tenant.slot);
    train(&mut backend, &mut tenants.each_mut(), 5);
    interfere(&mut backend, &slots);
    train(&mut backend, &mut tenants.each_mut(), 5);
    let reports = read(&mut backend);
    assert_eq!(reports.len(), 10 + 5 + 10);
    let end = |tenant: Tenant<'_>| {
        let losses = bits(&losses(&reports, tenant.slot));
        (losses, adapter_bits(&leave(&mut backend, tenant).adapter))
    };
    tenants.into_iter().map(end).collect()
}

/// Something that a backend with three jobs must refuse.
type Attempt<'a> = &'a dyn Fn(&mut BurnBackend, &[Slot]) -> Result<(), BackendError>;

/// Checks the words of every refusal, and that training goes on as without any.
fn assert_refused(attempts: &[(Attempt<'_>, &str)]) {
    let undisturbed = run(&|_, _| ());
    let disturbed = run(&|backend, slots| {
        for (attempt, expected) in attempts {
            let error = attempt(backend, slots).expect_err(expected);
            assert_eq!(error.to_string(), *expected);
        }
    });
    assert_eq!(disturbed, undisturbed);
}

fn attach(backend: &mut BurnBackend, job: &Job, state: Option<JobState>) -> Result<(), BackendError> {
    backend.attach(job, state).map(|_| ())
}

#[test]
fn jobs_that_the_model_cannot_have() {
    let unknown = job("odd", 2, &["q_proj", "w_proj"]);
    let rankless = job("none", 0, &ALL);
    let mut hopeless = job("hopeless", 1, &ALL);
    hopeless.optimizer.learning_rate = f64::NAN;
    let known = "job odd: unknown target module w_proj, this model has down_proj, gate_proj, k_proj, o_proj, q_proj, \
                 up_proj, v_proj";
    assert_refused(&[
        (&|backend, _| backend.check(&unknown), known),
        (&|backend, _| attach(backend, &unknown, None), known),
        (&|backend, _| backend.check(&rankless), "job none: rank is 0, but must be at least 1"),
        (&|backend, _| attach(backend, &rankless, None), "job none: rank is 0, but must be at least 1"),
        (
            &|backend, _| attach(backend, &hopeless, None),
            "job hopeless: learning rate is NaN, but must be a finite positive number within f32",
        ),
    ]);
}

/// The state of a job after three steps, on which `spoil` works.
fn spoilt(job: &Job, spoil: impl FnOnce(&mut JobState)) -> JobState {
    let rows = some_rows();
    let mut backend = small();
    let mut tenant = join(&mut backend, job, &rows);
    for _ in 0..3 {
        advance(&mut backend, &mut [&mut tenant]);
    }
    let mut state = leave(&mut backend, tenant);
    spoil(&mut state);
    state
}

#[test]
fn states_that_are_not_the_jobs() {
    const V: &str = "model.layers.1.self_attn.v_proj";
    const K: &str = "model.layers.1.self_attn.k_proj";
    let fits = job("fits", 2, &["q_proj", "v_proj"]);
    let state = |spoil: fn(&mut JobState)| Some(spoilt(&fits, spoil));
    let expected = |found: &str, module: &str, expected: &str| {
        format!("job fits: its state has {found} for {module}, expected {expected}")
    };
    let of_v = "factors of 2 x 64 and 32 x 2";
    let cases = [
        (
            Some(spoilt(&job("fits", 3, &["q_proj", "v_proj"]), |_| ())),
            expected("factors of 3 x 64 and 64 x 3", "model.layers.0.self_attn.q_proj", "factors of 2 x 64 and 64 x 2"),
        ),
        (
            state(|state| state.adapter.modules.get_mut(V).unwrap().b = Matrix::zeros(64, 2)),
            expected("factors of 2 x 64 and 64 x 2", V, of_v),
        ),
        (state(|state| drop(state.adapter.modules.remove(V))), expected("nothing", V, of_v)),
        (state(|state| drop(state.moments.remove(V))), expected("nothing", V, of_v)),
        (
            state(|state| state.moments.get_mut(V).unwrap().second.a = Matrix::zeros(2, 63)),
            expected("factors of 2 x 63 and 32 x 2", V, of_v),
        ),
        (
            state(|state| {
                let stray = state.adapter.modules[V].clone();
                state.adapter.modules.insert(K.into(), stray);
            }),
            expected("factors", K, "nothing, the job doesn't target it"),
        ),
        (
            state(|state| {
                let stray = state.moments[V].clone();
                state.moments.insert(K.into(), stray);
            }),
            expected("moments", K, "nothing, the job doesn't target it"),
        ),
    ];
    for (state, expected) in &cases {
        assert_refused(&[(&|backend, _| attach(backend, &fits, state.clone()), expected)]);
    }
}

/// The settings beside the factors may be those of another job: what counts is that factors and scale fit.
#[test]
fn a_state_is_judged_by_its_factors() {
    let rows = some_rows();
    let fits = job("fits", 2, &ALL);
    let continued = |state: JobState| {
        let mut backend = small();
        // Somebody whose entries a wrong layout would reach into.
        let [other, ..] = unlike_jobs();
        let mut other = join(&mut backend, &other, &rows);
        let mut tenant = rejoin(&mut backend, &fits, &rows, Some(state));
        train(&mut backend, &mut [&mut tenant, &mut other], 3);
        let reports = read(&mut backend);
        (bits(&losses(&reports, tenant.slot)), bits(&losses(&reports, other.slot)))
    };
    let sound = spoilt(&fits, |state| state.moments.clear());
    let mut odd = sound.clone();
    odd.adapter.config.rank = 7;
    odd.adapter.config.alpha = 14.0;
    assert_eq!(continued(odd), continued(sound));
}

#[test]
fn a_state_of_another_scale() {
    let fits = job("fits", 2, &ALL);
    let rescaled = spoilt(&fits, |state| state.adapter.config.alpha = 5.0);
    let expected = "job fits: its state has the scale 2.5 for the adapter, expected the scale 2";
    assert_refused(&[(&|backend, _| attach(backend, &fits, Some(rescaled.clone())), expected)]);
}

/// A sound batch of two rows of the first job.
fn two_rows(slots: &[Slot]) -> Batch {
    let rows = some_rows();
    let mut batch = Batch::default();
    batch.push(lane(Some(slots[0]), 2, 5.0, true), &rows.examples()[..2]);
    batch
}

#[test]
fn batches_that_the_model_cannot_have() {
    let tokens = two_rows(&[Slot(0)]).tokens.len();
    let change = |spoil: fn(&mut Batch)| {
        move |backend: &mut BurnBackend, slots: &[Slot]| {
            let mut batch = two_rows(slots);
            spoil(&mut batch);
            let evaluated = backend.evaluate(&batch).expect_err("a batch that can't be").to_string();
            let stepped = backend.step(&batch);
            assert_eq!(stepped.as_ref().expect_err("a batch that can't be").to_string(), evaluated);
            stepped
        }
    };
    assert_refused(&[
        (&change(|batch| batch.tokens[1] = 256), "token id 256 at position 1 is out of range, the vocabulary has 256"),
        (
            &change(|batch| *batch.targets.last_mut().unwrap() = Some(u32::MAX)),
            &format!("token id 4294967295 at position {} is out of range, the vocabulary has 256", tokens - 1),
        ),
        (
            &change(|batch| {
                batch.push(lane(None, 1, 1.0, true), [&Example { tokens: vec![3; 257], targets: vec![Some(3); 257] }]);
            }),
            "row 2 has 257 tokens, the model's context is 256",
        ),
        (
            &change(|batch| {
                let again = batch.lanes[0].clone();
                batch.lanes[0].rows = 1;
                batch.lanes.push(Lane { rows: 1, ..again });
            }),
            "the batch contradicts itself: the number of lanes of one slot is 2, expected 1",
        ),
        (
            &change(|batch| batch.targets.truncate(batch.tokens.len() - 1)),
            &format!("the batch contradicts itself: the number of targets is {}, expected {}", tokens - 1, tokens),
        ),
        (
            &change(|batch| batch.row_lengths[1] -= 1),
            &format!("the batch contradicts itself: the sum of the row lengths is {}, expected {}", tokens - 1, tokens),
        ),
        (
            &change(|batch| batch.lanes[0].rows = 3),
            "the batch contradicts itself: the lanes' number of rows is 3, expected 2",
        ),
        (&change(|batch| batch.lanes[0].slot = Some(Slot(77))), "slot 77 is not attached"),
    ]);
}

#[test]
fn divisors_that_are_not_positive_numbers() {
    for divisor in [0.0, -3.0, f64::INFINITY, f64::NAN] {
        let step = move |backend: &mut BurnBackend, slots: &[Slot]| {
            let mut batch = two_rows(slots);
            batch.push(lane(Some(slots[2]), 1, divisor, true), &some_rows().examples()[..1]);
            // Evaluating doesn't divide.
            backend.evaluate(&batch).unwrap();
            backend.step(&batch)
        };
        let expected = format!("lane 1 has the loss divisor {divisor}, expected a finite positive number");
        assert_refused(&[(&step, &expected)]);
    }
}

/// The slot of a job that has left.
fn gone(backend: &mut BurnBackend) -> Slot {
    let slot = backend.attach(&job("gone", 3, &ALL), None).unwrap();
    backend.detach(slot).unwrap();
    slot
}

#[test]
fn slots_that_nobody_has() {
    let snapshot = |backend: &mut BurnBackend, _: &[Slot]| {
        let slot = gone(backend);
        backend.snapshot(slot).map(drop)
    };
    let detach = |backend: &mut BurnBackend, _: &[Slot]| {
        let slot = gone(backend);
        backend.detach(slot).map(drop)
    };
    let step = |backend: &mut BurnBackend, slots: &[Slot]| {
        let mut batch = two_rows(slots);
        batch.lanes.push(lane(Some(gone(backend)), 0, 1.0, true));
        backend.step(&batch)
    };
    let evaluate = |backend: &mut BurnBackend, slots: &[Slot]| {
        let mut batch = two_rows(slots);
        batch.lanes.push(lane(Some(gone(backend)), 0, 1.0, true));
        backend.evaluate(&batch).map(drop)
    };
    // Slots are never handed out twice, so these are the fourth to the seventh.
    assert_refused(&[
        (&snapshot, "slot 3 is not attached"),
        (&detach, "slot 4 is not attached"),
        (&step, "slot 5 is not attached"),
        (&evaluate, "slot 6 is not attached"),
        (&|backend, _| backend.detach(Slot(1000)).map(drop), "slot 1000 is not attached"),
    ]);
}

#[test]
fn a_rank_over_the_limit_is_refused_and_bytes_grow_with_the_rank() {
    let mut huge = job("huge", 1, &ALL);
    huge.adapter.rank = alto_core::job::RANK_LIMIT;
    let per_rank = small().adapter_bytes(&job("one", 1, &ALL));
    assert_eq!(small().adapter_bytes(&huge), per_rank * alto_core::job::RANK_LIMIT as u64);
    huge.adapter.rank += 1;
    let error = small().check(&huge).expect_err("over the limit").to_string();
    assert_eq!(error, "job huge: rank is 65537, but must be at most 65536");
}
