//! Models, jobs and rows that the tests are made of, and a bare trainer.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use alto_core::adapter::{Adapter, LoraPair};
use alto_core::backend::{Backend, JobState, Slot, StepReport};
use alto_core::batch::{Batch, Example, Lane, Objective};
use alto_core::burn::BurnBackend;
use alto_core::data::Dataset;
use alto_core::job::{AccumulationMode, AdamW, AdapterConfig, Decay, Job, Schedule};
use alto_core::matrix::Matrix;
use alto_core::model::{ModelConfig, ModelWeights};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::device::device;

/// All linear layers of a block.
pub(crate) const ALL: [&str; 7] = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

/// Size of the vocabulary of the recorded models.
pub(crate) const VOCABULARY: u32 = 256;

/// A path under the repository's `testdata`.
pub(crate) fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata").join(path)
}

/// A backend with this recorded model: width 64, keys 32 wide, feed-forward 160 wide, 2 blocks, context 256.
pub(crate) fn recorded(model: &str) -> BurnBackend {
    read_model(&testdata("oracle").join(model))
}

/// A backend with the model in this directory, on the device under test.
pub(crate) fn read_model(dir: &Path) -> BurnBackend {
    let config = ModelConfig::read(dir).expect("a model in testdata");
    let weights = ModelWeights::read(dir, &config).expect("a model in testdata");
    BurnBackend::new(config, weights, &device())
}

/// A backend with the model that most tests take.
pub(crate) fn small() -> BurnBackend {
    recorded("llama_untied")
}

/// A job that trains these layers at 2e-3, one row a step.
pub(crate) fn job(name: &str, rank: usize, targets: &[&str]) -> Job {
    Job {
        name: name.into(),
        adapter: AdapterConfig {
            rank,
            alpha: 2.0 * rank as f64,
            rank_stabilized: false,
            targets: targets.iter().map(|&target| target.into()).collect(),
        },
        optimizer: AdamW::new(2e-3),
        schedule: Schedule { decay: Decay::Constant, warmup_steps: 0 },
        batch: 1,
        accumulation: 1,
        accumulation_mode: AccumulationMode::TokenMean,
        steps: 50,
        seed: rank as u64,
    }
}

/// Three jobs that differ in everything that a job can differ in.
pub(crate) fn unlike_jobs() -> [Job; 3] {
    let plain = job("plain", 1, &["q_proj", "v_proj"]);
    let mut full = job("full", 8, &ALL);
    full.batch = 2;
    full.schedule = Schedule { decay: Decay::Linear, warmup_steps: 3 };
    full.optimizer = AdamW { weight_decay: 0.01, clip: Some(1.0), ..AdamW::new(4e-3) };
    let mut wide = job("wide", 70, &["k_proj", "o_proj", "down_proj"]);
    wide.adapter.rank_stabilized = true;
    wide.adapter.alpha = 20.0;
    wide.schedule.decay = Decay::Cosine;
    wide.optimizer = AdamW { clip: Some(0.1), betas: (0.8, 0.99), ..AdamW::new(5e-4) };
    [plain, full, wide]
}

/// Rows of random tokens; the first third of each isn't labelled.
pub(crate) fn rows(seed: u64, count: usize, lengths: RangeInclusive<usize>) -> Dataset {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let row = |_| {
        let length = random.random_range(lengths.clone());
        let mut tokens = (0..length).map(|_| random.random_range(3..VOCABULARY)).collect::<Vec<_>>();
        let target = |at: usize, token: u32| (at >= length / 3).then_some(token);
        let targets = tokens.iter().skip(1).chain([&2]).enumerate().map(|(at, &token)| target(at, token)).collect();
        tokens.truncate(length);
        Example { tokens, targets }
    };
    Dataset::from_examples((0..count).map(row).collect()).expect("rows with labels")
}

/// Rows of 1 to 40 tokens.
pub(crate) fn some_rows() -> Dataset {
    rows(1, 12, 1..=40)
}

/// An attached job, and how far it has come.
pub(crate) struct Tenant<'a> {
    pub(crate) job: &'a Job,
    pub(crate) slot: Slot,
    rows: &'a Dataset,
    /// Optimizer steps done.
    pub(crate) step: u64,
    /// Micro-batches done of the next one.
    micro: usize,
}

/// Attaches a job from the start that its seed gives.
pub(crate) fn join<'a>(backend: &mut dyn Backend, job: &'a Job, rows: &'a Dataset) -> Tenant<'a> {
    let slot = backend.attach(job, None).expect("a job for this model");
    Tenant { job, slot, rows, step: 0, micro: 0 }
}

