//! The jobs of a search space.

use super::error::SearchSpaceError;
use super::space::SearchSpace;
use crate::job::{AdamW, AdapterConfig, Job, Schedule};

/// The most samples that a job may see, 2^53.
const MOST_SAMPLES: f64 = 9_007_199_254_740_992.0;

impl SearchSpace {
    /// The grid's jobs for a training set of this many rows, each of them checked.
    ///
    /// Ranks vary slowest, then alphas, learning rates, weight decays, batches and seeds. A name has rank, learning
    /// rate and batch, and whatever else the grid varies, such as `r8-a2-lr0.001-b2-s1`.
    ///
    /// # Errors
    /// When a list is empty or has an entry twice, not exactly one budget is given, or a job's setting is out of range.
    pub fn jobs(&self, rows: usize) -> Result<Vec<Job>, SearchSpaceError> {
        self.check_lists()?;
        let mut jobs = vec![];
        for &rank in &self.rank {
            for &alpha in &self.alpha_per_rank {
                for &learning_rate in &self.learning_rate {
                    for &weight_decay in &self.weight_decay {
                        for &batch in &self.batch {
                            for &seed in &self.seed {
                                let point = Point { rank, alpha, learning_rate, weight_decay, batch, seed };
                                jobs.push(self.job(&point, rows)?);
                            }
                        }
                    }
                }
            }
        }
        Ok(jobs)
    }

    fn check_lists(&self) -> Result<(), SearchSpaceError> {
        check_list("learning_rate", &self.learning_rate)?;
        check_list("rank", &self.rank)?;
        check_list("batch", &self.batch)?;
        check_list("alpha_per_rank", &self.alpha_per_rank)?;
        check_list("weight_decay", &self.weight_decay)?;
        check_list("seed", &self.seed)?;
        check_list("target_modules", &self.target_modules)
    }

    fn job(&self, point: &Point, rows: usize) -> Result<Job, SearchSpaceError> {
        let name = self.name(point);
        let steps = self.budget(&name, point.batch, rows)?;
        let job = Job {
            adapter: AdapterConfig {
                rank: point.rank,
                alpha: point.alpha * point.rank as f64,
                rank_stabilized: self.rank_stabilized,
                targets: self.target_modules.iter().cloned().collect(),
            },
            optimizer: AdamW { weight_decay: point.weight_decay, clip: self.clip, ..AdamW::new(point.learning_rate) },
            schedule: Schedule { decay: self.decay, warmup_steps: self.warmup(&name, steps)? },
            batch: point.batch,
            accumulation: self.accumulation,
            accumulation_mode: self.accumulation_mode,
            steps,
            seed: point.seed,
            name,
        };
        job.check()?;
        Ok(job)
    }

    /// Optimizer steps, at least 1 unless 0 are asked for.
    fn budget(&self, job: &str, batch: usize, rows: usize) -> Result<u64, SearchSpaceError> {
        let out_of_range =
            |key, value: f64, expected| Err(SearchSpaceError::OutOfRange { job: job.to_owned(), key, value, expected });
        // Sizes of 0 are left to the job's own check to refuse.
        let per_step = batch.max(1) as f64 * self.accumulation.max(1) as f64;
        let steps = match (self.epochs, self.steps, self.samples) {
            (None, Some(steps), None) => steps as f64,
            (None, None, Some(0)) => return out_of_range("samples", 0.0, "at least 1"),
            (None, None, Some(samples)) => (samples as f64 / per_step).ceil(),
            (Some(epochs), None, None) if epochs.is_finite() && epochs > 0.0 => {
                ((epochs * rows as f64).round() / per_step).ceil().max(1.0)
            }
            (Some(epochs), None, None) => return out_of_range("epochs", epochs, "a finite positive number"),
            (epochs, steps, samples) => {
                let given = [epochs.is_some(), steps.is_some(), samples.is_some()];
                return Err(SearchSpaceError::Budgets { given: given.into_iter().filter(|&given| given).count() });
            }
        };
        // Up to here every count is exact.
        if steps * per_step > MOST_SAMPLES {
            return out_of_range("samples", steps * per_step, "at most 2^53 over all steps");
        }
        Ok(steps as u64)
    }

    fn warmup(&self, job: &str, steps: u64) -> Result<u64, SearchSpaceError> {
        let warmup = match (self.warmup_ratio, self.warmup_steps) {
            (None, given) => given.unwrap_or(0),
            (Some(ratio), None) if (0.0..1.0).contains(&ratio) => (ratio * steps as f64).ceil() as u64,
            (Some(value), None) => {
                let (key, expected) = ("warmup_ratio", "at least 0 and under 1");
                return Err(SearchSpaceError::OutOfRange { job: job.to_owned(), key, value, expected });
            }
            (Some(_), Some(_)) => return Err(SearchSpaceError::TwoWarmups),
        };
        // With steps of 0 the job's own check has the better word.
        if warmup > 0 && warmup >= steps && steps > 0 {
            return Err(SearchSpaceError::WarmupTooLong { job: job.to_owned(), warmup, steps });
        }
        Ok(warmup)
    }

    fn name(&self, point: &Point) -> String {
        let mut name = format!("r{}", point.rank);
        if self.alpha_per_rank.len() > 1 {
            name += &format!("-a{}", short(point.alpha));
        }
        name += &format!("-lr{}", short(point.learning_rate));
        if self.weight_decay.len() > 1 {
            name += &format!("-wd{}", short(point.weight_decay));
        }
        name += &format!("-b{}", point.batch);
        if self.seed.len() > 1 {
            name += &format!("-s{}", point.seed);
        }
        name
    }
}

/// One point of the grid; `alpha` is per rank.
struct Point {
    rank: usize,
    alpha: f64,
    learning_rate: f64,
    weight_decay: f64,
    batch: usize,
    seed: u64,
}

fn check_list<T: PartialEq + ToString>(key: &'static str, list: &[T]) -> Result<(), SearchSpaceError> {
    if list.is_empty() {
        return Err(SearchSpaceError::EmptyList { key });
    }
    for (index, entry) in list.iter().enumerate() {
        if list[..index].contains(entry) {
            return Err(SearchSpaceError::Duplicate { key, value: entry.to_string() });
        }
    }
    Ok(())
}

/// The number in as few characters as people write it: `0.001`, but `1e-5`.
fn short(number: f64) -> String {
    if number == 0.0 || (1e-4..1e6).contains(&number.abs()) { format!("{number}") } else { format!("{number:e}") }
}
