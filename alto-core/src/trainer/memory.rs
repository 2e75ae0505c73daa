//! What fits into memory together, by a model that is measured before training.

use std::cmp::Reverse;
use std::fmt;
use std::time::Instant;

use alto_exit::Rungs;
use alto_sched::{Load, MemoryModel, MemorySample, Need, Room, backfill};
use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::error::TrainError;
use super::train::Trainer;
use crate::backend::{Backend, BackendError};
use crate::batch::{Batch, Example, Lane, Objective};
use crate::data::Dataset;
use crate::job::Job;

/// What decides which jobs fit into memory together. Without a budget of the backend's everything fits.
///
/// The budget covers what a step takes and what jobs keep on the host: each one's best adapter, and the state of each
/// that has a rung while it waits. All of these are set aside before training starts, as if every job held its own at
/// once: a quarter of a job's [`adapter_bytes`](Backend::adapter_bytes), or all of them if it has a rung. That is more
/// than a run comes to, and more than a device with a memory of its own is short of. The copies made while a job joins
/// or leaves are not covered.
///
/// Of jobs that a search is yet to propose, each is taken to keep as much as the first one that keeps the most; what a
/// proposed one keeps above that is set aside when it comes, and one that never fits is refused. An audit has exited jobs
/// keep their states, too.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Admission {
    /// A model that is fitted to a few steps of a job that is thrown away, before training.
    #[default]
    Measured,
    /// A model from an earlier run, so that this one decides alike.
    Known(MemoryModel),
    /// Nothing: only the number of slots counts, not the budget.
    Unlimited,
}

/// How much memory a step takes, as measured before training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryProfile {
    /// Predicts what fits; give it to [`Admission::Known`] for the same choices again.
    pub model: MemoryModel,
    /// What it is fitted to.
    pub samples: Vec<MemorySample>,
    /// Bytes that may be used.
    pub budget: u64,
    /// Of these, bytes set aside for what jobs keep on the host; see [`Admission`].
    pub kept: u64,
    /// How long it took.
    pub seconds: f64,
}

impl fmt::Display for MemoryProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.model.coefficients();
        write!(
            f,
            "a step takes {:.0} bytes, {:.0} more for each token and what the adapters have, give or take {:.0}; the \
             budget is {}, of which {} are set aside for what jobs keep on the host; measured in {:.1} s",
            numbers.fixed, numbers.per_token, numbers.margin, self.budget, self.kept, self.seconds
        )
    }
}

/// What each job needs, and what there is.
#[derive(Debug)]
pub(super) struct Memory {
    model: MemoryModel,
    room: Room,
    /// By job.
    needs: Vec<Need>,
    /// Bytes set aside for what jobs keep on the host.
    kept: u64,
    /// Of these, for each job that may yet come.
    kept_each: u64,
    /// Whether every job's state may be kept, whatever its rungs.
    audited: bool,
    /// Samples of each job that are looked at to find its largest micro-batch; `None` where nobody asks for it.
    walked: Option<u64>,
    /// The measurement, if there was one.
    pub(super) profile: Option<MemoryProfile>,
}

