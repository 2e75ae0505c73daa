//! One hyperparameter configuration: one adapter, its optimizer and its budget.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The largest rank of an adapter.
pub const RANK_LIMIT: usize = 65_536;

/// The most rows in one optimizer step: micro-batches times their rows.
pub const STEP_ROWS_LIMIT: usize = 1 << 20;

/// The most rows that a job may see over all its steps: numbers up to here are exact in f64, as progress needs them.
pub const SAMPLES_LIMIT: u64 = 1 << 53;

/// The size and place of one LoRA adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdapterConfig {
    /// Inner dimension; may exceed a layer's width.
    pub rank: usize,
    /// Numerator of the scale that the adapter's output is multiplied with.
    pub alpha: f64,
    /// Scale by `alpha / sqrt(rank)` (rsLoRA) instead of `alpha / rank`.
    #[serde(default)]
    pub rank_stabilized: bool,
    /// Names of the linear layers that get an adapter, such as `q_proj`, in every block.
    pub targets: BTreeSet<String>,
}

impl AdapterConfig {
    /// The factor on the adapter's output: `alpha / rank`, or `alpha / sqrt(rank)` if rank-stabilized.
    pub fn scale(&self) -> f64 {
        let rank = self.rank as f64;
        self.alpha / if self.rank_stabilized { rank.sqrt() } else { rank }
    }
}

/// AdamW with decoupled weight decay (Loshchilov & Hutter, 2019), as `torch.optim.AdamW` computes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdamW {
    /// Peak learning rate; the schedule multiplies it with a factor of 0 to 1.
    pub learning_rate: f64,
    /// Decoupled weight decay, applied to every adapter tensor.
    #[serde(default)]
    pub weight_decay: f64,
    /// Decay rates of the first and second moment.
    #[serde(default = "AdamW::default_betas")]
    pub betas: (f64, f64),
    /// Added to the root of the second moment.
    #[serde(default = "AdamW::default_epsilon")]
    pub epsilon: f64,
    /// Largest gradient norm, over all tensors of the adapter together; `None` doesn't clip.
    #[serde(default)]
    pub clip: Option<f64>,
}

impl AdamW {
    /// AdamW at this learning rate: no weight decay, betas 0.9 and 0.999, epsilon 1e-8, no clipping.
    pub fn new(learning_rate: f64) -> Self {
        Self {
            learning_rate,
            weight_decay: 0.0,
            betas: Self::default_betas(),
            epsilon: Self::default_epsilon(),
            clip: None,
        }
    }

    fn default_betas() -> (f64, f64) {
        (0.9, 0.999)
    }

    fn default_epsilon() -> f64 {
        1e-8
    }
}

/// What happens to the learning rate after its warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decay {
    /// Stays at its peak.
    Constant,
    /// Falls in a line to zero at the last step.
    Linear,
    /// Falls along a half cosine to zero at the last step.
    Cosine,
}

/// The learning rate's course over a job's steps, as in Hugging Face's `get_*_schedule_with_warmup`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// What follows the warm-up.
    pub decay: Decay,
    /// Steps over which the rate rises from zero; the first of them runs at rate 0.
    #[serde(default)]
    pub warmup_steps: u64,
}

impl Schedule {
    /// The factor on the peak learning rate for the step with index `step` (0 is the first) of `steps`.
    pub fn factor(&self, step: u64, steps: u64) -> f64 {
        if step < self.warmup_steps {
            return step as f64 / self.warmup_steps.max(1) as f64;
        }
        let span = steps.saturating_sub(self.warmup_steps).max(1) as f64;
        let done = (step - self.warmup_steps) as f64 / span;
        match self.decay {
            Decay::Constant => 1.0,
            Decay::Linear => (1.0 - done).max(0.0),
            Decay::Cosine => (0.5 * (1.0 + (std::f64::consts::PI * done).cos())).max(0.0),
        }
    }
}

/// How the micro-batches of one optimizer step weigh in its loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccumulationMode {
    /// The sum over all labelled tokens of the step divided by their number, as Hugging Face's Trainer does.
    #[default]
    TokenMean,
    /// The mean of the micro-batches' means.
    MeanOfMeans,
}

