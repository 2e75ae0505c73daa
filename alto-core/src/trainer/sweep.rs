//! The state of a run, and its acts: admit, step, read, judge, close rungs.

use std::collections::BTreeMap;
use std::time::Instant;

use alto_exit::{Closing, Curve, ExitPolicy, Rungs, Verdict};

use super::audit;
use super::candidate;
use super::entry::{Entry, Place, Skip};
use super::error::{Fault, TrainError};
use super::event::{EVENT_VERSION, Event, EventKind, RungLoss};
use super::marks::is_evaluated;
use super::memory::Memory;
use super::proposals::{Proposals, Refused};
use super::report::{Ended, JobReport};
use super::rungs::rungs;
use super::train::{Jobs, Trainer};
use crate::adapter::Adapter;
use crate::backend::{Backend, BackendError, JobState, Slot, StepReport};
use crate::batch::{Batch, Lane, Objective};
use crate::data::Dataset;
use crate::job::Job;

/// A run between its checks and its outcome.
pub(super) struct Sweep<'a> {
    pub(super) trainer: &'a Trainer,
    pub(super) backend: &'a mut dyn Backend,
    pub(super) train: &'a Dataset,
    pub(super) validation: &'a Dataset,
    pub(super) policy: &'a dyn ExitPolicy,
    observe: &'a mut dyn FnMut(&Event),
    pub(super) entries: Vec<Entry>,
    /// By job; what the policy sees.
    pub(super) curves: Vec<Curve>,
    pub(super) rungs: Rungs,
    pub(super) memory: Memory,
    /// Where more jobs come from.
    pub(super) proposals: Option<&'a Proposals<'a>>,
    /// What was proposed and can't be trained.
    pub(super) refused: Vec<Refused>,
    /// States of the exited jobs that are to go on for an audit.
    pub(super) audited: BTreeMap<usize, JobState>,
    /// What those came to when they exited, once they go on.
    pub(super) exited: BTreeMap<usize, (JobReport, Option<Adapter>)>,
    /// Batch sizes of the jobs that gave up their places since the last admission, in order.
    freed: Vec<usize>,
    pub(super) started: Instant,
    /// Until when time has been shared out among the jobs.
    pub(super) timed: Instant,
}

/// What comes next for a job that was evaluated.
enum Next {
    GoOn,
    Wait,
    End(Ended),
}

impl<'a> Sweep<'a> {
    /// Checks everything that can be checked and measures what must be measured, before anything trains.
    pub(super) fn prepare(
        trainer: &'a Trainer,
        backend: &'a mut dyn Backend,
        (train, validation): (&'a Dataset, &'a Dataset),
        jobs: Jobs<'a>,
        policy: &'a dyn ExitPolicy,
        observe: &'a mut dyn FnMut(&Event),
    ) -> Result<Self, TrainError> {
        let started = Instant::now();
        trainer.check()?;
        policy.check()?;
        let (candidates, points, proposals) = match jobs {
            Jobs::Listed(candidates) => (candidates, vec![], None),
            Jobs::Proposed(proposals) => {
                proposals.search.check()?;
                let (candidates, points) = proposals.first()?.into_iter().unzip();
                (candidates, points, Some(proposals))
            }
        };
        let more = proposals.map_or(0, |proposals| proposals.jobs - candidates.len());
        candidate::check(&candidates, train, backend)?;
        let jobs: Vec<&Job> = candidates.iter().map(|candidate| &candidate.job).collect();
        let rungs = rungs(&jobs, policy)?;
        let memory = Memory::prepare(trainer, backend, train, &candidates, more, &rungs)?;
        let curves = vec![Curve::default(); candidates.len()];
        let points = points.into_iter().map(Some).chain(std::iter::repeat(None));
        let entries = candidates.into_iter().zip(points).map(|(job, point)| Entry::new(job, point)).collect();
        let (freed, timed) = (vec![], Instant::now());
        let mut sweep = Self {
            trainer,
            backend,
            train,
            validation,
            policy,
            observe,
            entries,
            curves,
            rungs,
            memory,
            proposals,
            refused: vec![],
            audited: BTreeMap::new(),
            exited: BTreeMap::new(),
            freed,
            started,
            timed,
        };
        if let Some(profile) = sweep.memory.profile.clone() {
            sweep.emit(EventKind::Profiled(profile));
        }
        for job in 0..sweep.entries.len() {
            sweep.tell_proposed(job);
        }
        Ok(sweep)
    }

    /// Gives waiting jobs the places that are free; where nobody waits for one, asks the search for more jobs.
    pub(super) fn admit(&mut self) -> Result<(), BackendError> {
        self.admit_waiting()?;
        while self.is_open() && self.propose() {
            self.admit_waiting()?;
        }
        Ok(())
    }

