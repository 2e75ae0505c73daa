//! All adapters of a backend: their parameters and moments in flat tensors, and whose entries are whose.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use alto_kernels::{AdamWGroup, AdamWState, LoraLane, grouped_adamw};
use burn::tensor::{Device, Tensor};

use super::llama::{Lora, vector};
use super::lora_layout::{Module, Place, places};
use super::pending::{LossPart, read};
use crate::adapter::{Adapter, LoraPair};
use crate::backend::{BackendError, JobState, Moments, Slot};
use crate::job::{AdapterConfig, Job};
use crate::matrix::Matrix;

/// A job that is attached.
#[derive(Debug)]
pub(super) struct Tenant {
    pub(super) slot: Slot,
    pub(super) job: Job,
    /// Optimizer steps done.
    pub(super) step: u64,
    /// The loss of the unfinished optimizer step; its gradient lies in the store's accumulator.
    pub(super) unfinished: Vec<LossPart>,
    /// Names of its tensors, in the order of its spans.
    pub(super) tensors: Arc<Vec<String>>,
}

/// Entries of one tenant's factors of one module, on the host: `a` and packed `b`.
type HostFactors = [Vec<f32>; 2];

/// Parameters, moments and accumulated gradients of all tenants.
#[derive(Debug)]
pub(super) struct Store {
    device: Device,
    modules: Vec<Module>,
    pub(super) tenants: Vec<Tenant>,
    places: Vec<Place>,
    /// `None` only while the optimizer has it.
    state: Option<AdamWState>,
    /// Gradients of unfinished optimizer steps; zero for every other tenant.
    accumulated: Option<Tensor<1>>,
}

impl Store {
    pub(super) fn new(modules: Vec<Module>, device: &Device) -> Self {
        let empty = || vector(Vec::new(), device);
        let state = AdamWState { parameters: empty(), first: empty(), second: empty() };
        let places = modules.iter().map(|_| Place::default()).collect();
        Self { device: device.clone(), modules, tenants: Vec::new(), places, state: Some(state), accumulated: None }
    }

