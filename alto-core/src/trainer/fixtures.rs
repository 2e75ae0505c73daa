//! What this module's tests are made of.

use crate::job::{AccumulationMode, AdamW, AdapterConfig, Decay, Job, Schedule};

/// A job that no test cares about the details of.
pub(super) fn job(name: &str, batch: usize, steps: u64) -> Job {
    Job {
        name: name.into(),
        adapter: AdapterConfig { rank: 4, alpha: 8.0, rank_stabilized: false, targets: ["q_proj".into()].into() },
        optimizer: AdamW::new(1e-3),
        schedule: Schedule { decay: Decay::Constant, warmup_steps: 0 },
        batch,
        accumulation: 1,
        accumulation_mode: AccumulationMode::TokenMean,
        steps,
        seed: 0,
    }
}