impl Memory {
    /// Measures if it must, and checks that every job fits when it is alone. So many more jobs may come.
    pub(super) fn prepare(
        trainer: &Trainer,
        backend: &mut dyn Backend,
        train: &Dataset,
        candidates: &[Candidate],
        more: usize,
        rungs: &Rungs,
    ) -> Result<Self, TrainError> {
        let audited = trainer.audit > 0.0;
        let walked = MOST_WALKED / (candidates.len() + more) as u64;
        let budget = backend.memory().budget.filter(|_| trainer.admission != Admission::Unlimited);
        // Whoever has no budget to keep need not look through the data.
        let walked = budget.map(|_| walked);
        let needs: Vec<Need> =
            candidates.iter().map(|Candidate { job, .. }| need(job, train, backend, walked)).collect();
        let each = |(job, need): (usize, &Need)| kept(need, audited || rungs.has_any(job));
        let kept_each = needs.iter().enumerate().map(each).max().unwrap_or(0);
        let kept = needs.iter().enumerate().map(each).fold(0, u64::saturating_add);
        let kept = kept.saturating_add(kept_each.saturating_mul(more as u64));
        let each_fits = |model: &MemoryModel| {
            for (need, Candidate { job, .. }) in needs.iter().zip(candidates) {
                let (needed, tokens) = (model.reserve(&need.load), need.load.tokens);
                if let Some(budget) = budget.filter(|&budget| needed.saturating_add(kept) > budget) {
                    return Err(TrainError::NeverFits { job: job.name.clone(), needed, tokens, kept, budget });
                }
            }
            Ok(())
        };
        // The adapters' own bytes are known before anything is measured.
        each_fits(&MemoryModel::default())?;
        let (model, profile) = match (trainer.admission, budget) {
            (Admission::Measured, Some(budget)) => {
                let profile = measure(backend, train, candidates, &needs, (budget, kept))?;
                (profile.model, Some(profile))
            }
            (Admission::Known(model), _) => (model, None),
            (Admission::Measured | Admission::Unlimited, _) => (MemoryModel::default(), None),
        };
        each_fits(&model)?;
        let room = Room { budget: budget.map(|budget| budget - kept), slots: trainer.slots };
        Ok(Self { model, room, needs, kept, kept_each, audited, walked, profile })
    }

    /// One more job, whose index is the next, if it fits when it is alone.
    pub(super) fn add(
        &mut self,
        job: &Job,
        train: &Dataset,
        backend: &dyn Backend,
        waits: bool,
    ) -> Result<(), TrainError> {
        let need = need(job, train, backend, self.walked);
        if let Some(budget) = self.room.budget {
            let above = kept(&need, self.audited || waits).saturating_sub(self.kept_each);
            // Whoever came before must still fit beside what is set aside for this one.
            let before = self.needs.iter().map(|need| self.model.reserve(&need.load)).max().unwrap_or(0);
            let (needed, tokens) = (self.model.reserve(&need.load).max(before), need.load.tokens);
            if needed.saturating_add(above) > budget {
                let (kept, budget) = (self.kept.saturating_add(above), budget + self.kept);
                return Err(TrainError::NeverFits { job: job.name.clone(), needed, tokens, kept, budget });
            }
            self.kept += above;
            self.room.budget = Some(budget - above);
        }
        self.needs.push(need);
        Ok(())
    }

    /// Whether the number of places allows for one more job beside so many.
    pub(super) fn has_slot(&self, residents: usize) -> bool {
        self.room.slots.is_none_or(|slots| residents < slots)
    }

    /// Which of the waiting jobs get a place beside the residents, when jobs of the freed batch sizes just left.
    pub(super) fn admit(&self, residents: &[usize], waiting: &[usize], freed: &[usize]) -> Vec<usize> {
        let needs = |jobs: &[usize]| -> Vec<Need> { jobs.iter().map(|&job| self.needs[job]).collect() };
        let picked = backfill(&self.model, &needs(residents), &needs(waiting), freed, &self.room);
        picked.expect("every job was found to fit alone").into_iter().map(|place| waiting[place]).collect()
    }

    /// Whether so many tokens fit beside these jobs' adapters.
    pub(super) fn fits(&self, residents: &[usize], tokens: u64) -> bool {
        let adapter_bytes = residents.iter().map(|&job| self.needs[job].load.adapter_bytes).sum();
        let load = Load { adapter_bytes, tokens, squared_tokens: 0 };
        self.room.budget.is_none_or(|budget| self.model.reserve(&load) <= budget)
    }
}

/// What a job needs in a step. So many samples of it are looked at; without a number its tokens aren't counted.
fn need(job: &Job, train: &Dataset, backend: &dyn Backend, walked: Option<u64>) -> Need {
    let tokens = walked.map_or(0, |walked| most_tokens(job, train, walked));
    Need { load: Load { adapter_bytes: backend.adapter_bytes(job), tokens, squared_tokens: 0 }, batch: job.batch }
}

