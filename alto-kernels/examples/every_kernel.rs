//! Launches every kernel, in both directions, at the shapes of a few well-known models, and looks at no result.
//!
//! On an emulated GPU that runs nothing, this generates the very kernels that such models take on a real one, to be compiled
//! and looked at:
//! ```sh
//! eval "$(gpu/setup)"
//! EMULATED_RUN=0 EMULATED_PTX=target/ptx gpu/emulated target/debug/examples/every_kernel bf16
//! gpu/sass target/ptx
//! ```
//! Its argument is the dtype of weights and activations: f32, f16 or bf16.

use std::env;

use alto_kernels::{
    AdamWGroup, AdamWState, LoraLane, LoraLanes, Rows, causal_attention, grouped_adamw, linear_log_probs,
    multi_lora_linear, rms_norm, rotary, swiglu,
};
use burn::tensor::{DType, Device, Tensor};

struct Model {
    name: &'static str,
    width: usize,
    hidden: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
}

const MODELS: [Model; 3] = [
    Model { name: "SmolLM2-135M", width: 576, hidden: 1536, heads: 9, kv_heads: 3, head_dim: 64 },
    Model { name: "Llama-3.2-1B", width: 2048, hidden: 8192, heads: 32, kv_heads: 8, head_dim: 64 },
    Model { name: "Qwen3-0.6B", width: 1024, hidden: 3072, heads: 16, kv_heads: 8, head_dim: 128 },
];

/// As large as theirs, so that logits take more than one chunk.
const VOCABULARY: usize = 128_256;
/// Rows of two adapters each, and their ranks.
const ROW: usize = 256;
const RANKS: [usize; 4] = [4, 8, 16, 128];

fn main() {
    let dtype = match env::args().nth(1).as_deref() {
        Some("f32") => DType::F32,
        Some("f16") => DType::F16,
        Some("bf16") => DType::BF16,
        other => panic!("the dtype is {other:?}, expected f32, f16 or bf16"),
    };
    let device = Device::cuda(0).autodiff();
    for model in MODELS {
        println!("{}", model.name);
        block(&model, dtype, &device);
    }
    optimizer(&device);
}

/// One block of a model and its head, forward and backward.
fn block(model: &Model, dtype: DType, device: &Device) {
    let rows = Rows::new(vec![ROW; 2 * RANKS.len()]);
    let tokens = rows.tokens();
    let batch = Batch { lanes: lanes(), dtype, device: device.clone() };
    let (q_width, kv_width) = (model.heads * model.head_dim, model.kv_heads * model.head_dim);

    let x = batch.weights([tokens, model.width]).require_grad();
    let normed = rms_norm(x.clone(), batch.weights([model.width]), 1e-5);
    let tables = Tensor::<2>::zeros([ROW, model.head_dim / 2], (device, DType::F32));
    let turned = |width: usize, heads: usize| {
        let y = batch.linear(normed.clone(), width).reshape([tokens, heads, model.head_dim]);
        rotary(y, &rows, tables.clone(), tables.clone())
    };
    let (q, k) = (turned(q_width, model.heads), turned(kv_width, model.kv_heads));
    let v = batch.linear(normed, kv_width).reshape([tokens, model.kv_heads, model.head_dim]);
    let attended = causal_attention(q, k, v, &rows, (model.head_dim as f32).powf(-0.5));
    let x = x + batch.linear(attended.reshape([tokens, q_width]), model.width);

    let normed = rms_norm(x.clone(), batch.weights([model.width]), 1e-5);
    let gated = swiglu(batch.linear(normed.clone(), model.hidden), batch.linear(normed, model.hidden));
    let x = x + batch.linear(gated, model.width);

    let targets: Vec<Option<u32>> = (0..tokens as u32).map(|token| (token % 2 == 1).then_some(token)).collect();
    linear_log_probs(x, batch.weights([VOCABULARY, model.width]), &targets).backward();
}

/// Two rows for each adapter.
fn lanes() -> LoraLanes {
    let lane = |(index, &rank): (usize, &usize)| {
        let (first, before) = (index * 2 * ROW, RANKS[..index].iter().sum::<usize>());
        LoraLane { rows: first..first + 2 * ROW, ranks: before..before + rank, scale: 2.0 }
    };
    LoraLanes::new(RANKS.iter().enumerate().map(lane).collect())
}

struct Batch {
    lanes: LoraLanes,
    dtype: DType,
    device: Device,
}

impl Batch {
    fn weights<const D: usize>(&self, shape: [usize; D]) -> Tensor<D> {
        Tensor::zeros(shape, (&self.device, self.dtype))
    }

    /// A frozen layer and its adapters.
    fn linear(&self, x: Tensor<2>, width: usize) -> Tensor<2> {
        let [_, from] = x.dims();
        let factor =
            |width: usize| Tensor::<2>::zeros([RANKS.iter().sum(), width], (&self.device, DType::F32)).require_grad();
        multi_lora_linear(x, self.weights([width, from]), factor(from), factor(width), &self.lanes)
    }
}

/// One step of two adapters.
fn optimizer(device: &Device) {
    let entries = 10_000;
    let zeros = || Tensor::<1>::zeros([entries], (device, DType::F32)).inner();
    let group = |span| AdamWGroup {
        spans: vec![span],
        learning_rate: 1e-4,
        weight_decay: 0.01,
        betas: (0.9, 0.999),
        epsilon: 1e-8,
        clip: Some(1.0),
        step: 1,
    };
    let state = AdamWState { parameters: zeros(), first: zeros(), second: zeros() };
    let groups = [group(0..entries / 2), group(entries / 2..entries)];
    let (state, report) = grouped_adamw(state, zeros(), &groups);
    // Whatever they are, they have been computed.
    println!("{:?} {:?}", state.parameters.into_data().shape(), report.into_data().shape());
}
