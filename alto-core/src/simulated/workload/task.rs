//! A task by its sizes.

use alto_sched::{Choice, Task};
use serde::{Deserialize, Serialize};

use crate::dtype::Dtype;
use crate::job::{AdamW, AdapterConfig, Decay, Job, Schedule};
use crate::simulated::systems::{AdapterLoad, CostError, Device, ModelShape, Optimizer, Setup, System};

/// A base model, a data set and the jobs to try, by what decides how long they take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuningTask {
    /// What it is called.
    pub name: String,
    /// When it is submitted, in seconds.
    pub release: f64,
    /// Name of a [shipped model](ModelShape::shipped).
    pub model: String,
    /// How many devices it trains on.
    pub devices: usize,
    /// Tokens of a row of its data.
    pub row_tokens: u64,
    /// What to try.
    pub jobs: Vec<TaskJob>,
}

/// One configuration of a task.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskJob {
    /// Its rank.
    pub rank: usize,
    /// Its peak learning rate.
    pub learning_rate: f64,
    /// Rows in an optimizer step.
    pub batch: usize,
    /// Rows to be seen in all.
    pub samples: u64,
}

impl TaskJob {
    /// Its optimizer steps.
    pub fn steps(&self) -> u64 {
        self.samples.div_ceil(self.batch.max(1) as u64)
    }

    /// What it brings to a step with rows of so many tokens.
    pub fn load(&self, row_tokens: u64) -> AdapterLoad {
        AdapterLoad::new(self.rank, self.batch, row_tokens)
    }

    /// The job that a trainer takes, with the other settings as in ALTO's evaluation: alpha twice the rank, all seven
    /// target modules, weight decay 0.01. The rate stays at its peak.
    pub fn to_job(&self, name: &str, seed: u64) -> Job {
        let targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];
        Job {
            name: name.to_owned(),
            adapter: AdapterConfig {
                rank: self.rank,
                alpha: 2.0 * self.rank as f64,
                rank_stabilized: false,
                targets: targets.map(str::to_owned).into(),
            },
            optimizer: AdamW { weight_decay: 0.01, ..AdamW::new(self.learning_rate) },
            schedule: Schedule { decay: Decay::Constant, warmup_steps: 0 },
            batch: self.batch,
            accumulation: 1,
            accumulation_mode: Default::default(),
            steps: self.steps(),
            seed,
        }
    }
}

impl TuningTask {
    /// This system with the task's model on as many of these devices as it trains on, in bf16 where they have it,
    /// with ALTO's optimizer: AdamW with moments of 8 bits. Nothing is recomputed.
    ///
    /// # Errors
    /// The model isn't shipped, or the device lacks a parameter.
    pub fn setup(&self, system: System, device: &Device) -> Result<Setup, CostError> {
        let dtype = if device.flops.bf16.is_some() { Dtype::Bf16 } else { Dtype::F32 };
        let optimizer = Optimizer::AdamW8Bit;
        let model = ModelShape::named(&self.model)?;
        let setup =
            Setup { system, device: device.clone(), model, dtype, devices: self.devices, optimizer, recompute: false };
        setup.check()?;
        Ok(setup)
    }

    /// The task as a scheduler sees it, if it takes so long on this kind of device.
    pub fn to_task(&self, kind: Option<&str>, seconds: f64) -> Task {
        let kind = kind.map(str::to_owned);
        let options = vec![Choice { kind, width: self.devices as u32, duration: seconds, memory: 0 }];
        Task { name: self.name.clone(), release: self.release, weight: 1.0, options }
    }
}
