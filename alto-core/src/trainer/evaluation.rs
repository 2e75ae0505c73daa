//! The validation loss of several jobs at once.

use std::time::Instant;

use super::error::Fault;
use super::event::EventKind;
use super::sweep::Sweep;
use crate::batch::{Batch, Example, Lane, Objective};

/// Validation rows, and the place among the evaluated jobs of the one that they are for.
type Block<'a> = (usize, &'a [Example]);

impl<'a> Sweep<'a> {
    /// Evaluates these jobs as they are now on the whole validation set, onto their curves.
    pub(super) fn evaluate(&mut self, jobs: &[usize]) -> Result<(), Fault> {
        let started = Instant::now();
        let mut sums = vec![(0.0, 0_u64); jobs.len()];
        for call in self.calls(jobs.len()) {
            self.evaluate_call(jobs, &call, &mut sums)?;
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

    /// The validation rows of so many jobs, in as few calls as the setting and memory allow; each block of rows with the
    /// place of the job that it is for.
    ///
    /// A job's rows are cut at the same places whoever is evaluated beside it, so that its sums are rounded alike.
    fn calls(&self, jobs: usize) -> Vec<Vec<Block<'a>>> {
        let (examples, most) = (self.validation.examples(), self.trainer.evaluation_rows);
        let residents = self.residents();
        let fits = |blocks: &[Block]| {
            let rows = || blocks.iter().flat_map(|block| block.1);
            rows().count() <= most && self.memory.fits(&residents, rows().map(|row| row.tokens.len() as u64).sum())
        };
        // Blocks of about one size.
        let size = examples.len().div_ceil(examples.len().div_ceil(most));
        let blocks: Vec<&[Example]> =
            examples.chunks(size).flat_map(|block| split(block, &|part| fits(&[(0, part)]))).collect();
        let mut calls: Vec<Vec<Block>> = vec![];
        for place in 0..jobs {
            for (index, &block) in blocks.iter().enumerate() {
                match calls.last_mut() {
                    // A job has one lane in a call.
                    Some(call) if index == 0 && fits(&[&call[..], &[(place, block)]].concat()) => {
                        call.push((place, block))
                    }
                    _ => calls.push(vec![(place, block)]),
                }
            }
        }
        calls
    }

    /// One call of the backend: each block is a lane.
    fn evaluate_call(&mut self, jobs: &[usize], blocks: &[Block], sums: &mut [(f64, u64)]) -> Result<(), Fault> {
        let mut batch = Batch::default();
        for &(place, rows) in blocks {
            let divisor = rows.iter().map(Example::labelled).sum::<usize>() as f64;
            let slot = self.entries[jobs[place]].slot();
            let objective = Objective::NegativeLogLikelihood;
            batch.push(Lane { slot, rows: rows.len(), objective, divisor, last: true }, rows);
        }
        let evaluations = self.backend.evaluate(&batch)?;
        let losses: Vec<_> = evaluations.iter().filter(|evaluation| evaluation.metric == "loss").collect();
        let lanes = blocks.len();
        if losses.len() != lanes || losses.iter().any(|loss| loss.lane >= lanes || loss.count == 0) {
            return Err(Fault::Evaluation { lanes, found: losses.len() });
        }
        for loss in losses {
            let (sum, count) = &mut sums[blocks[loss.lane].0];
            *sum += loss.sum;
            *count += loss.count;
        }
        Ok(())
    }
}

/// Halves the rows until each part fits or is a single row.
fn split<'a>(rows: &'a [Example], fits: &dyn Fn(&[Example]) -> bool) -> Vec<&'a [Example]> {
    if rows.len() <= 1 || fits(rows) {
        return vec![rows];
    }
    let (left, right) = rows.split_at(rows.len() / 2);
    [split(left, fits), split(right, fits)].concat()
}
