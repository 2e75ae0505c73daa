//! A Llama model on a Burn device as a [`Backend`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use burn::tensor::{DType, Device, Tensor};

use super::checks::{check_batch, check_divisors, check_size, check_state};
use super::dtypes;
use super::llama::Llama;
use super::lora_layout::modules;
use super::memory::in_use_and_peak;
use super::pending::{LossPart, PendingStep, Unread};
use super::process;
use super::store::Store;
use super::transfer::{Reads, vector, zeros};
use crate::adapter::{Adapter, LoraPair};
use crate::backend::{Backend, BackendError, Evaluation, JobState, Memory, Slot, StepReport};
use crate::batch::{Batch, Example, Lane, Objective};
use crate::dtype::Dtype;
use crate::job::Job;
use crate::matrix::Matrix;
use crate::model::{ModelConfig, ModelError, ModelWeights};
use crate::testing::parity::Inspect;

/// A frozen Llama model on a Burn device, training any number of LoRA adapters at once.
///
/// Weights and activations are of the model's [`Dtype`]; adapters, their gradients and moments, losses and norms are f32
/// always, and every sum is made in f32.
///
/// A job's start follows from its seed alone: `a` Kaiming-uniform, `b` zero, as PEFT does. An optimizer step whose
/// gradient isn't finite is skipped, but counts in the schedule and in AdamW's step clock.
#[derive(Debug)]
pub struct BurnBackend {
    model: Llama,
    store: Store,
    /// What `pending` and unfinished steps will be resolved from.
    unread: Unread,
    pending: Vec<PendingStep>,
    reads: Reads,
    next_slot: u64,
    memory_budget: Option<u64>,
    device: Device,
}

impl BurnBackend {
    /// Reads a model directory in Hugging Face's layout onto Burn's Flex device, the CPU, in f32.
    ///
    /// # Errors
    /// When the model can't be read or isn't supported.
    pub fn read(dir: &Path) -> Result<Self, ModelError> {
        let config = ModelConfig::read(dir)?;
        let weights = ModelWeights::read(dir, &config)?;
        Ok(Self::new(config, weights, &Device::flex()))
    }

    /// A model on a device, in f32.
    ///
    /// # Panics
    /// If the device is an autodiff one: the backend builds its graphs itself.
    pub fn new(config: ModelConfig, weights: ModelWeights, device: &Device) -> Self {
        assert!(!device.is_autodiff(), "give the inner device");
        let store = Store::new(modules(&config), device);
        Self::assemble(Llama::new(config, weights, device, Dtype::F32), store, device)
    }

    /// A model on a device, with weights and activations in a dtype; the weights are rounded to it.
    ///
    /// # Errors
    /// When the device can't compute in the dtype, or the dtype can't hold a weight.
    ///
    /// # Panics
    /// If the device is an autodiff one: the backend builds its graphs itself.
    pub fn with_dtype(
        config: ModelConfig,
        weights: ModelWeights,
        device: &Device,
        dtype: Dtype,
    ) -> Result<Self, BackendError> {
        assert!(!device.is_autodiff(), "give the inner device");
        dtypes::check(device, dtype, &weights)?;
        let store = Store::new(modules(&config), device);
        Ok(Self::assemble(Llama::new(config, weights, device, dtype), store, device))
    }

    fn assemble(model: Llama, store: Store, device: &Device) -> Self {
        Self {
            model,
            store,
            unread: Unread::default(),
            pending: Vec::new(),
            reads: Reads::default(),
            next_slot: 0,
            memory_budget: None,
            device: device.clone(),
        }
    }