    fn admit_waiting(&mut self) -> Result<(), BackendError> {
        let freed = std::mem::take(&mut self.freed);
        let waiting: Vec<usize> = (0..self.entries.len()).filter(|&job| self.entries[job].is_waiting()).collect();
        for job in self.memory.admit(&self.residents(), &waiting, &freed) {
            let entry = &mut self.entries[job];
            let Place::Waiting(state) = &mut entry.place else { continue };
            let slot = self.backend.attach(&entry.job, state.take())?;
            entry.place = Place::Resident(slot);
            let kind = match entry.evaluated {
                None => EventKind::Started { job, name: entry.job.name.clone(), steps: entry.job.steps },
                Some(step) => EventKind::Resumed { job, step },
            };
            self.emit(kind);
        }
        Ok(())
    }

    /// Jobs that have a place, ascending.
    pub(super) fn residents(&self) -> Vec<usize> {
        (0..self.entries.len()).filter(|&job| self.entries[job].slot().is_some()).collect()
    }

    /// Jobs that have a place and stand at a mark at which they were not evaluated, ascending.
    pub(super) fn due(&self) -> Vec<usize> {
        let is_due = |&job: &usize| {
            let Entry { job: settings, step, evaluated, .. } = &self.entries[job];
            let at_mark = || is_evaluated(settings, *step, self.trainer.interval) || self.rungs.is_at(job, *step);
            *evaluated != Some(*step) && at_mark()
        };
        self.residents().into_iter().filter(is_due).collect()
    }

    /// One optimizer step of every job that has a place; a job takes part in as many calls as it accumulates.
    pub(super) fn step(&mut self) -> Result<(), BackendError> {
        let residents = self.residents();
        let calls = residents.iter().map(|&job| self.entries[job].job.accumulation).max().unwrap_or(0);
        for micro in 0..calls {
            let mut batch = Batch::default();
            for &job in &residents {
                let entry = &mut self.entries[job];
                if micro >= entry.job.accumulation {
                    continue;
                }
                let rows = self.train.micro_batch(&entry.job, entry.step, micro);
                entry.sent(rows.iter().map(|row| row.tokens.len()).sum());
                let lane = Lane {
                    slot: entry.slot(),
                    rows: rows.len(),
                    objective: Objective::NegativeLogLikelihood,
                    divisor: self.train.divisor(&entry.job, entry.step, micro),
                    last: micro + 1 == entry.job.accumulation,
                };
                batch.push(lane, rows);
            }
            self.backend.step(&batch)?;
        }
        for job in residents {
            self.entries[job].step += 1;
        }
        Ok(())
    }

    /// Takes all steps since the last read onto the curves, and ends the jobs that had too many skipped in a row.
    ///
    /// A job ends at the same step whenever it is read: the steps that it was given after that don't count.
    pub(super) fn read(&mut self) -> Result<(), Fault> {
        let jobs: BTreeMap<Slot, usize> =
            self.residents().into_iter().filter_map(|job| Some((self.entries[job].slot()?, job))).collect();
        let reports = self.backend.read()?;
        self.share_time_by_tokens();
        // Reports of other slots are of steps from before this run.
        let mut reports: Vec<(usize, StepReport)> =
            reports.into_iter().filter_map(|report| Some((*jobs.get(&report.slot)?, report))).collect();
        reports.sort_by_key(|(job, report)| (*job, report.step));
        for (job, report) in reports {
            let (entry, step) = (&mut self.entries[job], report.step);
            if entry.has_ended() {
                continue;
            }
            if step != entry.unreported() {
                return Err(entry.unexpected_report(step));
            }
            if let Some(Skip { tensor, in_a_row }) = entry.record(report, &mut self.curves[job]) {
                self.emit(EventKind::Skipped { job, step, tensor: tensor.clone() });
                if in_a_row >= self.trainer.skips {
                    self.end(job, Ended::Quarantined { tensor, step, in_a_row })?;
                }
            }
        }
        match self.residents().into_iter().map(|job| &self.entries[job]).find(|entry| entry.unreported() <= entry.step)
        {
            Some(silent) => Err(silent.unexpected_report(0)),
            None => Ok(()),
        }
    }

    /// Judges the jobs that were just evaluated: each goes on, waits at a rung, or ends.
    pub(super) fn judge(&mut self, evaluated: &[usize]) -> Result<(), BackendError> {
        // All verdicts come before any act, so that one exit never changes the next verdict.
        for &job in evaluated {
            self.rungs.go_by(job, self.entries[job].step);
        }
        let nexts: Vec<Next> = evaluated.iter().map(|&job| self.next(job)).collect();
        for (&job, next) in evaluated.iter().zip(nexts) {
            match next {
                Next::GoOn => self.keep_best(job)?,
                Next::Wait => self.park(job)?,
                Next::End(how) => self.end(job, how)?,
            }
        }
        Ok(())
    }

