//! One adapter after another, each product cut over all `d` devices.
//!
//! Products, attention, head and adapters take `1 / d`; norms and residuals are done by all. Each block sums its
//! activations over the devices twice forward and twice backward: `4 * 2 (d - 1) / d * tokens * hidden bytes / link`
//! (ring), which hides behind nothing. Shoeybi et al., *Megatron-LM*, 2019.

use super::cost::StepCost;
use super::error::CostError;
use super::kernels::UNFUSED;
use super::load::AdapterLoad;
use super::setup::Setup;
use super::work::{self, Part};

pub(super) fn pass(setup: &Setup, loads: &[AdapterLoad]) -> Result<StepCost, CostError> {
    let collectives = if setup.devices > 1 { 4 } else { 0 };
    // Forward sums twice, and so does forward when it is made again.
    let part = Part { shards: setup.devices, collectives, again: collectives / 2, ..Part::whole(setup) };
    let mut all = StepCost::default();
    for &load in loads {
        let activations = load.tokens as f64 * (setup.model.hidden * setup.dtype.bytes()) as f64;
        let sums = if setup.recompute { 6.0 } else { 4.0 } * setup.model.layers as f64;
        let communication = sums * setup.sent(2.0 * setup.gathered(activations))?;
        let cost = work::pass(setup, &[load], UNFUSED, part)?;
        all = all.then(StepCost { communication, working: setup.devices * cost.working, ..cost });
    }
    Ok(all)
}