    /// Sets how many bytes may be taken, by the whole process where the device computes in its memory, else of the
    /// device's; the trainer admits only as many jobs as fit.
    ///
    /// It covers the model, the step and what jobs keep on the host: best adapters and waiting jobs' states, which the
    /// trainer sets aside for all of them from the start; see [`Admission`](crate::trainer::Admission). It doesn't
    /// cover the copies made for a moment while a job joins or leaves, which are of the attached adapters' size.
    pub fn with_memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = Some(bytes);
        self
    }

    /// The model's shape.
    pub fn config(&self) -> &ModelConfig {
        &self.model.config
    }

    /// How often something was read from the device: each time the host waited for it.
    ///
    /// A step reads nothing; [`read`](Backend::read), [`evaluate`](Backend::evaluate), [`snapshot`](Backend::snapshot) and
    /// [`detach`](Backend::detach) read once each, or not at all if there is nothing to read.
    pub fn device_reads(&self) -> u64 {
        self.reads.count()
    }

    /// The adapter that a job without a state starts from.
    fn fresh_adapter(&self, job: &Job) -> Adapter {
        let targeted = self.store.shapes().filter(|(_, name, _)| job.adapter.targets.contains(*name));
        Adapter::fresh(&job.adapter, targeted.map(|(path, _, shape)| (path, shape)), job.seed)
    }

    /// Checks a batch and finds whose rows are whose.
    fn lanes(&mut self, batch: &Batch) -> Result<Lanes, BackendError> {
        check_batch(batch, &self.model.config)?;
        let (mut adapted, mut seen, mut labelled) = (Vec::new(), BTreeSet::new(), 0);
        let mut lanes = Vec::new();
        for (index, (lane, tokens)) in batch.lane_tokens().enumerate() {
            let count = batch.targets[tokens.clone()].iter().flatten().count();
            let tenant = lane.slot.map(|slot| self.store.find(slot)).transpose()?;
            if let Some(tenant) = tenant {
                if !seen.insert(tenant) {
                    let what = "the number of lanes of one slot";
                    return Err(BackendError::InconsistentBatch { what, found: 2, expected: 1 });
                }
                adapted.push((tokens, tenant));
            }
            lanes.push(LaneOfTokens { index, tenant, labelled: labelled..labelled + count });
            labelled += count;
        }
        self.model.reserve_positions(batch.row_lengths.iter().copied().max().unwrap_or(0));
        Ok(Lanes { lanes, adapted })
    }

    /// Forward and backward: adds the gradients to the store's, and gives the labelled tokens' log-probabilities.
    fn differentiate(&mut self, batch: &Batch, Lanes { lanes, adapted }: &Lanes) -> Tensor<1> {
        let labelled = lanes.last().map_or(0, |lane| lane.labelled.end);
        if labelled == 0 {
            // Nothing to learn from, and devices are not fond of empty tensors.
            return zeros(0, &self.device);
        }
        let adapters = self.store.adapters(adapted, true);
        let hidden = self.model.hidden(&batch.tokens, &batch.row_lengths.as_slice().into(), &adapters, true);
        let log_probs = self.model.log_probs(hidden, &batch.targets);
        let scale = dtypes::gradient_scale(self.model.dtype);
        // The objective's slope at each log-probability, scaled; zero where no job trains on it.
        let mut slope = vec![0.0f32; labelled];
        for LaneOfTokens { index, labelled, .. } in lanes.iter().filter(|lane| lane.tenant.is_some()) {
            let Objective::NegativeLogLikelihood = batch.lanes[*index].objective;
            slope[labelled.clone()].fill(scale * (-1.0 / batch.lanes[*index].divisor) as f32);
        }
        let values = log_probs.clone().inner();
        if adapters.iter().all(|lora| lora.total_ranks() == 0) {
            return values;
        }
        // A log-probability of minus infinity makes its slope NaN, so that the optimizer sees it and skips the step.
        let slope = vector(slope, &self.device, DType::F32) + values.clone() * 0.0;
        let mut gradients = (log_probs * Tensor::from_inner(slope)).backward();
        let flat = adapters.iter().filter(|lora| lora.total_ranks() > 0).flat_map(|lora| [&lora.a, &lora.b]);
        let flat = flat.map(|factor| {
            let entries = factor.dims().iter().product::<usize>();
            let gradient = factor.grad_remove(&mut gradients);
            gradient.map_or_else(|| zeros(entries, &self.device), |gradient| gradient.reshape([entries]))
        });
        let flat = flat.collect();
        // Views of the parameters must be gone before the optimizer changes them in place.
        drop((adapters, gradients));
        self.store.accumulate(flat, scale);
        values
    }
}

/// A lane with what a backend needs to know of it.
struct LaneOfTokens {
    index: usize,
    tenant: Option<usize>,
    /// Its labelled tokens among all.
    labelled: Range<usize>,
}

struct Lanes {
    lanes: Vec<LaneOfTokens>,
    /// Tokens and tenant of every lane that goes through an adapter.
    adapted: Vec<(Range<usize>, usize)>,
}

impl Backend for BurnBackend {
    fn check(&self, job: &Job) -> Result<(), BackendError> {
        job.check()?;
        let known: BTreeSet<&str> = self.store.shapes().map(|(_, name, _)| name).collect();
        if let Some(target) = job.adapter.targets.iter().find(|target| !known.contains(target.as_str())) {
            return Err(BackendError::UnknownTarget {
                job: job.name.clone(),
                target: target.clone(),
                known: known.into_iter().collect::<Vec<_>>().join(", "),
            });
        }
        check_size(&job.name, self.adapter_bytes(job), process::physical())
    }

    fn adapter_bytes(&self, job: &Job) -> u64 {
        self.store.adapter_bytes(job)
    }

    fn attach(&mut self, job: &Job, state: Option<JobState>) -> Result<Slot, BackendError> {
        self.check(job)?;
        let state = state.unwrap_or_else(|| JobState::starting_from(self.fresh_adapter(job)));
        check_state(job, &state, self.store.targeted(job))?;
        let slot = Slot(self.next_slot);
        self.next_slot += 1;
        self.store.push(slot, job, &state);
        Ok(slot)
    }