    fn next(&self, job: usize) -> Next {
        let entry = &self.entries[job];
        if entry.step == entry.job.steps {
            return Next::End(Ended::Finished);
        }
        if self.is_audit() {
            return Next::GoOn;
        }
        if self.rungs.is_at(job, entry.step) {
            return Next::Wait;
        }
        match self.policy.judge(job, &self.curves) {
            Verdict::Keep => Next::GoOn,
            Verdict::Exit(reason) => Next::End(Ended::Exited(reason)),
        }
    }

    /// Closes the rungs that nobody is short of any more, and judges whoever waited at them, rung by rung.
    pub(super) fn close_rungs(&mut self) -> Result<(), BackendError> {
        while let Some(Closing { mark, judged, members }) = self.rungs.close() {
            let at_rung = |(job, step): (usize, u64)| {
                let evaluation = self.curves[job].evaluations.iter().find(|evaluation| evaluation.step == step);
                evaluation.map(|&validation| RungLoss { job, validation })
            };
            let record = members.into_iter().filter_map(at_rung).collect();
            let (mut kept, mut exits) = (vec![], vec![]);
            let verdicts = self.policy.judge_all(&judged, &self.curves);
            for (job, verdict) in judged.into_iter().zip(verdicts) {
                match verdict {
                    Verdict::Keep => kept.push(job),
                    Verdict::Exit(reason) => exits.push((job, reason)),
                }
            }
            let exited = exits.iter().map(|(job, _)| *job).collect();
            self.emit(EventKind::RungClosed { mark, record, kept: kept.clone(), exited });
            for (job, reason) in exits {
                self.end(job, Ended::Exited(reason))?;
            }
            for job in kept {
                self.entries[job].unpark();
            }
        }
        Ok(())
    }

    fn keep_best(&mut self, job: usize) -> Result<(), BackendError> {
        let is_audit = self.is_audit();
        let entry = &mut self.entries[job];
        // An audit offers no adapters.
        if let Some(slot) = entry.slot().filter(|_| entry.is_better() && !is_audit) {
            let state = self.backend.snapshot(slot)?;
            entry.keep_best(&state);
        }
        Ok(())
    }

    fn park(&mut self, job: usize) -> Result<(), BackendError> {
        if let Some(state) = self.leave(job)? {
            let step = self.entries[job].step;
            self.entries[job].place = Place::Parked(state);
            self.rungs.wait(job, step);
            self.emit(EventKind::Parked { job, step });
        }
        Ok(())
    }

    fn end(&mut self, job: usize, how: Ended) -> Result<(), BackendError> {
        let left = self.leave(job)?;
        let step = self.entries[job].reported;
        let state = match std::mem::replace(&mut self.entries[job].place, Place::Ended(how.clone())) {
            Place::Parked(state) => Some(state),
            _ => left,
        };
        if let (Ended::Exited(_), Some(state)) = (&how, state) {
            let Trainer { audit, audit_seed, .. } = *self.trainer;
            if audit::is_chosen(&self.entries[job].job.name, audit_seed, audit) {
                self.audited.insert(job, state);
            }
        }
        self.curves[job].end = how.on_curve(step);
        self.rungs.end(job);
        self.emit(EventKind::Ended { job, step, how });
        Ok(())
    }

    /// Takes the job off the backend, if it is there.
    fn leave(&mut self, job: usize) -> Result<Option<JobState>, BackendError> {
        let entry = &mut self.entries[job];
        let Some(slot) = entry.slot() else { return Ok(None) };
        let state = self.backend.detach(slot)?;
        entry.keep_best(&state);
        self.freed.push(entry.job.batch);
        Ok(Some(state))
    }

    pub(super) fn emit(&mut self, kind: EventKind) {
        let event = Event { version: EVENT_VERSION, seconds: self.started.elapsed().as_secs_f64(), kind };
        event.trace();
        (self.observe)(&event);
    }

    /// Shares out the time since it was last shared out, by the tokens that each job was trained on since.
    fn share_time_by_tokens(&mut self) {
        let seconds = std::mem::replace(&mut self.timed, Instant::now()).elapsed().as_secs_f64();
        let all: u64 = self.entries.iter().map(|entry| entry.tokens_untimed).sum();
        for entry in self.entries.iter_mut().filter(|entry| entry.tokens_untimed > 0) {
            let own = std::mem::take(&mut entry.tokens_untimed);
            entry.seconds += seconds * own as f64 / all as f64;
        }
    }
}
