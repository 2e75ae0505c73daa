//! What comes to a run after its start: jobs that a search proposes, and exited jobs that go on for an audit.

use alto_exit::Curve;
use alto_exit::search::Trial;

use super::candidate::{self, Candidate};
use super::entry::{Entry, Place};
use super::error::TrainError;
use super::event::EventKind;
use super::proposals::Refused;
use super::rungs;
use super::sweep::Sweep;

impl Sweep<'_> {
    /// Whether a place is free and nobody waits for it.
    pub(super) fn is_open(&self) -> bool {
        !self.entries.iter().any(Entry::is_waiting) && self.memory.has_slot(self.residents().len())
    }

    /// Asks the search for one more job, which then waits or is refused; false if there is none.
    pub(super) fn propose(&mut self) -> bool {
        let Some(proposals) = self.proposals.filter(|_| !self.is_audit()) else { return false };
        let proposed = self.entries.len() + self.refused.len();
        if proposed >= proposals.jobs {
            return false;
        }
        let refused: Vec<Curve> = self.refused.iter().map(Refused::curve).collect();
        let trained = self.entries.iter().zip(&self.curves);
        let trained = trained.filter_map(|(entry, curve)| Some(Trial { point: entry.point.as_ref()?, curve }));
        let refused = self.refused.iter().zip(&refused).map(|(Refused { point, .. }, curve)| Trial { point, curve });
        let tried: Vec<Trial> = trained.chain(refused).collect();
        let Some(point) = proposals.search.next(&tried) else { return false };
        let candidate = (proposals.candidate)(proposed, &point);
        match candidate.and_then(|candidate| Ok(self.check_late(&candidate).map(|()| candidate)?)) {
            Ok(candidate) => {
                self.entries.push(Entry::new(candidate, Some(point)));
                self.curves.push(Curve::default());
                self.tell_proposed(self.entries.len() - 1);
            }
            Err(error) => {
                let refused = Refused { point, error: error.to_string() };
                self.emit(EventKind::Refused(refused.clone()));
                self.refused.push(refused);
            }
        }
        true
    }

    /// Tells of a job that a search proposed.
    pub(super) fn tell_proposed(&mut self, job: usize) {
        let Entry { job: settings, point, .. } = &self.entries[job];
        if let Some(point) = point.clone() {
            self.emit(EventKind::Proposed { job, name: settings.name.clone(), point });
        }
    }

    /// Checks a job that comes after the start, and gives it its seat and its memory.
    fn check_late(&mut self, candidate: &Candidate) -> Result<(), TrainError> {
        let names = self.entries.iter().map(|entry| &entry.job.name);
        candidate::check_late(candidate, names, self.train, self.backend)?;
        rungs::add(&mut self.rungs, &candidate.job, self.policy)?;
        let waits = self.rungs.has_any(self.entries.len());
        let fits = self.memory.add(&candidate.job, self.train, self.backend, waits);
        if fits.is_err() {
            self.rungs.remove_last();
        }
        fits
    }

    /// Lets the exited jobs that were chosen go on, outside the competition; false if there are none.
    pub(super) fn begin_audit(&mut self) -> bool {
        let audited = std::mem::take(&mut self.audited);
        for (job, state) in audited {
            let then = self.entries[job].clone().into_report(self.curves[job].clone());
            self.exited.insert(job, then);
            self.entries[job].place = Place::Waiting(Some(state));
            self.curves[job].end = None;
        }
        let jobs: Vec<usize> = self.exited.keys().copied().collect();
        if self.is_audit() {
            self.emit(EventKind::AuditStarted { jobs });
        }
        self.is_audit()
    }

    /// Whether all who competed have ended, and those that go on are audited.
    pub(super) fn is_audit(&self) -> bool {
        !self.exited.is_empty()
    }
}
