//! A Llama model on a Burn device as a [`Backend`].

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use burn::tensor::{Device, Tensor};

use super::llama::{Llama, vector};
use super::lora_layout::modules;
use super::pending::{LossPart, PendingStep, read};
use super::process;
use super::store::Store;
use crate::adapter::{Adapter, LoraPair};
use crate::backend::{Backend, BackendError, Evaluation, JobState, Memory, Slot, StepReport};
use crate::batch::{Batch, Lane, Objective};
use crate::job::Job;
use crate::matrix::Matrix;
use crate::model::{ModelConfig, ModelError, ModelWeights};
use crate::testing::parity::Inspect;

/// A frozen Llama model on a Burn device, training any number of LoRA adapters at once.
///
/// A job's start follows from its seed alone: `a` Kaiming-uniform, `b` zero, as PEFT does. An optimizer step whose
/// gradient isn't finite is skipped, but counts in the schedule and in AdamW's step clock.
#[derive(Debug)]
pub struct BurnBackend {
    model: Llama,
    store: Store,
    pending: Vec<PendingStep>,
    next_slot: u64,
    memory_budget: Option<u64>,
}

impl BurnBackend {
    /// Reads a model directory in Hugging Face's layout onto Burn's Flex device, the CPU.
    ///
    /// # Errors
    /// When the model can't be read or isn't supported.
    pub fn read(dir: &Path) -> Result<Self, ModelError> {
        let config = ModelConfig::read(dir)?;
        let weights = ModelWeights::read(dir, &config)?;
        Ok(Self::new(config, weights, &Device::flex()))
    }

    /// A model on a device.
    ///
    /// # Panics
    /// If the device is an autodiff one: the backend builds its graphs itself.
    pub fn new(config: ModelConfig, weights: ModelWeights, device: &Device) -> Self {
        assert!(!device.is_autodiff(), "give the inner device");
        let store = Store::new(modules(&config), device);
        let model = Llama::new(config, weights, device);
        Self { model, store, pending: Vec::new(), next_slot: 0, memory_budget: None }
    }

