//! All adapters of a backend: their parameters and moments in flat tensors, and whose entries are whose.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use alto_kernels::{AdamWGroup, AdamWState, LoraLane, LoraLanes, grouped_adamw};
use burn::tensor::{DType, Device, Tensor};

use super::llama::Lora;
use super::lora_layout::{Module, Place, places};
use super::pending::Loss;
use super::transfer::{Reads, flags, vector, zeros};
use crate::adapter::{Adapter, LoraPair};
use crate::backend::{BackendError, JobState, Moments, Slot};
use crate::job::Job;
use crate::matrix::Matrix;

/// A job that is attached.
#[derive(Debug)]
pub(super) struct Tenant {
    pub(super) slot: Slot,
    pub(super) job: Job,
    /// Optimizer steps done.
    pub(super) step: u64,
    /// The loss of the unfinished optimizer step, if there is one; its gradient lies in the store's accumulator.
    pub(super) unfinished: Option<Loss>,
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
        let empty = || zeros(0, device);
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

    /// The modules that the job targets, in order.
    pub(super) fn targeted(&self, job: &Job) -> impl Iterator<Item = &Module> + Clone {
        self.modules.iter().filter(|module| job.adapter.targets.contains(module.linear.name()))
    }

    /// Adds a tenant with its state, which fits the job and the model.
    pub(super) fn push(&mut self, slot: Slot, job: &Job, state: &JobState) {
        let tensors = self.targeted(job).flat_map(|m| [format!("{}.lora_A", m.path), format!("{}.lora_B", m.path)]);
        let tensors = Arc::new(tensors.collect());
        let last = self.tenants.len();
        self.tenants.push(Tenant { slot, job: job.clone(), step: state.step, unfinished: None, tensors });
        let rank = job.adapter.rank;
        let nothing = |module: &Module| [vec![0.0; rank * module.d_in], vec![0.0; rank * module.d_out]];
        let of_moments = |pick: fn(&Moments) -> &LoraPair| {
            move |module: &Module| state.moments.get(&module.path).map_or_else(|| nothing(module), |m| packed(pick(m)))
        };
        let parameters = |module: &Module| packed(&state.adapter.modules[&module.path]);
        let order: Vec<Option<usize>> = (0..last).map(Some).chain([None]).collect();
        self.rearrange(&order, [&parameters, &of_moments(|m| &m.first), &of_moments(|m| &m.second), &nothing]);
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
                for (factor, width) in [module.d_in, module.d_out].into_iter().enumerate() {
                    let mut kept: Option<Range<usize>> = None;
                    let owned = order.iter().enumerate().filter(|&(tenant, _)| !new.ranks[tenant].is_empty());
                    for was in owned.map(|(_, was)| was) {
                        match was.map(|was| old.spans(module, was)[factor].clone()) {
                            // Who lay side by side still does, so however many stay, they are few pieces.
                            Some(span) if kept.as_ref().is_some_and(|kept| kept.end == span.start) => {
                                kept = kept.map(|kept| kept.start..span.end);
                            }
                            Some(span) => pieces.extend(kept.replace(span).map(|kept| flat.clone().slice([kept]))),
                            None => {
                                pieces.extend(kept.take().map(|kept| flat.clone().slice([kept])));
                                let [a, b] = fresh(module);
                                pieces.push(vector(if factor == 0 { a } else { b }, &self.device, DType::F32));
                            }
                        }
                    }
                    pieces.extend(kept.map(|kept| flat.clone().slice([kept])));
                    let padding = new.total_ranks - new.ranks.last().map_or(0, |ranks| ranks.end);
                    if padding > 0 {
                        pieces.push(zeros(padding * width, &self.device));
                    }
                }
            }
            if pieces.is_empty() { zeros(0, &self.device) } else { Tensor::cat(pieces, 0) }
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
    pub(super) fn adapters<'s>(&'s self, lanes: &[(Range<usize>, usize)], train: bool) -> Vec<Lora> {
        let parameters = &self.state().parameters;
        let view = |span: &Range<usize>, ranks: usize, width: usize| {
            let flat = if span.is_empty() { zeros(0, &self.device) } else { parameters.clone().slice([span.clone()]) };
            let factor = flat.reshape([ranks, width]);
            if train { Tensor::from_inner(factor).require_grad() } else { factor }
        };
        let lanes_of = |place: &Place| {
            let lanes = lanes.iter().filter(|(_, tenant)| !place.ranks[*tenant].is_empty());
            let lanes = lanes.map(|(rows, tenant)| LoraLane {
                rows: rows.clone(),
                ranks: place.ranks[*tenant].clone(),
                scale: self.tenants[*tenant].job.adapter.scale() as f32,
            });
            LoraLanes::new(lanes.collect())
        };
        // Modules that the same tenants target share their lanes, so that a device is told of them once.
        let mut known: Vec<(&Place, LoraLanes)> = Vec::new();
        let mut of_module = |(module, place): (&Module, &'s Place)| {
            let ranks = place.total_ranks;
            let lanes = known.iter().find(|(other, _)| other.ranks == place.ranks).map(|(_, lanes)| lanes.clone());
            let lanes = lanes.unwrap_or_else(|| {
                let lanes = lanes_of(place);
                known.push((place, lanes.clone()));
                lanes
            });
            Lora { a: view(&place.a, ranks, module.d_in), b: view(&place.b, ranks, module.d_out), lanes }
        };
        self.modules.iter().zip(&self.places).map(&mut of_module).collect()
    }

    /// Adds a micro-batch's gradients, of `a` and `b` of each module, in order; they are `scale` times what they stand for.
    pub(super) fn accumulate(&mut self, gradients: Vec<Tensor<1>>, scale: f32) {
        if gradients.is_empty() {
            return;
        }
        let gradient = Tensor::cat(gradients, 0);
        let gradient = if scale == 1.0 { gradient } else { gradient / scale };
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
        let gradient = self.accumulated.take().unwrap_or_else(|| zeros(entries, &self.device));
        let unfinished =
            self.tenants.iter().enumerate().any(|(t, tenant)| tenant.unfinished.is_some() && !finished.contains(&t));
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
    ///
    /// Module by module, so that it launches no more for many tenants than for one.
    fn without(&self, flat: Tensor<1>, tenants: &[usize]) -> Tensor<1> {
        let mut pieces = Vec::new();
        for (module, place) in self.modules.iter().zip(&self.places).filter(|(_, place)| place.total_ranks > 0) {
            let mut theirs = vec![false; place.total_ranks];
            tenants.iter().for_each(|&tenant| theirs[place.ranks[tenant].clone()].fill(true));
            let theirs = flags(theirs, &self.device);
            for (span, width) in [(&place.a, module.d_in), (&place.b, module.d_out)] {
                let shape = [place.total_ranks, width];
                let factor = flat.clone().slice([span.clone()]).reshape(shape);
                pieces.push(factor.mask_fill(theirs.clone().expand(shape), 0.0).reshape([span.len()]));
            }
        }
        if pieces.is_empty() { flat } else { Tensor::cat(pieces, 0) }
    }

    /// Forgets the tenant's unfinished optimizer step.
    pub(super) fn abandon_step(&mut self, tenant: usize) {
        self.tenants[tenant].unfinished = None;
        self.accumulated = self.accumulated.take().map(|gradient| self.without(gradient, &[tenant]));
    }

    /// The tenant's adapter, moments and step, read from the device at once.
    pub(super) fn job_state(&self, tenant: usize, reads: &Reads) -> Result<JobState, BackendError> {
        let AdamWState { parameters, first, second } = self.state();
        let Tenant { job, step, .. } = &self.tenants[tenant];
        let flats: &[_] = if *step == 0 { &[parameters] } else { &[parameters, first, second] };
        let mut factors = self.factors(tenant, flats, reads)?.into_iter();
        let modules = factors.next().expect("of the parameters, which were asked for");
        let moments = match (factors.next(), factors.next()) {
            (Some(first), Some(second)) => {
                let pairs = first.into_iter().zip(second);
                pairs.map(|((path, first), (_, second))| (path, Moments { first, second })).collect()
            }
            _ => BTreeMap::new(),
        };
        Ok(JobState { adapter: Adapter { config: job.adapter.clone(), modules }, moments, step: *step })
    }

    /// The gradient that the tenant has accumulated in its unfinished optimizer step, read from the device; zero if none.
    pub(super) fn gradient(&self, tenant: usize, reads: &Reads) -> Result<BTreeMap<String, LoraPair>, BackendError> {
        let [entries] = self.state().parameters.dims();
        let gradient = self.accumulated.clone().unwrap_or_else(|| zeros(entries, &self.device));
        Ok(self.factors(tenant, &[&gradient], reads)?.remove(0))
    }

    /// The tenant's part of each of these flat tensors, by module path, in one read.
    fn factors(
        &self,
        tenant: usize,
        flats: &[&Tensor<1>],
        reads: &Reads,
    ) -> Result<Vec<BTreeMap<String, LoraPair>>, BackendError> {
        let spans = self.spans(tenant);
        let slices = flats.iter().flat_map(|&flat| spans.iter().map(|span| flat.clone().slice([span.clone()])));
        let numbers = reads.read(slices.collect())?;
        let mut rest = numbers.as_slice();
        let mut take = |rows: usize, columns: usize| {
            let (own, behind) = rest.split_at(rows * columns);
            rest = behind;
            Matrix::new(rows, columns, own.to_vec())
        };
        let mut all = Vec::new();
        for _ in flats {
            let placed =
                self.modules.iter().zip(&self.places).map(|(module, place)| (module, place.ranks[tenant].len()));
            let pairs = placed.filter(|&(_, rank)| rank > 0).map(|(module, rank)| {
                let (a, b) = (take(rank, module.d_in), take(rank, module.d_out).transposed());
                (module.path.clone(), LoraPair { a, b })
            });
            all.push(pairs.collect());
        }
        Ok(all)
    }

    /// Bytes of parameters, moments and gradients, rows that are nobody's included.
    pub(super) fn bytes(&self) -> u64 {
        let [entries] = self.state().parameters.dims();
        16 * entries as u64
    }

    /// What a job's adapter adds to [`bytes`](Self::bytes), but for the padding, which all jobs share.
    pub(super) fn adapter_bytes(&self, job: &Job) -> u64 {
        let entries: usize = self.targeted(job).map(|module| job.adapter.rank * (module.d_in + module.d_out)).sum();
        16 * entries as u64
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
