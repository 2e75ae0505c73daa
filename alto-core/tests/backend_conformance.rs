//! The conformance suite passes the simulated backend, and catches each way of breaking it.

mod recorded;

use std::collections::{BTreeMap, BTreeSet};

use alto_core::backend::{Backend, BackendError, Evaluation, JobState, Memory, Slot, StepReport};
use alto_core::batch::Batch;
use alto_core::job::Job;
use alto_core::simulated::SimulatedBackend;
use alto_core::testing::{ConformanceError, backend_conformance};

use recorded::{backend, examples, job, runs};

/// Four jobs that differ in rank, learning rate, accumulation and budget.
fn jobs() -> Vec<Job> {
    let runs = runs();
    let mut jobs: Vec<Job> = [0, 3, 7, 10].map(|i| job(&runs[i].0, &runs[i].1)).into();
    jobs[1].accumulation = 3;
    jobs[1].batch = 1;
    jobs[2].steps = 7;
    jobs[3].accumulation = 2;
    jobs[3].accumulation_mode = alto_core::job::AccumulationMode::MeanOfMeans;
    jobs
}

fn verdict(fault: Fault) -> Result<(), ConformanceError> {
    let mut make = || -> Box<dyn Backend> { Box::new(Broken::new(fault)) };
    backend_conformance(&mut make, &jobs(), &examples(), 0.0)
}

#[test]
fn the_simulated_backend_conforms_exactly() {
    let mut make = || -> Box<dyn Backend> { Box::new(backend()) };
    backend_conformance(&mut make, &jobs(), &examples(), 0.0).unwrap();
    // The wrapper below breaks nothing of its own.
    verdict(Fault::None).unwrap();
}

#[test]
fn every_way_of_breaking_it_is_caught_by_the_check_that_is_there_for_it() {
    let faults = [
        (Fault::IgnoresUnknownSlots, "an unknown slot is refused"),
        (Fault::TakesAnyJob, "a job that can't be is refused"),
        (Fault::TakesAnyState, "another job's state is refused"),
        (Fault::TakesAnyDivisor, "a batch that contradicts itself is refused"),
        (Fault::ComputesBeforeRefusing, "a batch that contradicts itself is refused"),
        (Fault::ReusesSlots, "no slot is handed out twice"),
        (Fault::StartsAtRandom, "a job without a state starts as its seed says"),
        (Fault::RepeatsReports, "every step is reported once"),
        (Fault::LosesReports, "every step is reported once"),
        (Fault::ReportsNextLearningRate, "every step is reported once"),
        (Fault::IgnoresLast, "every step is reported once"),
        (Fault::ForgetsReportsAtDetaching, "unread reports survive detaching"),
        (Fault::UpdatesBeforeLast, "a lane is left alone until its last micro-batch"),
        (Fault::DropsAccumulated, "micro-batches add up to the whole"),
        (Fault::TrainsEmptyLanes, "a lane without rows changes nothing"),
        (Fault::SkipsEmptyLast, "an empty last micro-batch ends the step"),
        (Fault::CountsAllTokens, "evaluation counts labelled tokens"),
        (Fault::EvaluationChangesAdapter, "evaluation doesn't train"),
        (Fault::SnapshotDropsGradients, "a snapshot doesn't disturb"),
        (Fault::ReportsNoPeak, "memory is accounted for"),
        (Fault::ForgetsStepAtDetaching, "a job goes on where it was"),
        (Fault::MixesLanes, "a job among others is as if alone"),
        (Fault::LeavesGradientsBehind, "a job inherits nothing from former tenants"),
    ];
    for (fault, check) in faults {
        let error = verdict(fault).expect_err("a broken backend").to_string();
        assert!(error.starts_with(&format!("{check}: ")), "{fault:?} was caught otherwise: {error}");
    }
}

#[test]
fn a_difference_within_the_tolerance_passes() {
    let conforms = |tolerance| {
        let mut make = || -> Box<dyn Backend> { Box::new(Broken::new(Fault::MixesLanesALittle)) };
        backend_conformance(&mut make, &jobs(), &examples(), tolerance)
    };
    conforms(1e-5).unwrap();
    let error = conforms(1e-7).unwrap_err();
    assert!(matches!(error, ConformanceError::Differs { what: "the loss", tolerance: 1e-7, .. }), "{error}");
}

