//! mLoRA: the base product is made once for all adapters, then each adapter by itself: 3N launches a layer.
//!
//! On `d` devices, a pipeline that adapters fill: no bubble as long as there are as many adapters as devices, but every
//! stage takes as long as the slowest. Ye et al., *mLoRA*, arXiv:2312.02515; launches and imbalance as in ALTO
//! (arXiv:2604.05426).

use super::cost::StepCost;
use super::error::CostError;
use super::kernels::PER_ADAPTER;
use super::load::AdapterLoad;
use super::setup::Setup;
use super::stages;

pub(super) fn pass(setup: &Setup, loads: &[AdapterLoad]) -> Result<StepCost, CostError> {
    stages::filled(setup, loads, PER_ADAPTER)
}