/// Attaches a job where its state says it is.
pub(crate) fn rejoin<'a>(
    backend: &mut dyn Backend,
    job: &'a Job,
    rows: &'a Dataset,
    state: Option<JobState>,
) -> Tenant<'a> {
    let step = state.as_ref().map_or(0, |state| state.step);
    let slot = backend.attach(job, state).expect("the job's own state");
    Tenant { job, slot, rows, step, micro: 0 }
}

/// A lane of this slot.
pub(crate) fn lane(slot: Option<Slot>, rows: usize, divisor: f64, last: bool) -> Lane {
    Lane { slot, rows, objective: Objective::default(), divisor, last }
}

/// Appends a tenant's next micro-batch.
pub(crate) fn push_next(batch: &mut Batch, tenant: &mut Tenant<'_>) {
    let Tenant { job, slot, rows, step, micro } = tenant;
    let last = *micro + 1 == job.accumulation;
    let divisor = rows.divisor(job, *step, *micro);
    batch.push(lane(Some(*slot), job.batch, divisor, last), rows.micro_batch(job, *step, *micro));
    (*step, *micro) = if last { (*step + 1, 0) } else { (*step, *micro + 1) };
}

/// One micro-batch of every tenant, in one batch.
pub(crate) fn advance(backend: &mut dyn Backend, tenants: &mut [&mut Tenant<'_>]) {
    let mut batch = Batch::default();
    for tenant in tenants {
        push_next(&mut batch, tenant);
    }
    backend.step(&batch).expect("a sound batch");
}

/// So many micro-batches of every tenant, in lockstep.
pub(crate) fn train(backend: &mut dyn Backend, tenants: &mut [&mut Tenant<'_>], micro_batches: usize) {
    for _ in 0..micro_batches {
        advance(backend, tenants);
    }
}

/// All reports that weren't read yet.
pub(crate) fn read(backend: &mut dyn Backend) -> Vec<StepReport> {
    backend.read().expect("a device that works")
}

/// The losses of a slot, in the order of its steps.
pub(crate) fn losses(reports: &[StepReport], slot: Slot) -> Vec<f64> {
    reports.iter().filter(|report| report.slot == slot).map(|report| report.loss).collect()
}

/// Takes a tenant out.
pub(crate) fn leave(backend: &mut dyn Backend, tenant: Tenant<'_>) -> JobState {
    backend.detach(tenant.slot).expect("an attached job")
}

/// What a job comes to on this backend with nobody beside it: its losses and its last state.
pub(crate) fn alone(
    backend: &mut dyn Backend,
    job: &Job,
    rows: &Dataset,
    micro_batches: usize,
) -> (Vec<f64>, JobState) {
    let mut tenant = join(backend, job, rows);
    train(backend, &mut [&mut tenant], micro_batches);
    let slot = tenant.slot;
    let state = leave(backend, tenant);
    (losses(&read(backend), slot), state)
}

/// The bits of numbers, for comparisons that take NaN for what it is.
pub(crate) fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

/// The bits of every entry of an adapter, by tensor.
pub(crate) type AdapterBits = Vec<(String, Vec<u32>)>;

/// For comparisons that take NaN for what it is.
pub(crate) fn adapter_bits(adapter: &Adapter) -> AdapterBits {
    let bits = |matrix: &Matrix| matrix.data().iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    let of_pair = |(path, pair): (&String, &LoraPair)| {
        [(format!("{path}.lora_A"), bits(&pair.a)), (format!("{path}.lora_B"), bits(&pair.b))]
    };
    adapter.modules.iter().flat_map(of_pair).collect()
}

/// The largest difference relative to what is expected.
pub(crate) fn relative_error(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len(), "as many losses");
    let error = |(found, expected): (&f64, &f64)| {
        assert!(found.is_finite() && expected.is_finite(), "{found} found, {expected} expected");
        (found - expected).abs() / expected.abs()
    };
    found.iter().zip(expected).map(error).fold(0.0, f64::max)
}

/// The largest difference of two adapters' entries.
pub(crate) fn adapter_error(found: &Adapter, expected: &Adapter) -> f64 {
    assert_eq!(found.config, expected.config);
    assert!(found.modules.keys().eq(expected.modules.keys()), "the same modules");
    let matrices = |adapter: &Adapter| -> Vec<Matrix> {
        adapter.modules.values().flat_map(|pair| [pair.a.clone(), pair.b.clone()]).collect()
    };
    let mut largest = 0.0f64;
    for (found, expected) in matrices(found).iter().zip(&matrices(expected)) {
        assert_eq!((found.rows(), found.columns()), (expected.rows(), expected.columns()));
        for (&found, &expected) in found.data().iter().zip(expected.data()) {
            assert!(found.is_finite() && expected.is_finite(), "{found} found, {expected} expected");
            largest = largest.max((f64::from(found) - f64::from(expected)).abs());
        }
    }
    largest
}
