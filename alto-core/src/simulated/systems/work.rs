//! The work of a pass and the time that a device takes for it.

use super::cost::StepCost;
use super::error::CostError;
use super::kernels::{BLOCK_FORWARD_LAUNCHES, BLOCK_LAUNCHES, HEAD_LAUNCHES, Kernels};
use super::load::AdapterLoad;
use super::setup::Setup;

/// The part of a model that a device computes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// Blocks.
    pub(super) layers: usize,
    /// Whether it has the head.
    pub(super) head: bool,
    /// Devices over which each product is cut.
    pub(super) shards: usize,
    /// Collective operations of a block.
    pub(super) collectives: usize,
    /// Of these, those that are made again when forward is.
    pub(super) again: usize,
}

impl Part {
    /// All of the model.
    pub(super) fn whole(setup: &Setup) -> Part {
        Part { layers: setup.model.layers, head: true, shards: 1, collectives: 0, again: 0 }
    }
}

/// What kernels of one class compute and move.
#[derive(Debug, Clone, Copy)]
struct Work {
    flop: f64,
    bytes: f64,
}

impl Work {
    /// The work of kernels that make so much of the operations and move so much of the bytes.
    fn share(self, flop: f64, bytes: f64) -> Work {
        Work { flop: flop * self.flop, bytes: bytes * self.bytes }
    }

    /// The roofline: whichever takes longer.
    fn seconds(self, rate: f64, bandwidth: f64) -> f64 {
        (self.flop / rate).max(self.bytes / bandwidth)
    }
}

/// Forward and backward of one micro-batch of each of these adapters together, and the blocks' forward once more where
/// it is recomputed.
///
/// The sum over base products, adapters, attention, element-wise kernels and head of each one's roofline, and the
/// setup of all kernels; or their sending, if that takes longer, since the host sends while the device computes.
pub(super) fn pass(setup: &Setup, loads: &[AdapterLoad], kernels: Kernels, part: Part) -> Result<StepCost, CostError> {
    let loads: Vec<AdapterLoad> = loads.iter().copied().filter(|load| load.tokens > 0).collect();
    if loads.is_empty() {
        return Ok(StepCost::default());
    }
    let (rate, bandwidth) = (setup.device.rate(setup.dtype)?, setup.device.memory_bandwidth);
    let (layers, shards) = (part.layers as f64, part.shards as f64);
    let seconds = |work: Work| work.seconds(rate, bandwidth);
    // Forward and backward, and forward once more if backward has to.
    let both = |work: Work, forward: Work| seconds(work) + if setup.recompute { seconds(forward) } else { 0.0 };
    let work = base(setup, &loads);
    let mut device = layers / shards * both(work, work.share(0.5, 0.5)) / kernels.base_share;
    // Two of six operations, and about half of what is moved, in every system.
    let work = adapters(setup, &loads, kernels);
    device += layers / shards * both(work, work.share(1.0 / 3.0, 0.5));
    let work = attention(setup, &loads);
    device += layers / shards * both(work, work.share(2.0 / 7.0, 1.0 / 3.0));
    // A third for norms and residuals, a half for rotary, three of eight for SwiGLU.
    let work = elementwise(setup, &loads, shards);
    device += layers * both(work, work.share(0.0, 3.0 / 8.0));
    if part.head {
        device += seconds(head(setup, &loads)) / shards;
    }
    let of_linear = kernels.launches + loads.len() as f64 * kernels.launches_per_adapter;
    let mut of_block = 7.0 * of_linear + BLOCK_LAUNCHES + part.collectives as f64;
    if setup.recompute {
        of_block += 7.0 * of_linear * kernels.forward + BLOCK_FORWARD_LAUNCHES + part.again as f64;
    }
    let launches = layers * of_block + if part.head { HEAD_LAUNCHES } else { 0.0 };
    Ok(StepCost { working: 1, ..launched(setup, device, launches) })
}

