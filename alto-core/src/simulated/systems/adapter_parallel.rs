//! All adapters together with grouped kernels; on `d` devices each holds the base model and a share of the adapters.
//!
//! `max over devices of pass(its adapters together)`. Nothing is sent, unless the model takes more than half of a
//! device's memory: then each holds a part of it, and every pass gathers the parts twice, forward and backward, while
//! it computes: `max(pass, 2 (d - 1) / d model bytes / link)`. Gradients stay where their adapters are. ALTO
//! (arXiv:2604.05426) calls this rank-local adapter parallelism; from where on the model is cut, and that gathering
//! hides behind computing as FSDP's does, is ours.
//!
//! Where memory leaves few rows for a model that is cut, gathering is what a pass takes, and systems that leave
//! weights in their place are ahead: more rows in a pass, not faster kernels, would help.
//!
//! Adapters are dealt out by their tokens, to as many devices as make the pass shortest, where each device has the memory
//! for its part; else, or if that is as short, by their bytes, to all devices.

use super::cost::StepCost;
use super::error::CostError;
use super::kernels::GROUPED;
use super::load::AdapterLoad;
use super::setup::Setup;
use super::split::{dealt, dealt_by};
use super::work::{self, Part};

pub(super) fn pass(setup: &Setup, loads: &[AdapterLoad]) -> Result<StepCost, CostError> {
    Ok(split(setup, loads)?.1)
}

pub(super) fn update(setup: &Setup, loads: &[AdapterLoad]) -> Result<StepCost, CostError> {
    let (parts, _) = split(setup, loads)?;
    Ok(StepCost::slowest(parts.iter().map(|part| work::update(setup, part, 1, 1))))
}

/// Whether each device holds only a part of the model.
pub(super) fn is_cut(setup: &Setup) -> bool {
    setup.devices > 1 && setup.model_bytes() > setup.device.memory / 2.0
}

/// Which adapters each device trains, and what a pass of them takes.
pub(super) fn split(setup: &Setup, loads: &[AdapterLoad]) -> Result<(Vec<Vec<AdapterLoad>>, StepCost), CostError> {
    let most = setup.devices.min(loads.len()).max(1);
    let by_bytes = |devices| dealt_by(loads, devices, |load| setup.trained_bytes(load) as u64);
    let fits = |parts: &Vec<Vec<AdapterLoad>>| parts.iter().all(|part| has_memory(setup, part));
    let mut best: Option<(Vec<Vec<AdapterLoad>>, StepCost)> = None;
    for devices in 1..=most {
        let mut parts = dealt(loads, devices);
        if !fits(&parts) {
            parts = by_bytes(devices);
        }
        let cost = on_each(setup, &parts)?;
        let is_better = |best: &(_, StepCost)| cost.seconds() < best.1.seconds();
        if fits(&parts) && best.as_ref().is_none_or(is_better) {
            best = Some((parts, cost));
        }
    }
    match best {
        Some(best) => Ok(best),
        None => {
            let parts = by_bytes(most);
            let cost = on_each(setup, &parts)?;
            Ok((parts, cost))
        }
    }
}

/// Whether a device can hold these adapters beside its part of the model.
fn has_memory(setup: &Setup, loads: &[AdapterLoad]) -> bool {
    setup.base_bytes() + loads.iter().map(|load| setup.trained_bytes(load)).sum::<f64>() <= setup.device.memory
}

fn on_each(setup: &Setup, parts: &[Vec<AdapterLoad>]) -> Result<StepCost, CostError> {
    let collectives = if is_cut(setup) { 2 } else { 0 };
    let part = Part { collectives, ..Part::whole(setup) };
    let device = |loads: &Vec<AdapterLoad>| work::pass(setup, loads, GROUPED, part);
    let cost = StepCost::slowest(parts.iter().map(device).collect::<Result<Vec<_>, _>>()?);
    if !is_cut(setup) {
        return Ok(cost);
    }
    let gathering = setup.sent(2.0 * setup.gathered(setup.model_bytes()))?;
    Ok(StepCost { communication: (gathering - cost.compute).max(0.0), ..cost })
}
