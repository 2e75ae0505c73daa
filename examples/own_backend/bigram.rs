//! A bigram language model with low-rank adapters, in plain loops.
//!
//! The logits behind token `x` are column `x` of `H + scale * B A`, where `H` is frozen. With `p` their softmax and `y`
//! the token that follows, a token's gradients are, for `g = scale * (p - onehot(y)) / divisor`:
//! `dB = g (A onehot(x))ᵀ` and `dA = Bᵀ g onehot(x)ᵀ`.

use std::collections::{BTreeMap, BTreeSet};

use alto_core::adapter::{Adapter, LoraPair};
use alto_core::backend::{Backend, BackendError, Evaluation, JobState, Memory, Moments, Slot, StepReport};
use alto_core::batch::Batch;
use alto_core::job::Job;
use alto_core::matrix::Matrix;

/// The one layer's name and path.
const HEAD: &str = "head";

/// The frozen model, and the jobs that train on it.
#[derive(Debug)]
pub(crate) struct Bigram {
    /// `[next, token]`.
    head: Matrix,
    tenants: BTreeMap<Slot, Tenant>,
    next_slot: u64,
    unread: Vec<StepReport>,
}

/// A job in its slot.
#[derive(Debug)]
struct Tenant {
    job: Job,
    state: JobState,
    /// Loss and gradients of A and B, over the micro-batches of the step that isn't over.
    loss: f64,
    gradient: [Vec<f64>; 2],
}

impl Bigram {
    pub(crate) fn new(vocabulary: usize, logit: impl Fn(usize, usize) -> f32) -> Self {
        let logits = (0..vocabulary).flat_map(|next| (0..vocabulary).map(move |token| (token, next)));
        let head = Matrix::new(vocabulary, vocabulary, logits.map(|(token, next)| logit(token, next)).collect());
        Self { head, tenants: BTreeMap::new(), next_slot: 0, unread: vec![] }
    }

    fn vocabulary(&self) -> usize {
        self.head.rows()
    }

    /// Log-probabilities of what follows a token.
    fn log_probs(&self, token: usize, tenant: Option<&Tenant>) -> Vec<f64> {
        let mut logits: Vec<f64> = (0..self.vocabulary()).map(|next| at(&self.head, next, token)).collect();
        if let Some(Tenant { job, state, .. }) = tenant {
            let LoraPair { a, b } = &state.adapter.modules[HEAD];
            for (next, logit) in logits.iter_mut().enumerate() {
                let delta: f64 = (0..a.rows()).map(|k| at(b, next, k) * at(a, k, token)).sum();
                *logit += job.adapter.scale() * delta;
            }
        }
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total = largest + logits.iter().map(|logit| (logit - largest).exp()).sum::<f64>().ln();
        logits.iter().map(|logit| logit - total).collect()
    }

    /// Everything that may be wrong with a batch is found before anything is computed.
    fn check_batch(&self, batch: &Batch) -> Result<(), BackendError> {
        let slots: Vec<Slot> = batch.lanes.iter().filter_map(|lane| lane.slot).collect();
        if let Some(&slot) = slots.iter().find(|slot| !self.tenants.contains_key(slot)) {
            return Err(BackendError::UnknownSlot { slot });
        }
        for (what, found, expected) in [
            ("the number of targets", batch.targets.len(), batch.tokens.len()),
            ("the sum of the row lengths", batch.row_lengths.iter().sum(), batch.tokens.len()),
            ("the sum of the lanes' rows", batch.lanes.iter().map(|lane| lane.rows).sum(), batch.row_lengths.len()),
            ("the number of distinct slots", slots.iter().collect::<BTreeSet<_>>().len(), slots.len()),
        ] {
            if found != expected {
                return Err(BackendError::InconsistentBatch { what, found, expected });
            }
        }
        let ids = batch.tokens.iter().zip(&batch.targets).enumerate();
        let mut ids = ids
            .flat_map(|(position, (&token, &target))| [token].into_iter().chain(target).map(move |id| (position, id)));
        match ids.find(|&(_, id)| id as usize >= self.vocabulary()) {
            Some((position, token)) => {
                Err(BackendError::TokenOutOfRange { token, position, vocabulary: self.vocabulary() })
            }
            None => Ok(()),
        }
    }

