//! The validation loss of several jobs at once.

use std::time::Instant;

use super::error::Fault;
use super::event::EventKind;
use super::sweep::Sweep;
use crate::batch::{Batch, Example, Lane, Objective};

impl Sweep<'_> {
    /// Evaluates these jobs as they are now on the whole validation set, onto their curves.
    pub(super) fn evaluate(&mut self, jobs: &[usize]) -> Result<(), Fault> {
        let started = Instant::now();
        let mut sums = vec![(0.0, 0_u64); jobs.len()];
        let rows = self.validation.examples();
        let pairs: Vec<(usize, &Example)> =
            (0..jobs.len()).flat_map(|place| rows.iter().map(move |row| (place, row))).collect();
        let mut rest = &pairs[..];
        while !rest.is_empty() {
            let (call, later) = rest.split_at(self.rows_in_call(rest));
            self.evaluate_call(jobs, call, &mut sums)?;
            rest = later;
        }
        let seconds = started.elapsed().as_secs_f64() / jobs.len().max(1) as f64;
        self.timed = Instant::now();
        for (&job, (sum, count)) in jobs.iter().zip(sums) {
            let (entry, curve) = (&mut self.entries[job], &mut self.curves[job]);
            entry.seconds += seconds;
            let validation = entry.evaluate(sum / count as f64, curve);
            let training = curve.train.last().copied();
            self.emit(EventKind::Evaluated { job, validation, training });
        }
        Ok(())
    }

    /// How many of these rows go into one call: at least one, at most the setting, and as many as memory takes.
    fn rows_in_call(&self, rows: &[(usize, &Example)]) -> usize {
        let residents = self.residents();
        let mut tokens = 0;
        let fits = rows.iter().take(self.trainer.evaluation_rows).take_while(|(_, row)| {
            tokens += row.tokens.len() as u64;
            self.memory.fits(&residents, tokens)
        });
        fits.count().max(1)
    }

    /// One call of the backend: each job's rows are a lane.
    fn evaluate_call(
        &mut self,
        jobs: &[usize],
        rows: &[(usize, &Example)],
        sums: &mut [(f64, u64)],
    ) -> Result<(), Fault> {
        let mut batch = Batch::default();
        let mut places = vec![];
        for lane in rows.chunk_by(|a, b| a.0 == b.0) {
            let place = lane[0].0;
            places.push(place);
            let examples = lane.iter().map(|(_, row)| *row);
            let divisor = examples.clone().map(Example::labelled).sum::<usize>() as f64;
            let slot = self.entries[jobs[place]].slot();
            let objective = Objective::NegativeLogLikelihood;
            batch.push(Lane { slot, rows: lane.len(), objective, divisor, last: true }, examples);
        }
        let evaluations = self.backend.evaluate(&batch)?;
        let losses: Vec<_> = evaluations.iter().filter(|evaluation| evaluation.metric == "loss").collect();
        let lanes = places.len();
        if losses.len() != lanes || losses.iter().any(|loss| loss.lane >= lanes || loss.count == 0) {
            return Err(Fault::Evaluation { lanes, found: losses.len() });
        }
        for loss in losses {
            let (sum, count) = &mut sums[places[loss.lane]];
            *sum += loss.sum;
            *count += loss.count;
        }
        Ok(())
    }
}