    fn step(&mut self, batch: &Batch) -> Result<(), BackendError> {
        check_divisors(batch)?;
        let lanes = self.lanes(batch)?;
        let log_probs = self.differentiate(batch, &lanes);
        let labelled = self.unread.push(log_probs);
        let mut finished = Vec::new();
        for LaneOfTokens { index, tenant, labelled: own } in lanes.lanes {
            let Some(tenant) = tenant else { continue };
            let Lane { divisor, last, .. } = batch.lanes[index];
            let own = if own.is_empty() { 0..0 } else { labelled.start + own.start..labelled.start + own.end };
            let unfinished = self.store.tenants[tenant].unfinished.get_or_insert_default();
            unfinished.push(LossPart { log_probs: own, divisor });
            if last {
                finished.push(tenant);
            }
        }
        if finished.is_empty() {
            return Ok(());
        }
        let rates: Vec<f64> =
            finished.iter().map(|&t| &self.store.tenants[t]).map(|t| t.job.learning_rate(t.step)).collect();
        let report = self.store.update(&finished);
        let report = self.unread.push(report.reshape([2 * finished.len()]));
        for (row, (tenant, learning_rate)) in finished.into_iter().zip(rates).enumerate() {
            let tenant = &mut self.store.tenants[tenant];
            self.pending.push(PendingStep {
                slot: tenant.slot,
                step: tenant.step,
                learning_rate,
                loss: tenant.unfinished.take().unwrap_or_default(),
                optimizer: report.start + 2 * row,
                tensors: tenant.tensors.clone(),
            });
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<StepReport>, BackendError> {
        let numbers = self.unread.read(&self.reads)?;
        // What was read of steps that aren't finished is kept for their reports.
        for unfinished in self.store.tenants.iter_mut().filter_map(|tenant| tenant.unfinished.as_mut()) {
            unfinished.resolve(&numbers);
        }
        Ok(self.pending.drain(..).map(|step| step.report(&numbers)).collect())
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<Vec<Evaluation>, BackendError> {
        let Lanes { lanes, adapted } = self.lanes(batch)?;
        let labelled = lanes.last().map_or(0, |lane| lane.labelled.end);
        let log_probs = if labelled == 0 {
            Vec::new()
        } else {
            let adapters = self.store.adapters(&adapted, false);
            let hidden = self.model.hidden(&batch.tokens, &batch.row_lengths.as_slice().into(), &adapters, false);
            self.reads.read(vec![self.model.log_probs(hidden, &batch.targets)])?
        };
        let evaluation = |LaneOfTokens { index, labelled, .. }: LaneOfTokens| {
            let count = labelled.len() as u64;
            let sum = -log_probs[labelled].iter().map(|&l| f64::from(l)).sum::<f64>();
            Evaluation { lane: index, metric: "loss".into(), sum, count }
        };
        Ok(lanes.into_iter().map(evaluation).collect())
    }

    fn snapshot(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        self.store.job_state(self.store.find(slot)?, &self.reads)
    }

    fn detach(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        let tenant = self.store.find(slot)?;
        let state = self.store.job_state(tenant, &self.reads)?;
        self.store.abandon_step(tenant);
        self.store.remove(tenant);
        Ok(state)
    }

    fn memory(&mut self) -> Memory {
        let (in_use, peak) = in_use_and_peak(&self.device, self.model.bytes() + self.store.bytes());
        Memory { in_use, peak, budget: self.memory_budget }
    }
}

impl Inspect for BurnBackend {
    fn dtype(&self) -> Dtype {
        self.model.dtype
    }

    fn logits(&mut self, tokens: &[u32], slot: Option<Slot>) -> Result<Matrix, BackendError> {
        let mut batch = Batch::default();
        let row = Example { tokens: tokens.to_vec(), targets: vec![None; tokens.len()] };
        batch.push(Lane { slot, rows: 1, objective: Objective::default(), divisor: 1.0, last: false }, [&row]);
        let lanes = self.lanes(&batch)?;
        let adapters = self.store.adapters(&lanes.adapted, false);
        let hidden = self.model.hidden(tokens, &batch.row_lengths.as_slice().into(), &adapters, false);
        let vocabulary = self.model.config.vocabulary;
        let logits = self.model.logits(hidden).reshape([tokens.len() * vocabulary]);
        Ok(Matrix::new(tokens.len(), vocabulary, self.reads.read(vec![logits])?))
    }

    fn gradient(&self, slot: Slot) -> Result<BTreeMap<String, LoraPair>, BackendError> {
        self.store.gradient(self.store.find(slot)?, &self.reads)
    }
}