/// The optimizer's update of these adapters in so many launches: only what it moves counts.
pub(super) fn update(setup: &Setup, loads: &[AdapterLoad], launches: usize, shards: usize) -> StepCost {
    if loads.is_empty() {
        return StepCost::default();
    }
    let numbers: u64 = loads.iter().map(|load| setup.model.adapter_parameters(load.rank)).sum();
    let device = setup.optimizer.moved() as f64 * numbers as f64 / shards as f64 / setup.device.memory_bandwidth;
    StepCost { working: 1, ..launched(setup, device, launches as f64) }
}

fn launched(setup: &Setup, device: f64, launches: f64) -> StepCost {
    let launch = setup.device.launch;
    let compute = (device + launches * launch.setup_seconds).max(launches * launch.send_seconds);
    StepCost { compute, launches, ..StepCost::default() }
}

/// Of one block: forward and the gradient of the input, each reading the weights, an input and writing an output.
fn base(setup: &Setup, loads: &[AdapterLoad]) -> Work {
    let (weights, (inputs, outputs)) = (setup.model.block_parameters() as f64, setup.model.adapted());
    let moved = weights + tokens(loads) * (inputs + outputs) as f64;
    Work { flop: 4.0 * tokens(loads) * weights, bytes: 2.0 * bytes(setup) * moved }
}

/// Of one block: down and up forward, and for each the gradients of its input and its factor backward: six operations
/// for each token and number. Factors are f32, read twice, and their gradients written.
fn adapters(setup: &Setup, loads: &[AdapterLoad], kernels: Kernels) -> Work {
    let (inputs, outputs) = setup.model.adapted();
    let widest = loads.iter().map(|load| load.rank).max().unwrap_or(0);
    let mut work = Work { flop: 0.0, bytes: 0.0 };
    for load in loads {
        let rank = if kernels.padded { widest } else { load.rank };
        let numbers = (rank * (inputs + outputs)) as f64;
        let moved = kernels.input_moves * inputs as f64 + kernels.output_moves * outputs as f64;
        work.flop += 6.0 * load.tokens as f64 * numbers;
        work.bytes += load.tokens as f64 * bytes(setup) * moved + 12.0 * numbers;
    }
    work
}

/// Of one block: two causal products forward, five backward (Dao, 2023: recomputed scores), each over half a square;
/// moves queries, keys, values and outputs three times.
fn attention(setup: &Setup, loads: &[AdapterLoad]) -> Work {
    let (queries, keys) = (setup.model.queries() as f64, setup.model.keys() as f64);
    let squared: f64 = loads.iter().map(AdapterLoad::squared_tokens).sum();
    Work { flop: 7.0 * queries * squared, bytes: 3.0 * bytes(setup) * tokens(loads) * 2.0 * (queries + keys) }
}

/// Of one block: norms and residuals move ten numbers as wide as the residual stream forward and twenty backward,
/// which devices that share products all do; rotary moves queries and keys twice each way, SwiGLU three and five of
/// its width.
fn elementwise(setup: &Setup, loads: &[AdapterLoad], shards: f64) -> Work {
    let model = &setup.model;
    let inner = 4 * (model.queries() + model.keys()) + 8 * model.intermediate;
    let moved = 30.0 * model.hidden as f64 + inner as f64 / shards;
    Work { flop: 0.0, bytes: bytes(setup) * tokens(loads) * moved }
}

/// Forward and the gradient of the input, for every token; logits are not counted as moved, in any system.
fn head(setup: &Setup, loads: &[AdapterLoad]) -> Work {
    let weights = (setup.model.vocabulary * setup.model.hidden) as f64;
    Work { flop: 4.0 * tokens(loads) * weights, bytes: 2.0 * bytes(setup) * weights }
}

fn tokens(loads: &[AdapterLoad]) -> f64 {
    loads.iter().map(|load| load.tokens).sum::<u64>() as f64
}

fn bytes(setup: &Setup) -> f64 {
    setup.dtype.bytes() as f64
}
