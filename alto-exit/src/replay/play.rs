//! The replay itself: recorded jobs go through a trainer's loop, from evaluation to evaluation.

use std::borrow::Borrow;
use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::recorded_run::{RecordedRun, RunError};
use super::seat::{Place, Seat};
use crate::curve::{Curve, End};
use crate::policy::{ExitPolicy, Verdict};
use crate::rungs::{BadRung, Rungs};
use crate::setting::SettingError;

/// Plays recorded runs as if they trained now, under an exit policy. These are its settings.
///
/// It does what a trainer with so many slots does. Jobs with a slot make their steps together; each is judged at its
/// recorded evaluations, parks at the first one at or past a rung, and ends where the policy says so, or unjudged at its
/// last step. A rung closes when no unfinished job that has it is short of it. A slot that is given up goes to the first
/// waiting job of the same batch size; what is free after that to the largest batch size, ties by index.
///
/// A training loss that is not finite is a skipped step, which leaves no loss on the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Replay {
    /// Jobs that train at a time; `None` is all of them.
    pub slots: Option<usize>,
    /// Steps in a row that may be skipped before the job ends.
    pub skips: u64,
}

impl Default for Replay {
    fn default() -> Self {
        Self { slots: None, skips: 3 }
    }
}

impl Replay {
    /// What each job's curve is in the end, and how it ended, by the runs' order.
    ///
    /// # Errors
    /// When a setting is 0, the policy's settings can't be decided with, it has a rung that is not from 0 to 1, or a run
    /// doesn't pass [`RecordedRun::check`].
    pub fn run(&self, runs: &[impl Borrow<RecordedRun>], policy: &dyn ExitPolicy) -> Result<Vec<Curve>, ReplayError> {
        for (setting, value) in [("slots", self.slots.unwrap_or(1) as u64), ("skips", self.skips)] {
            if value == 0 {
                return Err(ReplayError::Setting { setting });
            }
        }
        policy.check()?;
        for (run, recorded) in runs.iter().enumerate() {
            recorded.borrow().check().map_err(|source| ReplayError::Run { run, source })?;
        }
        let mut sweep = Sweep {
            slots: self.slots.unwrap_or(runs.len()),
            policy,
            seats: runs.iter().map(|run| Seat::new(run.borrow(), self.skips)).collect(),
            curves: vec![Curve::default(); runs.len()],
            rungs: Rungs::new(runs.len(), policy, |job, mark| step_at(runs[job].borrow(), mark))?,
            freed: vec![],
        };
        sweep.play();
        Ok(sweep.curves)
    }
}

/// The step of the first evaluation at or past this mark, after the first step if the mark is; the last step if none is.
pub(super) fn step_at(run: &RecordedRun, mark: f64) -> u64 {
    let reaches = |&step: &u64| run.progress(step) >= mark && (step > 0 || mark <= 0.0);
    run.eval_step.iter().copied().find(reaches).unwrap_or(run.steps)
}

/// A replay between its checks and its outcome.
struct Sweep<'a> {
    slots: usize,
    policy: &'a dyn ExitPolicy,
    seats: Vec<Seat<'a>>,
    /// By job; what the policy sees.
    curves: Vec<Curve>,
    rungs: Rungs,
    /// Batch sizes of the jobs that gave up their slots since the last admission, in order.
    freed: Vec<usize>,
}

impl Sweep<'_> {
    fn play(&mut self) {
        loop {
            self.admit();
            let residents = self.placed(Place::Resident);
            let Some(steps) = residents.iter().map(|&job| self.seats[job].until_due()).min() else { return };
            for &job in &residents {
                self.seats[job].advance(steps, &mut self.curves[job]);
                if let Some((step, error)) = self.seats[job].broken() {
                    self.end(job, End::Failed { step, error });
                }
            }
            let due: Vec<usize> = residents.into_iter().filter(|&job| self.seats[job].is_due()).collect();
            for &job in &due {
                self.seats[job].evaluate(&mut self.curves[job]);
            }
            self.judge(&due);
            self.close_rungs();
        }
    }

    /// Gives waiting jobs the slots that are free.
    fn admit(&mut self) {
        let freed = std::mem::take(&mut self.freed);
        let mut waiting = self.placed(Place::Waiting);
        if waiting.is_empty() {
            return;
        }
        let mut free = self.slots - self.placed(Place::Resident).len();
        let batch = |seats: &[Seat], job: usize| seats[job].run.batch;
        for size in freed {
            let same = waiting.iter().position(|&job| batch(&self.seats, job) == size);
            if let Some(at) = same.filter(|_| free > 0) {
                self.seats[waiting.remove(at)].place = Place::Resident;
                free -= 1;
            }
        }
        waiting.sort_by_key(|&job| (Reverse(batch(&self.seats, job)), job));
        for job in waiting.into_iter().take(free) {
            self.seats[job].place = Place::Resident;
        }
    }

    /// Jobs that are there, ascending.
    fn placed(&self, place: Place) -> Vec<usize> {
        (0..self.seats.len()).filter(|&job| self.seats[job].place == place).collect()
    }

    /// What comes next for the jobs that were just evaluated. All verdicts come before any act.
    fn judge(&mut self, evaluated: &[usize]) {
        let goes_on = |&job: &usize| {
            let seat = &self.seats[job];
            !seat.has_finished() && !self.rungs.is_at(job, seat.step)
        };
        let asked: Vec<usize> = evaluated.iter().copied().filter(goes_on).collect();
        let mut verdicts = asked.iter().copied().zip(self.policy.judge_all(&asked, &self.curves)).peekable();
        for &job in evaluated {
            if let Some((_, verdict)) = verdicts.next_if(|&(asked, _)| asked == job) {
                if let Verdict::Exit(reason) = verdict {
                    self.end(job, End::Exited(reason));
                }
            } else if self.seats[job].has_finished() {
                self.end(job, End::Finished);
            } else {
                self.rungs.wait(job, self.seats[job].step);
                self.leave(job, Place::Parked);
            }
        }
    }

    fn close_rungs(&mut self) {
        while let Some(closing) = self.rungs.close() {
            let verdicts = self.policy.judge_all(&closing.judged, &self.curves);
            for (job, verdict) in closing.judged.into_iter().zip(verdicts) {
                match verdict {
                    Verdict::Keep => self.seats[job].place = Place::Waiting,
                    Verdict::Exit(reason) => self.end(job, End::Exited(reason)),
                }
            }
        }
    }

    fn end(&mut self, job: usize, how: End) {
        self.leave(job, Place::Ended);
        self.curves[job].end = Some(how);
        self.rungs.end(job);
    }

    /// Takes the job off its slot, if it has one.
    fn leave(&mut self, job: usize, to: Place) {
        let seat = &mut self.seats[job];
        if seat.place == Place::Resident {
            self.freed.push(seat.run.batch);
        }
        seat.place = to;
    }
}

/// Why runs can't be replayed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A setting of 0.
    #[error("{setting} of the replay is 0, expected at least 1")]
    Setting {
        /// The setting's name.
        setting: &'static str,
    },
    /// The policy's settings.
    #[error(transparent)]
    Policy(#[from] SettingError),
    /// A rung at a mark that no progress reaches.
    #[error(transparent)]
    Rung(#[from] BadRung),
    /// A run that can't be replayed.
    #[error("run {run} can't be replayed")]
    Run {
        /// Its index.
        run: usize,
        /// What is wrong with it.
        source: RunError,
    },
}
