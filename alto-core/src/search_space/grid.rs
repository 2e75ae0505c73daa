//! The jobs of a search space.

use super::error::SearchSpaceError;
use super::space::SearchSpace;
use crate::job::{AdamW, AdapterConfig, Job, SAMPLES_LIMIT, Schedule};

/// The most jobs in a grid.
pub(super) const JOBS_LIMIT: usize = 100_000;

impl SearchSpace {
    /// The grid's jobs for a training set of this many rows, each of them checked.
    ///
    /// Ranks vary slowest, then alphas, learning rates, weight decays, batches and seeds. A name has rank, learning
    /// rate and batch, and whatever else the grid varies, such as `r8-a2-lr0.001-b2-s1`.
    ///
    /// # Errors
    /// When a search chooses the jobs or there is a range for one to choose from, the grid has more than 100,000 jobs, a
    /// list is empty or has an entry twice, not exactly one budget is given,
    /// or a job's setting is out of range.
    pub fn jobs(&self, rows: usize) -> Result<Vec<Job>, SearchSpaceError> {
        if self.search.is_some() {
            return Err(SearchSpaceError::Searched);
        }
        let (ranks, alphas) = (self.rank.list("rank")?, self.alpha_per_rank.list("alpha_per_rank")?);
        let learning_rates = self.learning_rate.list("learning_rate")?;
        let weight_decays = self.weight_decay.list("weight_decay")?;
        let (batches, seeds) = (self.batch.list("batch")?, self.seed.list("seed")?);
        let lengths = [ranks.len(), alphas.len(), learning_rates.len(), weight_decays.len()];
        check_number(lengths.into_iter().chain([batches.len(), seeds.len()]))?;
        check_list("learning_rate", learning_rates)?;
        check_list("rank", ranks)?;
        check_list("batch", batches)?;
        check_list("alpha_per_rank", alphas)?;
        check_list("weight_decay", weight_decays)?;
        check_list("seed", seeds)?;
        let mut jobs = vec![];
        for &rank in ranks {
            for &alpha in alphas {
                for &learning_rate in learning_rates {
                    for &weight_decay in weight_decays {
                        for &batch in batches {
                            for &seed in seeds {
                                let settings = Settings { rank, alpha, learning_rate, weight_decay, batch, seed };
                                jobs.push(self.job_of(&settings, self.name(&settings, short), rows)?);
                            }
                        }
                    }
                }
            }
        }
        Ok(jobs)
    }

    /// Checks whatever is right or wrong for every number of rows.
    pub(super) fn check(&self) -> Result<(), SearchSpaceError> {
        if self.search.is_some() {
            return self.check_search();
        }
        self.jobs(budgetable_rows(self.epochs)).map(drop)
    }

    /// The job of these settings, checked.
    pub(super) fn job_of(&self, settings: &Settings, name: String, rows: usize) -> Result<Job, SearchSpaceError> {
        check_list("target_modules", &self.target_modules)?;
        let steps = self.budget(&name, settings.batch, rows)?;
        let job = Job {
            adapter: AdapterConfig {
                rank: settings.rank,
                alpha: settings.alpha * settings.rank as f64,
                rank_stabilized: self.rank_stabilized,
                targets: self.target_modules.iter().cloned().collect(),
            },
            optimizer: AdamW {
                weight_decay: settings.weight_decay,
                clip: self.clip,
                ..AdamW::new(settings.learning_rate)
            },
            schedule: Schedule { decay: self.decay, warmup_steps: self.warmup(&name, steps)? },
            batch: settings.batch,
            accumulation: self.accumulation,
            accumulation_mode: self.accumulation_mode,
            steps,
            seed: settings.seed,
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
        let per_step = batch.max(1) as u128 * self.accumulation.max(1) as u128;
        let steps = match (self.epochs, self.steps, self.samples) {
            (None, Some(steps), None) => u128::from(steps),
            (None, None, Some(0)) => return out_of_range("samples", 0.0, "at least 1"),
            (None, None, Some(samples)) => u128::from(samples).div_ceil(per_step),
            (Some(epochs), None, None) if epochs.is_finite() && epochs > 0.0 => {
                ((epochs * rows as f64).round() as u128).div_ceil(per_step).max(1)
            }
            (Some(epochs), None, None) => return out_of_range("epochs", epochs, "a finite positive number"),
            (epochs, steps, samples) => {
                let given = [epochs.is_some(), steps.is_some(), samples.is_some()];
                return Err(SearchSpaceError::Budgets { given: given.into_iter().filter(|&given| given).count() });
            }
        };
        let samples = steps.saturating_mul(per_step);
        if samples > u128::from(SAMPLES_LIMIT) {
            return out_of_range("samples", samples as f64, "at most 2^53 over all steps");
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

    /// A name of what varies, with real numbers written so.
    pub(super) fn name(&self, settings: &Settings, short: impl Fn(f64) -> String) -> String {
        let mut name = format!("r{}", settings.rank);
        if self.alpha_per_rank.vary() {
            name += &format!("-a{}", short(settings.alpha));
        }
        name += &format!("-lr{}", short(settings.learning_rate));
        if self.weight_decay.vary() {
            name += &format!("-wd{}", short(settings.weight_decay));
        }
        name += &format!("-b{}", settings.batch);
        if self.seed.vary() {
            name += &format!("-s{}", settings.seed);
        }
        name
    }
}

/// What jobs of one search space differ in; `alpha` is per rank.
pub(super) struct Settings {
    pub(super) rank: usize,
    pub(super) alpha: f64,
    pub(super) learning_rate: f64,
    pub(super) weight_decay: f64,
    pub(super) batch: usize,
    pub(super) seed: u64,
}

/// So many rows that no warm-up is too long only for want of them.
pub(super) fn budgetable_rows(epochs: Option<f64>) -> usize {
    epochs.map_or(1, |epochs| (SAMPLES_LIMIT as f64 / 2.0 / epochs) as usize).max(1)
}

/// Checks how many jobs lists of these lengths make.
fn check_number(lengths: impl Iterator<Item = usize>) -> Result<(), SearchSpaceError> {
    // A list that is empty has an error of its own.
    match lengths.fold(1, |jobs: usize, entries| jobs.saturating_mul(entries.max(1))) {
        jobs if jobs > JOBS_LIMIT => Err(SearchSpaceError::TooManyJobs { jobs }),
        _ => Ok(()),
    }
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