    /// Forward and backward of one lane.
    fn accumulate(&self, tenant: &mut Tenant, tokens: &[u32], targets: &[Option<u32>], divisor: f64) {
        for (&token, target) in tokens.iter().zip(targets) {
            let Some(target) = target.map(|target| target as usize) else { continue };
            let token = token as usize;
            let log_probs = self.log_probs(token, Some(tenant));
            tenant.loss -= log_probs[target] / divisor;
            let LoraPair { a, b } = &tenant.state.adapter.modules[HEAD];
            let [da, db] = &mut tenant.gradient;
            for (next, log_prob) in log_probs.iter().enumerate() {
                let hit = if next == target { 1.0 } else { 0.0 };
                let g = tenant.job.adapter.scale() * (log_prob.exp() - hit) / divisor;
                for k in 0..a.rows() {
                    db[next * a.rows() + k] += g * at(a, k, token);
                    da[k * a.columns() + token] += g * at(b, next, k);
                }
            }
        }
    }
}

impl Tenant {
    fn new(job: &Job, state: JobState) -> Self {
        let LoraPair { a, b } = &state.adapter.modules[HEAD];
        let gradient = [vec![0.0; a.data().len()], vec![0.0; b.data().len()]];
        Self { job: job.clone(), state, loss: 0.0, gradient }
    }

    /// The optimizer's step, and its report.
    fn update(&mut self, slot: Slot) -> StepReport {
        let loss = std::mem::take(&mut self.loss);
        let zeros = self.gradient.each_ref().map(|gradient| vec![0.0; gradient.len()]);
        let gradient = std::mem::replace(&mut self.gradient, zeros);
        let learning_rate = self.job.learning_rate(self.state.step);
        let grad_norm = gradient.iter().flatten().map(|g| g * g).sum::<f64>().sqrt();
        self.state.step += 1;
        let not_finite =
            [("loss", loss.is_finite()), ("head.lora_A", finite(&gradient[0])), ("head.lora_B", finite(&gradient[1]))]
                .into_iter()
                .find_map(|(tensor, finite)| (!finite).then(|| tensor.to_owned()));
        if not_finite.is_none() {
            let clip = self.job.optimizer.clip.map_or(1.0, |most| (most / (grad_norm + 1e-6)).min(1.0));
            self.adamw(&gradient, clip, learning_rate);
        }
        StepReport { slot, step: self.state.step, loss, grad_norm, learning_rate, not_finite, metrics: BTreeMap::new() }
    }

    fn adamw(&mut self, gradient: &[Vec<f64>; 2], clip: f64, learning_rate: f64) {
        let settings = &self.job.optimizer;
        let JobState { adapter, moments, step } = &mut self.state;
        let pair = adapter.modules.get_mut(HEAD).expect("every tenant has its one module");
        let zeros = |pair: &LoraPair| LoraPair {
            a: Matrix::zeros(pair.a.rows(), pair.a.columns()),
            b: Matrix::zeros(pair.b.rows(), pair.b.columns()),
        };
        let moments =
            moments.entry(HEAD.to_owned()).or_insert_with(|| Moments { first: zeros(pair), second: zeros(pair) });
        let (beta1, beta2) = settings.betas;
        let (unbias1, unbias2) = (1.0 - beta1.powf(*step as f64), 1.0 - beta2.powf(*step as f64));
        let factors = [
            (&mut pair.a, &mut moments.first.a, &mut moments.second.a),
            (&mut pair.b, &mut moments.first.b, &mut moments.second.b),
        ];
        for ((factor, first, second), gradient) in factors.into_iter().zip(gradient) {
            let entries = factor.data_mut().iter_mut().zip(first.data_mut()).zip(second.data_mut()).zip(gradient);
            for (((entry, first), second), g) in entries {
                let g = clip * g;
                let m = beta1 * f64::from(*first) + (1.0 - beta1) * g;
                let v = beta2 * f64::from(*second) + (1.0 - beta2) * g * g;
                let step = m / unbias1 / ((v / unbias2).sqrt() + settings.epsilon);
                let decayed = f64::from(*entry) * (1.0 - learning_rate * settings.weight_decay);
                (*entry, *first, *second) = ((decayed - learning_rate * step) as f32, m as f32, v as f32);
            }
        }
    }
}

