//! One adapter after another: `sum of pass(adapter)` with the kernels of PEFT in PyTorch.
//!
//! On `d` devices, `d` adapters train at a time, each on one; a step is over when the device with most to do is done.
//! Counts as the baseline in ALTO (arXiv:2604.05426), mLoRA and LoRAFusion.

use super::cost::StepCost;
use super::error::CostError;
use super::kernels::UNFUSED;
use super::load::AdapterLoad;
use super::setup::Setup;
use super::split::dealt;
use super::work::{self, Part};

pub(super) fn pass(setup: &Setup, loads: &[AdapterLoad]) -> Result<StepCost, CostError> {
    busiest(setup, loads, |load| work::pass(setup, &[load], UNFUSED, Part::whole(setup)))
}

pub(super) fn update(setup: &Setup, loads: &[AdapterLoad]) -> Result<StepCost, CostError> {
    busiest(setup, loads, |load| Ok(work::update(setup, &[load], 1, 1)))
}

/// What the device takes that is done last, each taking its adapters one by one.
fn busiest(
    setup: &Setup,
    loads: &[AdapterLoad],
    cost: impl Fn(AdapterLoad) -> Result<StepCost, CostError>,
) -> Result<StepCost, CostError> {
    let mut devices = Vec::new();
    for part in dealt(loads, setup.devices) {
        let costs = part.into_iter().map(&cost).collect::<Result<Vec<_>, _>>()?;
        devices.push(costs.into_iter().fold(StepCost::default(), StepCost::then));
    }
    Ok(StepCost::slowest(devices))
}