    /// The tenant with this slot.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn find(&self, slot: Slot) -> Result<usize, BackendError> {
        self.tenants.iter().position(|t| t.slot == slot).ok_or(BackendError::UnknownSlot { slot })
    }

    fn state(&self) -> &AdamWState {
        self.state.as_ref().expect("back from the optimizer")
    }

    fn targeted(&self, job: &Job) -> impl Iterator<Item = &Module> {
        self.modules.iter().filter(|module| job.adapter.targets.contains(module.linear.name()))
    }

    /// Adds a tenant with its state, which fits the job and the model.
    pub(super) fn push(&mut self, slot: Slot, job: &Job, state: &JobState) {
        let tensors = self.targeted(job).flat_map(|m| [format!("{}.lora_A", m.path), format!("{}.lora_B", m.path)]);
        let tensors = Arc::new(tensors.collect());
        let last = self.tenants.len();
        self.tenants.push(Tenant { slot, job: job.clone(), step: state.step, unfinished: Vec::new(), tensors });
        let rank = job.adapter.rank;
        let zeros = |module: &Module| [vec![0.0; rank * module.d_in], vec![0.0; rank * module.d_out]];
        let of_moments = |pick: fn(&Moments) -> &LoraPair| {
            move |module: &Module| state.moments.get(&module.path).map_or_else(|| zeros(module), |m| packed(pick(m)))
        };
        let parameters = |module: &Module| packed(&state.adapter.modules[&module.path]);
        let order: Vec<Option<usize>> = (0..last).map(Some).chain([None]).collect();
        self.rearrange(&order, [&parameters, &of_moments(|m| &m.first), &of_moments(|m| &m.second), &zeros]);
    }

    /// Takes a tenant out; its entries are gone.
    pub(super) fn remove(&mut self, tenant: usize) -> Tenant {
        let order: Vec<Option<usize>> = (0..self.tenants.len()).filter(|&t| t != tenant).map(Some).collect();
        let removed = self.tenants.remove(tenant);
        let never = |_: &Module| unreachable!("no tenant is new");
        self.rearrange(&order, [&never; 4]);
        removed
    }

    /// Lays all flat tensors out anew: `order` tells where each tenant was, or that it is new and given by `fresh`
    /// (parameters, both moments, accumulated gradient).
    fn rearrange(&mut self, order: &[Option<usize>], fresh: [&dyn Fn(&Module) -> HostFactors; 4]) {
        let old = std::mem::take(&mut self.places);
        self.places = places(&self.modules, self.tenants.iter().map(|tenant| &tenant.job.adapter));
        let AdamWState { parameters, first, second } = self.state.take().expect("back from the optimizer");
        let gather = |flat: Tensor<1>, fresh: &dyn Fn(&Module) -> HostFactors| {
            let mut pieces = Vec::new();
            for ((module, old), new) in self.modules.iter().zip(&old).zip(&self.places) {
                for factor in 0..2 {
                    for (tenant, was) in order.iter().enumerate().filter(|&(t, _)| !new.ranks[t].is_empty()) {
                        pieces.push(match was {
                            Some(was) => flat.clone().slice([old.spans(module, *was)[factor].clone()]),
                            None => vector(fresh(module)[factor].clone(), &self.device),
                        });
                        debug_assert_eq!(
                            pieces.last().map(|p| p.dims()[0]),
                            Some(new.spans(module, tenant)[factor].len())
                        );
                    }
                }
            }
            if pieces.is_empty() { vector(Vec::new(), &self.device) } else { Tensor::cat(pieces, 0) }
        };
        let [of_parameters, of_first, of_second, of_gradient] = fresh;
        self.state = Some(AdamWState {
            parameters: gather(parameters, of_parameters),
            first: gather(first, of_first),
            second: gather(second, of_second),
        });
        self.accumulated = self.accumulated.take().map(|gradient| gather(gradient, of_gradient));
    }

    /// The adapters of every module for lanes of these tokens and tenants, as leaves of a graph if `train`.
    pub(super) fn adapters(&self, lanes: &[(Range<usize>, usize)], train: bool) -> Vec<Lora> {
        let parameters = &self.state().parameters;
        let view = |span: &Range<usize>, ranks: usize, width: usize| {
            let flat = if span.is_empty() {
                vector(Vec::new(), &self.device)
            } else {
                parameters.clone().slice([span.clone()])
            };
            let factor = flat.reshape([ranks, width]);
            if train { Tensor::from_inner(factor).require_grad() } else { factor }
        };
        let of_module = |(module, place): (&Module, &Place)| {
            let ranks = place.total_ranks();
            let lanes = lanes.iter().filter(|(_, tenant)| !place.ranks[*tenant].is_empty());
            let lanes = lanes.map(|(rows, tenant)| LoraLane {
                rows: rows.clone(),
                ranks: place.ranks[*tenant].clone(),
                scale: self.tenants[*tenant].job.adapter.scale() as f32,
            });
            Lora {
                a: view(&place.a, ranks, module.d_in),
                b: view(&place.b, ranks, module.d_out),
                lanes: lanes.collect(),
            }
        };
        self.modules.iter().zip(&self.places).map(of_module).collect()
    }

    /// Adds a micro-batch's gradients: of `a` and `b` of each module, in order.
    pub(super) fn accumulate(&mut self, gradients: Vec<Tensor<1>>) {
        if gradients.is_empty() {
            return;
        }
        let gradient = Tensor::cat(gradients, 0);
        self.accumulated = Some(match self.accumulated.take() {
            Some(before) => before + gradient,
            None => gradient,
        });
    }

    /// An optimizer step of these tenants, from what they accumulated; their accumulators are zero then.
    ///
    /// Returns the optimizer's report, a row for each.
    pub(super) fn update(&mut self, finished: &[usize]) -> Tensor<2> {
        let groups: Vec<AdamWGroup> = finished.iter().map(|&tenant| self.group(tenant)).collect();
        let [entries] = self.state().parameters.dims();
        let gradient = self.accumulated.take().unwrap_or_else(|| Tensor::zeros([entries], &self.device));
        let unfinished =
            self.tenants.iter().enumerate().any(|(t, tenant)| !tenant.unfinished.is_empty() && !finished.contains(&t));
        if unfinished {
            self.accumulated = Some(self.without(gradient.clone(), finished));
        }
        let (state, report) = grouped_adamw(self.state.take().expect("back from the optimizer"), gradient, &groups);
        self.state = Some(state);
        for &tenant in finished {
            self.tenants[tenant].step += 1;
        }
        report
    }

    fn group(&self, tenant: usize) -> AdamWGroup {
        let Tenant { job, step, .. } = &self.tenants[tenant];
        AdamWGroup {
            spans: self.spans(tenant),
            learning_rate: job.learning_rate(*step),
            weight_decay: job.optimizer.weight_decay,
            betas: job.optimizer.betas,
            epsilon: job.optimizer.epsilon,
            clip: job.optimizer.clip,
            step: step + 1,
        }
    }

    /// A tenant's entries, module by module: `a`, then `b`.
    fn spans(&self, tenant: usize) -> Vec<Range<usize>> {
        let placed = self.modules.iter().zip(&self.places).filter(|(_, place)| !place.ranks[tenant].is_empty());
        placed.flat_map(|(module, place)| place.spans(module, tenant)).collect()
    }

    /// A flat tensor with zeros in place of these tenants' entries, whatever they were.
    fn without(&self, flat: Tensor<1>, tenants: &[usize]) -> Tensor<1> {
        tenants.iter().flat_map(|&tenant| self.spans(tenant)).fold(flat, |flat, span| {
            let zeros = Tensor::zeros([span.len()], &self.device);
            flat.slice_assign([span], zeros)
        })
    }

    /// Forgets the tenant's unfinished optimizer step.
    pub(super) fn abandon_step(&mut self, tenant: usize) {
        self.tenants[tenant].unfinished.clear();
        self.accumulated = self.accumulated.take().map(|gradient| self.without(gradient, &[tenant]));
    }

    /// The tenant's adapter, moments and step, read from the device.
    pub(super) fn job_state(&self, tenant: usize) -> Result<JobState, BackendError> {
        let AdamWState { parameters, first, second } = self.state();
        let modules = self.factors(tenant, parameters)?;
        let moments = if self.tenants[tenant].step == 0 {
            BTreeMap::new()
        } else {
            let second = self.factors(tenant, second)?;
            let pairs = self.factors(tenant, first)?.into_iter().zip(second);
            pairs.map(|((path, first), (_, second))| (path, Moments { first, second })).collect()
        };
        let Tenant { job, step, .. } = &self.tenants[tenant];
        Ok(JobState { adapter: Adapter { config: job.adapter.clone(), modules }, moments, step: *step })
    }

    /// The gradient that the tenant has accumulated in its unfinished optimizer step, read from the device.
    pub(super) fn gradient(&self, tenant: usize) -> Result<Option<BTreeMap<String, LoraPair>>, BackendError> {
        self.accumulated.as_ref().map(|gradient| self.factors(tenant, gradient)).transpose()
    }

    /// The tenant's part of a flat tensor, by module path.
    fn factors(&self, tenant: usize, flat: &Tensor<1>) -> Result<BTreeMap<String, LoraPair>, BackendError> {
        let mut factors = BTreeMap::new();
        for (module, place) in
            self.modules.iter().zip(&self.places).filter(|(_, place)| !place.ranks[tenant].is_empty())
        {
            let [a, b] = place.spans(module, tenant);
            let rank = place.ranks[tenant].len();
            let pair = LoraPair {
                a: Matrix::new(rank, module.d_in, read(&flat.clone().slice([a]))?),
                b: Matrix::new(rank, module.d_out, read(&flat.clone().slice([b]))?).transposed(),
            };
            factors.insert(module.path.clone(), pair);
        }
        Ok(factors)
    }

    /// Bytes of parameters, moments and gradients.
    pub(super) fn bytes(&self) -> u64 {
        let [entries] = self.state().parameters.dims();
        16 * entries as u64
    }

    /// What a job's adapter adds to [`bytes`](Self::bytes).
    pub(super) fn adapter_bytes(&self, job: &Job) -> u64 {
        let entries: usize = self.targeted(job).map(|module| job.adapter.rank * (module.d_in + module.d_out)).sum();
        16 * entries as u64
    }

    /// Checks that a state is the job's and fits the model.
    ///
    /// # Errors
    /// Names the module and what was expected of it.
    pub(super) fn check_state(&self, job: &Job, state: &JobState) -> Result<(), BackendError> {
        let mismatch = |module: &str, found: String, expected: String| {
            Err(BackendError::StateMismatch { job: job.name.clone(), module: module.into(), found, expected })
        };
        let [found, expected] = [&state.adapter.config, &job.adapter].map(AdapterConfig::scale);
        if (found - expected).abs() > 1e-6 * expected.abs() {
            // The same factors would mean another adapter.
            return mismatch("the adapter", format!("the scale {found}"), format!("the scale {expected}"));
        }
        let rank = job.adapter.rank;
        let shapes = |pair: &LoraPair| {
            let [a, b] = [&pair.a, &pair.b].map(|m| (m.rows(), m.columns()));
            format!("factors of {} x {} and {} x {}", a.0, a.1, b.0, b.1)
        };
        for module in self.targeted(job) {
            let expected = format!("factors of {rank} x {} and {} x {rank}", module.d_in, module.d_out);
            let pair = state.adapter.modules.get(&module.path);
            let moments = state.moments.get(&module.path);
            let found = [pair, moments.map(|m| &m.first), moments.map(|m| &m.second)];
            if pair.is_none() || (moments.is_none() && !state.moments.is_empty()) {
                return mismatch(&module.path, "nothing".into(), expected);
            }
            if let Some(found) = found.into_iter().flatten().map(shapes).find(|found| *found != expected) {
                return mismatch(&module.path, found, expected);
            }
        }
        let known: Vec<&str> = self.targeted(job).map(|module| module.path.as_str()).collect();
        let factors = state.adapter.modules.keys().map(|path| ("factors", path));
        let moments = state.moments.keys().map(|path| ("moments", path));
        match factors.chain(moments).find(|(_, path)| !known.contains(&path.as_str())) {
            Some((found, path)) => mismatch(path, found.into(), "nothing, the job doesn't target it".into()),
            None => Ok(()),
        }
    }

    /// The paths and shapes `[d_out, d_in]` of all modules, in order.
    pub(super) fn shapes(&self) -> impl Iterator<Item = (&str, &str, [usize; 2])> {
        self.modules.iter().map(|m| (m.path.as_str(), m.linear.name(), [m.d_out, m.d_in]))
    }
}

/// A pair as it is packed: `b` transposed.
fn packed(pair: &LoraPair) -> HostFactors {
    [pair.a.data().to_vec(), pair.b.transposed().into_data()]
}
