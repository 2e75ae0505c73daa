//! LoRAFusion: adapters are fused into the base product, which is 10 to 20% slower for it; ranks are widened to the
//! largest of the batch.
//!
//! On `d` devices, a pipeline that adapters fill, with balanced micro-batches: as mLoRA's here. Zhu et al.,
//! *LoRAFusion*, arXiv:2510.00206; the slower product and wider FLOP as in ALTO (arXiv:2604.05426).

use super::cost::StepCost;
use super::error::CostError;
use super::kernels::FUSED;
use super::load::AdapterLoad;
use super::setup::Setup;
use super::stages;

pub(super) fn pass(setup: &Setup, loads: &[AdapterLoad]) -> Result<StepCost, CostError> {
    stages::filled(setup, loads, FUSED)
}
