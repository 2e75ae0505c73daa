//! A job's course as a record that others replay.

use alto_exit::replay::RecordedRun;

use super::report::JobReport;

impl JobReport {
    /// What was recorded of the job, for a [`SimulatedBackend`](crate::simulated::SimulatedBackend) or a
    /// [`Replay`](alto_exit::replay::Replay).
    ///
    /// A skipped step has no loss and is recorded as NaN, as a step that will be skipped again. A job that didn't use up
    /// its budget is taken to stay at its last losses: whoever lets it go on further than it went learns nothing.
    /// One that never had a place, as the run was interrupted before, has a single evaluation at its end, which is NaN.
    pub fn to_run(&self) -> RecordedRun {
        let (job, train) = (&self.job, &self.curve.train);
        // A recorded run has an evaluation at least.
        let unknown = self.curve.evaluations.is_empty().then_some((job.steps, f64::NAN));
        let evaluations = self.curve.evaluations.iter().map(|point| (point.step, point.loss)).chain(unknown);
        let (eval_step, val_loss) = evaluations.unzip();
        let last = train.last();
        let mut train_loss = vec![f64::NAN; job.steps as usize];
        let mut grad_norm = vec![f64::NAN; job.steps as usize];
        let rest = last.map(|point| (self.steps + 1..=job.steps).map(move |step| (step, point)));
        for (step, point) in train.iter().map(|point| (point.step, point)).chain(rest.into_iter().flatten()) {
            train_loss[step as usize - 1] = point.loss;
            grad_norm[step as usize - 1] = point.grad_norm.unwrap_or(f64::NAN);
        }
        RecordedRun {
            name: Some(job.name.clone()),
            seed: Some(job.seed),
            rank: job.adapter.rank,
            alpha: job.adapter.alpha,
            lr: job.optimizer.learning_rate,
            batch: job.batch * job.accumulation,
            steps: job.steps,
            train_loss,
            grad_norm: if last.is_some_and(|point| point.grad_norm.is_some()) { grad_norm } else { vec![] },
            lr_at: (0..job.steps).map(|step| job.learning_rate(step)).collect(),
            eval_step,
            val_loss,
            seconds: self.seconds,
        }
    }
}