impl Backend for Bigram {
    fn check(&self, job: &Job) -> Result<(), BackendError> {
        job.check()?;
        match job.adapter.targets.iter().find(|target| *target != HEAD) {
            Some(target) => {
                Err(BackendError::UnknownTarget { job: job.name.clone(), target: target.clone(), known: HEAD.into() })
            }
            None => Ok(()),
        }
    }

    fn adapter_bytes(&self, job: &Job) -> u64 {
        // Weights and two moments in f32, gradients in f64, of two factors.
        (2 * job.adapter.rank * self.vocabulary() * (3 * 4 + 8)) as u64
    }

    fn attach(&mut self, job: &Job, state: Option<JobState>) -> Result<Slot, BackendError> {
        self.check(job)?;
        let fresh = Adapter::fresh(&job.adapter, [(HEAD, [self.vocabulary(); 2])], job.seed);
        let shape = |adapter: &Adapter| -> Vec<(String, [usize; 4])> {
            let shape = |p: &LoraPair| [p.a.rows(), p.a.columns(), p.b.rows(), p.b.columns()];
            adapter.modules.iter().map(|(path, pair)| (path.clone(), shape(pair))).collect()
        };
        let state = state.unwrap_or_else(|| JobState::starting_from(fresh.clone()));
        let (found, expected) = (shape(&state.adapter), shape(&fresh));
        if found != expected {
            let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
            return Err(BackendError::StateMismatch { job: job.name.clone(), module: HEAD.into(), found, expected });
        }
        let slot = Slot(self.next_slot);
        self.next_slot += 1;
        self.tenants.insert(slot, Tenant::new(job, state));
        Ok(slot)
    }

    fn step(&mut self, batch: &Batch) -> Result<(), BackendError> {
        self.check_batch(batch)?;
        let bad = |divisor: f64| !(divisor.is_finite() && divisor > 0.0);
        if let Some(lane) = batch.lanes.iter().position(|lane| bad(lane.divisor)) {
            return Err(BackendError::BadDivisor { lane, divisor: batch.lanes[lane].divisor });
        }
        for (lane, tokens) in batch.lane_tokens() {
            let Some((slot, mut tenant)) = lane.slot.and_then(|slot| self.tenants.remove_entry(&slot)) else {
                continue;
            };
            self.accumulate(&mut tenant, &batch.tokens[tokens.clone()], &batch.targets[tokens], lane.divisor);
            if lane.last {
                self.unread.push(tenant.update(slot));
            }
            self.tenants.insert(slot, tenant);
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<StepReport>, BackendError> {
        Ok(std::mem::take(&mut self.unread))
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<Vec<Evaluation>, BackendError> {
        self.check_batch(batch)?;
        let evaluation = |(index, (lane, tokens)): (usize, (&alto_core::batch::Lane, std::ops::Range<usize>))| {
            let tenant = lane.slot.map(|slot| &self.tenants[&slot]);
            let labelled = tokens.filter_map(|t| Some((batch.tokens[t] as usize, batch.targets[t]? as usize)));
            let losses: Vec<f64> = labelled.map(|(token, target)| -self.log_probs(token, tenant)[target]).collect();
            Evaluation { lane: index, metric: "loss".into(), sum: losses.iter().sum(), count: losses.len() as u64 }
        };
        Ok(batch.lane_tokens().enumerate().map(evaluation).collect())
    }

    fn snapshot(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        self.tenants.get(&slot).map(|tenant| tenant.state.clone()).ok_or(BackendError::UnknownSlot { slot })
    }

    fn detach(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        self.tenants.remove(&slot).map(|tenant| tenant.state).ok_or(BackendError::UnknownSlot { slot })
    }

    fn memory(&mut self) -> Memory {
        let adapters: u64 = self.tenants.values().map(|tenant| self.adapter_bytes(&tenant.job)).sum();
        let in_use = 4 * self.head.data().len() as u64 + adapters;
        Memory { in_use, peak: in_use, budget: None }
    }
}

fn at(matrix: &Matrix, row: usize, column: usize) -> f64 {
    f64::from(matrix.data()[row * matrix.columns() + column])
}

fn finite(numbers: &[f64]) -> bool {
    numbers.iter().all(|number| number.is_finite())
}