/// Bytes that a job may keep on the host: its best adapter, and its weights and two moments while it waits.
///
/// Attached it has gradients too, of the same size as each of these.
fn kept(need: &Need, waits: bool) -> u64 {
    if waits { need.load.adapter_bytes } else { need.load.adapter_bytes / 4 }
}

/// Samples that are looked at, over all jobs, to find each one's largest micro-batch.
const MOST_WALKED: u64 = 10_000_000;

/// The most tokens that one of the job's micro-batches has; no fewer at any rate, if it has more than `walked` samples.
fn most_tokens(job: &Job, train: &Dataset, walked: u64) -> u64 {
    if job.samples(job.steps) > walked {
        let longest = train.examples().iter().map(|row| row.tokens.len() as u64).max().unwrap_or(0);
        return longest.saturating_mul(job.batch as u64);
    }
    let micros = (0..job.steps).flat_map(|step| (0..job.accumulation).map(move |micro| (step, micro)));
    micros.map(|(step, micro)| tokens(&train.micro_batch(job, step, micro))).max().unwrap_or(0)
}

fn tokens(rows: &[&Example]) -> u64 {
    rows.iter().map(|row| row.tokens.len() as u64).sum()
}

/// Fits a model to single steps of growing batches: one row, short to long, then up to as many as a micro-batch has,
/// as far as the budget goes.
fn measure(
    backend: &mut dyn Backend,
    train: &Dataset,
    candidates: &[Candidate],
    needs: &[Need],
    (budget, kept): (u64, u64),
) -> Result<MemoryProfile, TrainError> {
    let started = Instant::now();
    // The smallest adapter, so that the profile itself fits wherever a job does.
    let smallest = (0..needs.len()).min_by_key(|&job| needs[job].load.adapter_bytes).unwrap_or(0);
    let job = &candidates[smallest].job;
    let most = needs.iter().map(|need| need.batch).max().unwrap_or(1);
    let batches = growing_batches(train, most);
    // What the first step of all sets up once is not measured.
    peak(backend, job, &batches[0])?;
    let mut samples: Vec<MemorySample> = vec![];
    for rows in batches {
        let load = Load { tokens: tokens(&rows), ..needs[smallest].load };
        if MemoryModel::fit(&samples, false).is_ok_and(|model| model.reserve(&load) > budget) {
            break;
        }
        samples.push(MemorySample { load, peak: peak(backend, job, &rows)? });
    }
    let model = MemoryModel::fit(&samples, false).map_err(|source| TrainError::Profile { source })?;
    Ok(MemoryProfile { model, samples, budget, kept, seconds: started.elapsed().as_secs_f64() })
}

/// The shortest row, the median, the longest, then 2, 4, 8, ... of the longest, up to `most`.
///
/// Two at least: rows of one length, one at a time, wouldn't tell a token's bytes from the fixed ones.
fn growing_batches(train: &Dataset, most: usize) -> Vec<Vec<&Example>> {
    let mut rows: Vec<&Example> = train.examples().iter().collect();
    rows.sort_by_key(|row| Reverse(row.tokens.len()));
    let singles = [rows.len() - 1, rows.len() / 2, 0].map(|at| vec![rows[at]]);
    let most = most.max(2);
    let counts = std::iter::successors(Some(2), |&count| (count < most).then(|| most.min(2 * count)));
    let several = counts.map(|count| rows.iter().copied().cycle().take(count).collect());
    singles.into_iter().chain(several).collect()
}

/// The most bytes in use during one step of a job that is thrown away.
fn peak(backend: &mut dyn Backend, job: &Job, rows: &[&Example]) -> Result<u64, BackendError> {
    let slot = backend.attach(job, None)?;
    backend.memory();
    let mut batch = Batch::default();
    let divisor = rows.iter().map(|row| row.labelled()).sum::<usize>() as f64;
    let objective = Objective::NegativeLogLikelihood;
    batch.push(Lane { slot: Some(slot), rows: rows.len(), objective, divisor, last: true }, rows.iter().copied());
    let stepped = backend.step(&batch).and_then(|()| backend.read());
    let peak = backend.memory().peak;
    let detached = backend.detach(slot);
    stepped?;
    detached?;
    Ok(peak)
}
