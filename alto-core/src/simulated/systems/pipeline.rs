//! One adapter after another through a pipeline of `d` stages, its rows as micro-batches.
//!
//! `(rows + d - 1) * slowest stage(one row)`: each stage waits `d - 1` times for its turn, the bubble. Huang et al.,
//! *GPipe*, 2019; one forward, one backward (Narayanan et al., 2021) has the same bubble.

use super::cost::StepCost;
use super::error::CostError;
use super::kernels::UNFUSED;
use super::load::AdapterLoad;
use super::setup::Setup;
use super::stages;

pub(super) fn pass(setup: &Setup, loads: &[AdapterLoad]) -> Result<StepCost, CostError> {
    let mut all = StepCost::default();
    for &load in loads.iter().filter(|load| load.rows > 0) {
        let row = AdapterLoad { rows: 1, tokens: load.tokens.div_ceil(load.rows as u64), ..load };
        let stage = stages::slowest(setup, &[row], UNFUSED)?;
        let turns = (load.rows + setup.devices - 1) as f64;
        let launches = stage.launches * load.rows as f64;
        all = all.then(StepCost { launches, working: setup.devices.min(load.rows), ..stage.times(turns) });
    }
    Ok(all)
}
