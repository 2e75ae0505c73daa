//! How a system computes an adapted linear layer: with how many kernels, moving how much.

/// Forward and backward of one linear layer with its adapters. A frozen layer's backward is one product.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernels {
    /// Share of a vendor library's speed that the base product reaches.
    pub(super) base_share: f64,
    /// Launches whatever the number of adapters.
    pub(super) launches: f64,
    /// More launches for each adapter.
    pub(super) launches_per_adapter: f64,
    /// Share of both that forward makes.
    pub(super) forward: f64,
    /// How often the adapters read or write a number as wide as the layer's input.
    pub(super) input_moves: f64,
    /// The same for its output.
    pub(super) output_moves: f64,
    /// Whether all adapters are computed at the largest rank among them.
    pub(super) padded: bool,
}

/// PEFT's `lora.Linear` in PyTorch: base, down, up, scale, add; backward base, scale, dB, dS, dA, down's dX, add.
///
/// Each operation reads and writes the device's memory. Forward: down reads the input; up writes an output, scale
/// reads and writes it, add reads two and writes one. Backward: scale reads and writes the gradient of the output, dB
/// and dS read it; dA reads the input, dX is written, add reads two and writes one.
pub(super) const UNFUSED: Kernels = Kernels {
    base_share: 1.0,
    launches: 2.0,
    launches_per_adapter: 10.0,
    forward: 5.0 / 12.0,
    input_moves: 6.0,
    output_moves: 10.0,
    padded: false,
};

/// Grouped kernels, as this repository launches them: base, down, up; backward base, down, up, gradient twice, fold.
///
/// `up` adds to the output in place. Forward reads the input, reads and writes the output; backward reads the output's
/// gradient twice and the input, reads and writes the input's gradient.
pub(super) const GROUPED: Kernels = Kernels {
    base_share: 1.0,
    launches: 9.0,
    launches_per_adapter: 0.0,
    forward: 3.0 / 9.0,
    input_moves: 4.0,
    output_moves: 4.0,
    padded: false,
};

/// mLoRA: one base product for all adapters, then each has its own down, up and add: 3N launches a layer (ALTO,
/// arXiv:2604.05426). A layer is taken to be an adapted linear one, since an adapter can't do its seven with three;
/// backward is taken to launch twice as many as forward.
///
/// Forward reads the input, writes an output, and adding it reads two and writes one. Backward reads the output's
/// gradient twice, reads the input, writes its gradient, and adding reads two and writes one.
pub(super) const PER_ADAPTER: Kernels = Kernels {
    base_share: 1.0,
    launches: 2.0,
    launches_per_adapter: 9.0,
    forward: 1.0 / 3.0,
    input_moves: 6.0,
    output_moves: 6.0,
    padded: false,
};

/// LoRAFusion (arXiv:2510.00206): what is memory-bound is fused around the products. Forward is down, and base with
/// up at its end; backward is dB with dS, dA, and base with the adapter's dX at its end.
///
/// The fused base product runs 10 to 20% under the vendor's (ALTO, arXiv:2604.05426): 15 here. Its tiles have one
/// width, so that ranks are widened to the largest. Reads the input twice and the output's gradient once more than
/// the base does.
pub(super) const FUSED: Kernels = Kernels {
    base_share: 0.85,
    launches: 5.0,
    launches_per_adapter: 0.0,
    forward: 2.0 / 5.0,
    input_moves: 2.0,
    output_moves: 1.0,
    padded: true,
};

/// Launches of a block beside its linear layers, taken to be the same in every system. Forward: two norms, rotary for
/// q and k, attention, two residuals, SwiGLU. Backward: one more for attention's keys, three to add up where inputs
/// are shared.
pub(super) const BLOCK_LAUNCHES: f64 = 20.0;

/// Of these, forward's.
pub(super) const BLOCK_FORWARD_LAUNCHES: f64 = 8.0;

/// Launches beside the blocks: embedding, and the last norm and the head, forward and backward.
pub(super) const HEAD_LAUNCHES: f64 = 5.0;