/// One hyperparameter configuration of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Names the job in reports and directories; unique within a task.
    pub name: String,
    /// Size and place of its adapter.
    pub adapter: AdapterConfig,
    /// Its optimizer's settings.
    pub optimizer: AdamW,
    /// Its learning rate's course.
    pub schedule: Schedule,
    /// Rows in one micro-batch.
    pub batch: usize,
    /// Micro-batches in one optimizer step.
    pub accumulation: usize,
    /// How micro-batches weigh in the loss.
    #[serde(default)]
    pub accumulation_mode: AccumulationMode,
    /// Budget, in optimizer steps.
    pub steps: u64,
    /// Seeds the order of its data and its adapter's start.
    pub seed: u64,
}

impl Job {
    /// Rows seen after `steps` optimizer steps of a job that passes [`check`](Self::check).
    pub fn samples(&self, steps: u64) -> u64 {
        steps * (self.batch * self.accumulation) as u64
    }

    /// Progress after `steps` optimizer steps: samples seen over samples budgeted.
    pub fn progress(&self, steps: u64) -> f64 {
        steps as f64 / self.steps as f64
    }

    /// The learning rate of the step with index `step` (0 is the first).
    pub fn learning_rate(&self, step: u64) -> f64 {
        self.optimizer.learning_rate * self.schedule.factor(step, self.steps)
    }

    /// Optimizer steps after which the adapter has moved: a first one at learning rate 0 if it warms up, and one more.
    pub fn steps_to_move(&self) -> u64 {
        1 + u64::from(self.schedule.warmup_steps > 0)
    }

    /// Checks every setting that can be judged without a model or data.
    ///
    /// # Errors
    /// Names the job, the setting, its value and what would be right.
    pub fn check(&self) -> Result<(), JobError> {
        let wrong = |setting, value: f64, expected| {
            Err(JobError::OutOfRange { job: self.name.clone(), setting, value, expected })
        };
        // Devices compute in f32, where a tiny number would be 0 and a huge one infinite.
        let positive = |x: f64| (x as f32).is_finite() && x as f32 > 0.0;
        let expected_positive = "a finite positive number within f32";
        let (beta1, beta2) = self.optimizer.betas;
        if self.adapter.rank == 0 {
            return wrong("rank", 0.0, "at least 1");
        }
        if self.adapter.rank > RANK_LIMIT {
            return wrong("rank", self.adapter.rank as f64, "at most 65536");
        }
        for (setting, value) in [("alpha", self.adapter.alpha), ("scale", self.adapter.scale())] {
            if !positive(value) {
                return wrong(setting, value, expected_positive);
            }
        }
        if self.adapter.targets.is_empty() {
            return Err(JobError::NoTargets { job: self.name.clone() });
        }
        if !positive(self.optimizer.learning_rate) {
            return wrong("learning rate", self.optimizer.learning_rate, expected_positive);
        }
        if self.optimizer.weight_decay != 0.0 && !positive(self.optimizer.weight_decay) {
            return wrong("weight decay", self.optimizer.weight_decay, "0 or a finite positive number within f32");
        }
        if let Some(beta) = [beta1, beta2].into_iter().find(|b| !(0.0..1.0).contains(b)) {
            return wrong("beta", beta, "at least 0 and under 1");
        }
        if !positive(self.optimizer.epsilon) {
            return wrong("epsilon", self.optimizer.epsilon, expected_positive);
        }
        if let Some(clip) = self.optimizer.clip.filter(|&c| !positive(c)) {
            return wrong("clip norm", clip, expected_positive);
        }
        for (setting, value) in
            [("batch", self.batch as u64), ("accumulation", self.accumulation as u64), ("steps", self.steps)]
        {
            if value == 0 {
                return wrong(setting, 0.0, "at least 1");
            }
        }
        let rows = self.batch.checked_mul(self.accumulation).filter(|&rows| rows <= STEP_ROWS_LIMIT);
        let Some(rows) = rows else {
            let rows = self.batch as f64 * self.accumulation as f64;
            return wrong("batch times accumulation", rows, "at most 1048576 rows in an optimizer step");
        };
        if self.steps.checked_mul(rows as u64).is_none_or(|samples| samples > SAMPLES_LIMIT) {
            return wrong("samples over all steps", self.steps as f64 * rows as f64, "at most 2^53");
        }
        Ok(())
    }
}

/// A setting of a job that can't be trained with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// A number outside its range.
    #[error("job {job}: {setting} is {value}, but must be {expected}")]
    OutOfRange {
        /// The job's name.
        job: String,
        /// What the number sets.
        setting: &'static str,
        /// The number.
        value: f64,
        /// What would be right.
        expected: &'static str,
    },
    /// No layer gets an adapter.
    #[error("job {job}: no target modules, name at least one")]
    NoTargets {
        /// The job's name.
        job: String,
    },
}