#[test]
fn too_little_to_check_with_is_an_error() {
    let lacks = |jobs: &[Job], examples: &[alto_core::batch::Example]| {
        let mut make = || -> Box<dyn Backend> { Box::new(backend()) };
        backend_conformance(&mut make, jobs, examples, 0.0).expect_err("too little to check with").to_string()
    };
    assert_eq!(lacks(&jobs()[..1], &examples()), "the suite was given 1 jobs, expected at least 2");
    assert_eq!(lacks(&jobs(), &[]), "the suite was given 0 examples, expected at least 1");
    let mut short = jobs();
    short[2].steps = 5;
    let error = lacks(&short, &examples());
    assert_eq!(error, "the suite was given 5 steps in the budget of a job, expected at least 6");
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    IgnoresUnknownSlots,
    TakesAnyJob,
    TakesAnyState,
    TakesAnyDivisor,
    ComputesBeforeRefusing,
    ReusesSlots,
    StartsAtRandom,
    RepeatsReports,
    LosesReports,
    ReportsNextLearningRate,
    IgnoresLast,
    ForgetsReportsAtDetaching,
    UpdatesBeforeLast,
    DropsAccumulated,
    TrainsEmptyLanes,
    SkipsEmptyLast,
    CountsAllTokens,
    EvaluationChangesAdapter,
    SnapshotDropsGradients,
    ReportsNoPeak,
    ForgetsStepAtDetaching,
    MixesLanes,
    MixesLanesALittle,
    LeavesGradientsBehind,
}

/// A simulated backend with one fault.
#[derive(Debug)]
struct Broken {
    inner: SimulatedBackend,
    fault: Fault,
    /// The inner slot of each one handed out.
    slots: BTreeMap<Slot, Slot>,
    unread: Vec<StepReport>,
    /// Micro-batches done of each unfinished step.
    unfinished: BTreeMap<Slot, u32>,
    /// Slots whose next losses are wrong.
    wrong: BTreeSet<Slot>,
    jobs: BTreeMap<Slot, Job>,
    attached: u64,
    evaluations: u32,
    left_gradients: bool,
}

impl Broken {
    fn new(fault: Fault) -> Self {
        Self {
            inner: backend(),
            fault,
            slots: BTreeMap::new(),
            unread: Vec::new(),
            unfinished: BTreeMap::new(),
            wrong: BTreeSet::new(),
            jobs: BTreeMap::new(),
            attached: 0,
            evaluations: 0,
            left_gradients: false,
        }
    }

    fn inner_slot(&self, slot: Slot) -> Result<Slot, BackendError> {
        self.slots.get(&slot).copied().ok_or(BackendError::UnknownSlot { slot })
    }

    fn inner_batch(&self, batch: &Batch) -> Result<Batch, BackendError> {
        let mut batch = batch.clone();
        for lane in &mut batch.lanes {
            lane.slot = lane.slot.map(|slot| self.inner_slot(slot)).transpose()?;
        }
        Ok(batch)
    }

    fn distorted(&self, report: StepReport, inner: &Batch) -> StepReport {
        let outer = self.slots.iter().find(|(_, slot)| **slot == report.slot);
        let slot = *outer.expect("only attached jobs make steps").0;
        let lanes = inner.lanes.iter().filter(|lane| lane.rows > 0).count().max(1) as f64;
        let micros = f64::from(self.unfinished.get(&slot).copied().unwrap_or(0) + 1);
        let factor = match self.fault {
            Fault::DropsAccumulated => 1.0 / micros,
            Fault::MixesLanes => lanes,
            Fault::MixesLanesALittle => 1.0 + 1e-6 * lanes,
            Fault::SnapshotDropsGradients if self.wrong.contains(&slot) => 0.5,
            Fault::LeavesGradientsBehind if self.wrong.contains(&slot) => 1.1,
            _ => 1.0,
        };
        let learning_rate = match self.fault {
            Fault::ReportsNextLearningRate => self.jobs[&slot].learning_rate(report.step),
            _ => report.learning_rate,
        };
        StepReport { slot, loss: report.loss * factor, learning_rate, ..report }
    }

    fn distort(&self, slot: Slot, state: &mut JobState) {
        let change = match self.fault {
            Fault::UpdatesBeforeLast => self.unfinished.get(&slot).copied().unwrap_or(0) as f32,
            Fault::EvaluationChangesAdapter => self.evaluations as f32,
            _ => 0.0,
        };
        for pair in state.adapter.modules.values_mut() {
            pair.a.data_mut().iter_mut().for_each(|a| *a += change);
        }
    }
}

