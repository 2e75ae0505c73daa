//! One job's place in the run, and what it came to so far.

use alto_exit::search::Point;
use alto_exit::{Curve, EvaluationPoint, TrainPoint};

use super::candidate::Candidate;
use super::error::Fault;
use super::report::{Ended, JobReport};
use crate::adapter::Adapter;
use crate::backend::{JobState, Slot, StepReport};
use crate::job::Job;

/// Where a job is.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// It waits for a place, with the state that it goes on from.
    Waiting(Option<JobState>),
    /// It trains.
    Resident(Slot),
    /// It waits at a rung.
    Parked(JobState),
    /// It has ended.
    Ended(Ended),
}

/// A job with all that is kept about it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) job: Job,
    /// What it is made of, if a search proposed it.
    pub(super) point: Option<Point>,
    pub(super) place: Place,
    /// Optimizer steps that the backend was given.
    pub(super) step: u64,
    /// Optimizer steps that the backend has reported on and that count: none behind the job's end.
    pub(super) reported: u64,
    /// The step that it was last evaluated after.
    pub(super) evaluated: Option<u64>,
    /// Whether any step changed the adapter: one that was not skipped, at a learning rate over 0.
    trained: bool,
    /// The evaluation of the lowest finite loss since then, the first on ties, and its adapter.
    best: Option<(EvaluationPoint, Adapter)>,
    /// The last evaluation, if it is better and its adapter not yet kept.
    better: Option<EvaluationPoint>,
    /// Steps that were skipped, in all and up to the last one without a break.
    skipped: u64,
    skipped_in_a_row: u64,
    tokens: u64,
    /// Of these, tokens since time was last shared out.
    pub(super) tokens_untimed: u64,
    pub(super) seconds: f64,
}

/// A step that was skipped.
pub(super) struct Skip {
    /// What was not finite.
    pub(super) tensor: String,
    /// How many steps were skipped since the last that was not, this one included.
    pub(super) in_a_row: u64,
}

impl Entry {
    pub(super) fn new(candidate: Candidate, point: Option<Point>) -> Self {
        Self {
            job: candidate.job,
            point,
            place: Place::Waiting(candidate.start.map(JobState::starting_from)),
            step: 0,
            reported: 0,
            evaluated: None,
            trained: false,
            best: None,
            better: None,
            skipped: 0,
            skipped_in_a_row: 0,
            tokens: 0,
            tokens_untimed: 0,
            seconds: 0.0,
        }
    }

    /// The slot of a job that trains.
    pub(super) fn slot(&self) -> Option<Slot> {
        match self.place {
            Place::Resident(slot) => Some(slot),
            _ => None,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.place, Place::Waiting(_))
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.place, Place::Ended(_))
    }

    /// The first step that the backend has not reported on.
    pub(super) fn unreported(&self) -> u64 {
        self.reported + 1
    }

    /// These tokens were sent to be trained on.
    pub(super) fn sent(&mut self, tokens: usize) {
        self.tokens += tokens as u64;
        self.tokens_untimed += tokens as u64;
    }

    /// Takes a step's report, which must be the one due, onto the curve; a step that was skipped leaves no loss there.
    pub(super) fn record(&mut self, report: StepReport, curve: &mut Curve) -> Option<Skip> {
        self.reported = report.step;
        if let Some(tensor) = report.not_finite {
            self.skipped += 1;
            self.skipped_in_a_row += 1;
            return Some(Skip { tensor, in_a_row: self.skipped_in_a_row });
        }
        self.skipped_in_a_row = 0;
        self.trained |= report.learning_rate > 0.0;
        curve.train.push(TrainPoint {
            step: report.step,
            progress: self.job.progress(report.step),
            loss: report.loss,
            grad_norm: Some(report.grad_norm),
        });
        None
    }

    /// Takes an evaluation of the job as it is now onto the curve.
    pub(super) fn evaluate(&mut self, loss: f64, curve: &mut Curve) -> EvaluationPoint {
        let point = EvaluationPoint { step: self.step, progress: self.job.progress(self.step), loss };
        curve.evaluations.push(point);
        self.evaluated = Some(self.step);
        let is_lowest = self.best.as_ref().is_none_or(|(best, _)| loss < best.loss);
        self.better = (self.trained && loss.is_finite() && is_lowest).then_some(point);
        point
    }

    /// A parked job waits for a place, to go on from where it was.
    pub(super) fn unpark(&mut self) {
        self.place = match std::mem::replace(&mut self.place, Place::Waiting(None)) {
            Place::Parked(state) => Place::Waiting(Some(state)),
            other => other,
        };
    }

    /// The fault of a backend that reported this step, or none (0), where another was due.
    pub(super) fn unexpected_report(&self, found: u64) -> Fault {
        Fault::StepReport { job: self.job.name.clone(), found, expected: self.unreported() }
    }

    /// Whether the adapter as it is now is the best so far and has to be kept.
    pub(super) fn is_better(&self) -> bool {
        self.better.is_some()
    }

    /// Keeps the adapter if it is the best so far.
    pub(super) fn keep_best(&mut self, state: &JobState) {
        if let Some(better) = self.better.take() {
            self.best = Some((better, state.adapter.clone()));
        }
    }

    /// What the job came to, and its best adapter.
    pub(super) fn into_report(self, curve: Curve) -> (JobReport, Option<Adapter>) {
        let ended = match self.place {
            Place::Ended(ended) => ended,
            Place::Waiting(_) | Place::Resident(_) | Place::Parked(_) => Ended::Unfinished,
        };
        let (best, adapter) = self.best.unzip();
        let report = JobReport {
            ended,
            best,
            steps: self.reported,
            skipped: self.skipped,
            samples: self.job.samples(self.reported),
            share: self.job.progress(self.reported),
            tokens: self.tokens,
            seconds: self.seconds,
            curve,
            point: self.point,
            job: self.job,
        };
        (report, adapter)
    }
}
