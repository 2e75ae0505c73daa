//! One job of a replay: its record, and how far it has come.

use super::recorded_run::RecordedRun;
use crate::curve::{Curve, EvaluationPoint};

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It waits for a slot.
    Waiting,
    /// It trains.
    Resident,
    /// It waits at a rung.
    Parked,
    /// It has ended.
    Ended,
}

/// A job with what it has done of its record.
pub(super) struct Seat<'a> {
    pub(super) run: &'a RecordedRun,
    pub(super) place: Place,
    /// Steps done.
    pub(super) step: u64,
    /// Evaluations done.
    evaluated: usize,
    /// Steps that may be skipped in a row.
    skips: u64,
    /// Steps skipped since the last that was not.
    in_a_row: u64,
    /// The step at which too many were skipped.
    broke_at: Option<u64>,
}

impl<'a> Seat<'a> {
    pub(super) fn new(run: &'a RecordedRun, skips: u64) -> Self {
        Self { run, place: Place::Waiting, step: 0, evaluated: 0, skips, in_a_row: 0, broke_at: None }
    }

    /// Steps until it is evaluated again or has none left.
    pub(super) fn until_due(&self) -> u64 {
        self.run.eval_step.get(self.evaluated).copied().unwrap_or(self.run.steps) - self.step
    }

    pub(super) fn is_due(&self) -> bool {
        self.place != Place::Ended && self.until_due() == 0
    }

    pub(super) fn has_finished(&self) -> bool {
        self.step == self.run.steps
    }

    /// The step at which too many in a row had been skipped, and what to say of it.
    pub(super) fn broken(&self) -> Option<(u64, String)> {
        let step = self.broke_at?;
        Some((step, format!("the training loss was not finite at step {step}, the last of {} in a row", self.skips)))
    }

    /// Takes the losses of the next steps onto the curve, up to where too many were skipped.
    pub(super) fn advance(&mut self, steps: u64, curve: &mut Curve) {
        for step in self.step + 1..=self.step + steps {
            let point = self.run.train_point(step);
            if point.loss.is_finite() {
                curve.train.push(point);
                self.in_a_row = 0;
                continue;
            }
            self.in_a_row += 1;
            if self.in_a_row == self.skips {
                self.broke_at = Some(step);
                break;
            }
        }
        self.step += steps;
    }

    /// Takes the evaluation that is due, if one was recorded here, onto the curve.
    pub(super) fn evaluate(&mut self, curve: &mut Curve) {
        let (run, step) = (self.run, self.step);
        if run.eval_step.get(self.evaluated) == Some(&step) {
            let loss = run.val_loss[self.evaluated];
            curve.evaluations.push(EvaluationPoint { step, progress: run.progress(step), loss });
            self.evaluated += 1;
        }
    }
}