impl Backend for Broken {
    fn check(&self, job: &Job) -> Result<(), BackendError> {
        if self.fault == Fault::TakesAnyJob { Ok(()) } else { self.inner.check(job) }
    }

    fn adapter_bytes(&self, job: &Job) -> u64 {
        self.inner.adapter_bytes(job)
    }

    fn attach(&mut self, job: &Job, state: Option<JobState>) -> Result<Slot, BackendError> {
        let mut started = job.clone();
        if self.fault == Fault::StartsAtRandom && state.is_none() {
            started.seed += self.attached;
        }
        let inner = match self.inner.attach(&started, state) {
            Err(BackendError::StateMismatch { .. }) if self.fault == Fault::TakesAnyState => {
                self.inner.attach(&started, None)?
            }
            attached => attached?,
        };
        self.attached += 1;
        let free = (0..).map(Slot).find(|slot| !self.slots.contains_key(slot)).expect("slots without end");
        let slot = if self.fault == Fault::ReusesSlots { free } else { inner };
        self.slots.insert(slot, inner);
        self.jobs.insert(slot, job.clone());
        if self.fault == Fault::LeavesGradientsBehind && std::mem::take(&mut self.left_gradients) {
            self.wrong.insert(slot);
        }
        Ok(slot)
    }

    fn step(&mut self, batch: &Batch) -> Result<(), BackendError> {
        let mut inner = match self.inner_batch(batch) {
            Err(BackendError::UnknownSlot { .. }) if self.fault == Fault::IgnoresUnknownSlots => return Ok(()),
            inner => inner?,
        };
        for lane in &mut inner.lanes {
            match self.fault {
                Fault::IgnoresLast => lane.last = true,
                Fault::TrainsEmptyLanes if lane.rows == 0 => lane.last = true,
                Fault::SkipsEmptyLast if lane.rows == 0 => lane.last = false,
                Fault::TakesAnyDivisor => lane.divisor = 1.0,
                _ => (),
            }
        }
        if let Err(error) = self.inner.step(&inner) {
            if matches!(error, BackendError::BadDivisor { .. }) && self.fault == Fault::ComputesBeforeRefusing {
                inner.lanes.iter_mut().for_each(|lane| lane.divisor = 1.0);
                self.inner.step(&inner)?;
            }
            return Err(error);
        }
        for report in self.inner.read()? {
            let report = self.distorted(report, &inner);
            if self.fault == Fault::LosesReports && report.step == 2 {
                continue;
            }
            self.unread.push(report);
        }
        for lane in &batch.lanes {
            let Some(slot) = lane.slot else { continue };
            if lane.last {
                self.unfinished.remove(&slot);
                self.wrong.remove(&slot);
            } else {
                *self.unfinished.entry(slot).or_default() += 1;
            }
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<StepReport>, BackendError> {
        match self.fault {
            Fault::RepeatsReports => Ok(self.unread.clone()),
            _ => Ok(std::mem::take(&mut self.unread)),
        }
    }

    fn evaluate(&mut self, batch: &Batch) -> Result<Vec<Evaluation>, BackendError> {
        let inner = self.inner_batch(batch)?;
        let mut evaluations = self.inner.evaluate(&inner)?;
        self.evaluations += 1;
        if self.fault == Fault::CountsAllTokens {
            for (evaluation, (_, tokens)) in evaluations.iter_mut().zip(inner.lane_tokens()) {
                evaluation.count = tokens.len() as u64;
            }
        }
        Ok(evaluations)
    }

    fn snapshot(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        let mut state = self.inner.snapshot(self.inner_slot(slot)?)?;
        self.distort(slot, &mut state);
        if self.fault == Fault::SnapshotDropsGradients && self.unfinished.contains_key(&slot) {
            self.wrong.insert(slot);
        }
        Ok(state)
    }

    fn detach(&mut self, slot: Slot) -> Result<JobState, BackendError> {
        let mut state = self.inner.detach(self.inner_slot(slot)?)?;
        self.distort(slot, &mut state);
        self.slots.remove(&slot);
        self.left_gradients = self.unfinished.remove(&slot).is_some();
        if self.fault == Fault::ForgetsReportsAtDetaching {
            self.unread.retain(|report| report.slot != slot);
        }
        if self.fault == Fault::ForgetsStepAtDetaching {
            state.step = 0;
        }
        Ok(state)
    }

    fn memory(&mut self) -> Memory {
        let memory = self.inner.memory();
        if self.fault == Fault::ReportsNoPeak { Memory { in_use: 1, peak: 0, ..memory } } else { memory }
    }
}
