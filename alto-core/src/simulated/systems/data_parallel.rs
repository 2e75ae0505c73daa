//! One adapter after another, the rows of each spread over `d` devices that hold a part of the model each: FSDP.
//!
//! The busiest device has `ceil(rows / d)` rows; with fewer rows than devices, the others idle (*workers without
//! rows*). Each pass gathers the model twice, forward and backward, while it computes: `max(pass(busiest), 2 (d - 1)
//! / d model bytes / link)`. Then the adapter's gradients, in f32, are summed over all devices: `2 (d - 1) / d
//! gradient bytes / link` (ring), which hides behind nothing, and each device updates its part. Zhao et al., *PyTorch
//! FSDP*, 2023; idle workers as in ALTO (arXiv:2604.05426).

use super::cost::StepCost;
use super::error::CostError;
use super::kernels::UNFUSED;
use super::load::AdapterLoad;
use super::setup::Setup;
use super::work::{self, Part};

pub(super) fn pass(setup: &Setup, loads: &[AdapterLoad]) -> Result<StepCost, CostError> {
    let gathering = setup.sent(2.0 * setup.gathered(setup.model_bytes()))?;
    let collectives = if setup.devices > 1 { 2 } else { 0 };
    let part = Part { collectives, ..Part::whole(setup) };
    let mut all = StepCost::default();
    for &load in loads.iter().filter(|load| load.rows > 0) {
        let cost = work::pass(setup, &[busiest(load, setup.devices)], UNFUSED, part)?;
        let communication = (gathering - cost.compute).max(0.0);
        all = all.then(StepCost { communication, working: setup.devices.min(load.rows), ..cost });
    }
    Ok(all)
}

pub(super) fn update(setup: &Setup, loads: &[AdapterLoad]) -> Result<StepCost, CostError> {
    let mut all = StepCost::default();
    for &load in loads {
        let gradients = 4.0 * setup.model.adapter_parameters(load.rank) as f64;
        let communication = setup.sent(2.0 * setup.gathered(gradients))?;
        let cost = work::update(setup, &[load], 1, setup.devices);
        all = all.then(StepCost { communication, working: setup.devices, ..cost });
    }
    Ok(all)
}

/// What the device has that has most: its rows' share of the tokens, rounded up.
pub(super) fn busiest(load: AdapterLoad, devices: usize) -> AdapterLoad {
    let rows = load.rows.div_ceil(devices);
    // Of the most rows and tokens that there may be, the product is no 64-bit number.
    let tokens = (u128::from(load.tokens) * rows as u128).div_ceil(load.rows.max(1) as u128) as u64;
    AdapterLoad { rows, tokens, ..load }
}