    /// Sets what the whole process may take, in bytes; the trainer admits only as many jobs as fit.
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
        self.store.check_state(job, &state)?;
        let slot = Slot(self.next_slot);
        self.next_slot += 1;
        self.store.push(slot, job, &state);
        Ok(slot)
    }

    fn step(&mut self, batch: &Batch) -> Result<(), BackendError> {
        check_divisors(batch)?;
        let Lanes { lanes, adapted } = self.lanes(batch)?;
        let adapters = self.store.adapters(&adapted, true);
        let hidden = self.model.hidden(&batch.tokens, &batch.row_lengths, &adapters, true);
        let log_probs = self.model.log_probs(hidden, &batch.targets);

        // The objective's slope at each log-probability; zero where no job trains on it.
        let mut slope = vec![0.0f32; log_probs.dims()[0]];
        for LaneOfTokens { index, labelled, .. } in lanes.iter().filter(|lane| lane.tenant.is_some()) {
            let Objective::NegativeLogLikelihood = batch.lanes[*index].objective;
            slope[labelled.clone()].fill((-1.0 / batch.lanes[*index].divisor) as f32);
        }
        let values = log_probs.clone().inner();
        // A log-probability of minus infinity makes its slope NaN, so that the optimizer sees it and skips the step.
        let slope = vector(slope, &values.device()) + values.clone() * 0.0;
        let mut gradients = (log_probs * Tensor::from_inner(slope)).sum().backward();
        let flat = adapters.iter().filter(|lora| lora.a.dims()[0] > 0).flat_map(|lora| [&lora.a, &lora.b]);
        let flat = flat.map(|factor| {
            let entries = factor.dims().iter().product::<usize>();
            let gradient = factor.grad_remove(&mut gradients);
            gradient.map_or_else(|| Tensor::zeros([entries], &values.device()), |gradient| gradient.reshape([entries]))
        });
        let flat = flat.collect();
        // Views of the parameters must be gone before the optimizer changes them in place.
        drop((adapters, gradients));
        self.store.accumulate(flat);

        let mut finished = Vec::new();
        for LaneOfTokens { index, tenant, labelled } in lanes {
            let Some(tenant) = tenant else { continue };
            let lane = &batch.lanes[index];
            let part = LossPart { log_probs: values.clone(), range: labelled, divisor: lane.divisor };
            self.store.tenants[tenant].unfinished.push(part);
            if lane.last {
                finished.push(tenant);
            }
        }
        if finished.is_empty() {
            return Ok(());
        }
        let rates: Vec<f64> =
            finished.iter().map(|&t| &self.store.tenants[t]).map(|t| t.job.learning_rate(t.step)).collect();
        let report = self.store.update(&finished);
        for (row, (tenant, learning_rate)) in finished.into_iter().zip(rates).enumerate() {
            let tenant = &mut self.store.tenants[tenant];
            self.pending.push(PendingStep {
                slot: tenant.slot,
                step: tenant.step,
                learning_rate,
                loss: std::mem::take(&mut tenant.unfinished),
                optimizer: (report.clone(), row),
                tensors: tenant.tensors.clone(),
            });
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<StepReport>, BackendError> {
        std::mem::take(&mut self.pending).into_iter().map(PendingStep::report).collect()
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<Vec<Evaluation>, BackendError> {
        let Lanes { lanes, adapted } = self.lanes(batch)?;
        let adapters = self.store.adapters(&adapted, false);
        let hidden = self.model.hidden(&batch.tokens, &batch.row_lengths, &adapters, false);
        let log_probs = read(&self.model.log_probs(hidden, &batch.targets))?;
        let evaluation = |LaneOfTokens { index, labelled, .. }: LaneOfTokens| {
            let count = labelled.len() as u64;
            let sum = -log_probs[labelled].iter().map(|&l| f64::from(l)).sum::<f64>();
            Evaluation { lane: index, metric: "loss".into(), sum, count }
        };
        Ok(lanes.into_iter().map(evaluation).collect())
    }

    fn snapshot(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        self.store.job_state(self.store.find(slot)?)
    }

    fn detach(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        let tenant = self.store.find(slot)?;
        let state = self.store.job_state(tenant)?;
        self.store.abandon_step(tenant);
        self.store.remove(tenant);
        Ok(state)
    }

    fn memory(&mut self) -> Memory {
        let own = self.model.bytes() + self.store.bytes();
        let (in_use, peak) = process::resident().unwrap_or((own, own));
        process::reset_peak();
        Memory { in_use, peak, budget: self.memory_budget }
    }
}

impl Inspect for BurnBackend {
    fn logits(&mut self, tokens: &[u32], slot: Option<Slot>) -> Result<Matrix, BackendError> {
        let mut batch = Batch::default();
        let row = crate::batch::Example { tokens: tokens.to_vec(), targets: vec![None; tokens.len()] };
        batch.push(Lane { slot, rows: 1, objective: Objective::default(), divisor: 1.0, last: false }, [&row]);
        let lanes = self.lanes(&batch)?;
        let adapters = self.store.adapters(&lanes.adapted, false);
        let hidden = self.model.hidden(tokens, &batch.row_lengths, &adapters, false);
        let logits = read(&self.model.logits(hidden))?;
        Ok(Matrix::new(tokens.len(), self.model.config.vocabulary, logits))
    }

    fn gradient(&self, slot: Slot) -> Result<BTreeMap<String, LoraPair>, BackendError> {
        let tenant = self.store.find(slot)?;
        let zero = |pair: &LoraPair| LoraPair {
            a: Matrix::zeros(pair.a.rows(), pair.a.columns()),
            b: Matrix::zeros(pair.b.rows(), pair.b.columns()),
        };
        match self.store.gradient(tenant)? {
            Some(gradient) => Ok(gradient),
            None => {
                let adapter = self.store.job_state(tenant)?.adapter;
                Ok(adapter.modules.iter().map(|(path, pair)| (path.clone(), zero(pair))).collect())
            }
        }
    }
}

/// An adapter that the machine could hold, if it is known what the machine has.
fn check_size(job: &str, needed: u64, available: Option<u64>) -> Result<(), BackendError> {
    match available {
        Some(available) if needed > available => Err(BackendError::TooLarge { job: job.to_owned(), needed, available }),
        _ => Ok(()),
    }
}

/// Lengths that fit together, tokens and targets that the vocabulary has, rows that the context holds.
fn check_batch(batch: &Batch, config: &ModelConfig) -> Result<(), BackendError> {
    let tokens = batch.tokens.len();
    for (what, found, expected) in [
        ("the number of targets", batch.targets.len(), tokens),
        ("the sum of the row lengths", batch.row_lengths.iter().sum(), tokens),
        ("the lanes' number of rows", batch.lanes.iter().map(|lane| lane.rows).sum(), batch.row_lengths.len()),
    ] {
        if found != expected {
            return Err(BackendError::InconsistentBatch { what, found, expected });
        }
    }
    let (vocabulary, context) = (config.vocabulary, config.context);
    let ids = batch
        .tokens
        .iter()
        .enumerate()
        .chain(batch.targets.iter().enumerate().filter_map(|(i, t)| Some((i, t.as_ref()?))));
    for (position, &token) in ids {
        if token as usize >= vocabulary {
            return Err(BackendError::TokenOutOfRange { token, position, vocabulary });
        }
    }
    for (row, &length) in batch.row_lengths.iter().enumerate() {
        if length > context {
            return Err(BackendError::RowTooLong { row, length, context });
        }
    }
    Ok(())
}

fn check_divisors(batch: &Batch) -> Result<(), BackendError> {
    for (lane, Lane { slot, rows, divisor, .. }) in batch.lanes.iter().enumerate() {
        if slot.is_some() && *rows > 0 && !(divisor.is_finite() && *divisor > 0.0) {
            return Err(BackendError::BadDivisor { lane, divisor: *divisor });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_larger_than_the_machine_is_refused() {
        assert!(check_size("a", 1 << 30, Some(1 << 30)).is_ok());
        assert!(check_size("a", u64::MAX, None).is_ok());
        let error = check_size("a", 2048, Some(1024)).unwrap_err().to_string();
        let expected = "job a: its adapter takes 2048 bytes, but the machine has 1024; give it a lower rank or fewer \
                        target modules";
        assert_eq!(error, expected);
    }
}
