//! A model cut into stages of blocks, one on each device.

use super::cost::StepCost;
use super::error::CostError;
use super::kernels::Kernels;
use super::load::AdapterLoad;
use super::setup::Setup;
use super::split::dealt;
use super::work::{self, Part};

/// What the slowest stage takes for forward and backward of these adapters together, and to send what it hands on.
///
/// With `L` blocks on `d` devices some have `ceil(L / d)`; the last has `floor(L / d)` and the head, which makes it
/// the slowest where the vocabulary is large: the stage imbalance. A stage sends activations on and gradients back,
/// each `tokens * hidden`.
pub(super) fn slowest(setup: &Setup, loads: &[AdapterLoad], kernels: Kernels) -> Result<StepCost, CostError> {
    let (layers, devices) = (setup.model.layers, setup.devices);
    let stage =
        |layers, head| work::pass(setup, loads, kernels, Part { layers, head, shards: 1, collectives: 0, again: 0 });
    let last = stage(layers / devices, true)?;
    let stage = if devices > 1 { [stage(layers.div_ceil(devices), false)?, last] } else { [last; 2] };
    let cost = if stage[0].compute > stage[1].compute { stage[0] } else { stage[1] };
    let tokens: u64 = loads.iter().map(|load| load.tokens).sum();
    let bytes = 2.0 * tokens as f64 * setup.model.hidden as f64 * setup.dtype.bytes() as f64;
    Ok(StepCost { communication: setup.sent(bytes)?, ..cost })
}

/// A pipeline that is kept full by adapters: they are dealt out to `d` groups, which follow one another through the
/// stages.
///
/// As the groups are independent, one's next step begins while others are still in the pipeline, and there is no
/// bubble but for want of groups: a step takes `max(sum over groups of slowest stage, d * the longest group's)`.
pub(super) fn filled(setup: &Setup, loads: &[AdapterLoad], kernels: Kernels) -> Result<StepCost, CostError> {
    let mut sum = StepCost::default();
    let mut longest = StepCost::default();
    for group in dealt(loads, setup.devices) {
        let cost = slowest(setup, &group, kernels)?;
        sum = sum.then(cost);
        longest = if cost.seconds() > longest.seconds() { cost } else { longest };
    }
    let alone = longest.times(setup.devices as f64);
    let cost = if sum.seconds() >= alone.seconds() { sum } else { StepCost { launches: sum.launches, ..alone } };
    let groups = loads.iter().filter(|load| load.tokens > 0).count();
    Ok(StepCost { working: setup.devices.min(groups), ..cost })
}
