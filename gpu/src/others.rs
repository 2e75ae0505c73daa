//! The kernels beside the linear layers, over the smallest batch.

use std::ops::Range;

use alto_kernels::{AdamWGroup, AdamWState, Rows, causal_attention, grouped_adamw, linear_log_probs, rms_norm, swiglu};
use burn::tensor::{DType, Tensor};

use crate::clock::Clock;
use crate::random::Random;
use crate::record::{Record, Table, ms, ratio};
use crate::run::Run;

/// What a kernel takes on which tokens.
type Timed = fn(&Run, &Clock, usize) -> f64;

/// Times attention, log-probabilities, the optimizer and the elementwise kernels.
pub(crate) fn others(record: &mut Record, run: &Run) {
    let clock = Clock::new(&run.device, &run.sizes);
    let tokens = run.sizes.tokens(run.sizes.batches[0]);
    let mut rows = Vec::new();
    let timed: [(String, Timed); 6] = [
        (format!("attention forward over {tokens}"), attention_forward),
        (format!("attention, both ways, over {tokens}"), attention),
        (format!("norm, both ways, over {tokens}"), norm),
        (format!("log-probabilities, both ways, over {tokens}"), log_probs),
        (format!("swiglu, both ways, over {tokens}"), gated),
        (format!("optimizer of {} adapters", run.sizes.adapters), optimizer),
    ];
    for (what, time) in timed {
        record.part(&what, |record| {
            let seconds = time(run, &clock, tokens);
            let best = run.torch.best(&what, |_| true).map(|(_, torch)| torch / seconds);
            record.figure(format!("{what}: seconds"), seconds);
            rows.push(vec![what.clone(), ms(seconds), run.torch.all(&what), ratio(best)]);
        });
    }
    record.tables.push(Table {
        title: "Other kernels".to_owned(),
        note: "Milliseconds. PyTorch: `scaled_dot_product_attention` over equal rows, `rms_norm`, `cross_entropy` of all \
               logits, `silu`, and one `AdamW(fused=True)` over a flat tensor of all adapters, each clipped by its own norm."
            .to_owned(),
        columns: vec!["kernel", "ours", "PyTorch", "best PyTorch / ours"],
        rows,
    });
}

/// A tensor that is asked for its gradient.
fn leaf<const D: usize>(tensor: &Tensor<D>) -> Tensor<D> {
    Tensor::from_inner(tensor.clone()).require_grad()
}

/// Queries, keys and values, the rows and the scale.
fn heads(run: &Run, tokens: usize) -> ([Tensor<3>; 3], Rows, f32) {
    let (sizes, mut random) = (&run.sizes, Random::new());
    let dim = sizes.hidden / sizes.heads;
    let counts = [sizes.heads, sizes.kv_heads, sizes.kv_heads];
    let tensors = counts.map(|heads| random.tensor([tokens, heads, dim], 1.0, (&run.device, run.dtype)));
    (tensors, Rows::new(vec![sizes.row; tokens / sizes.row]), (dim as f32).powf(-0.5))
}

fn attention_forward(run: &Run, clock: &Clock, tokens: usize) -> f64 {
    let ([q, k, v], rows, scale) = heads(run, tokens);
    clock.time(|| drop(causal_attention(q.clone(), k.clone(), v.clone(), &rows, scale)))
}

fn attention(run: &Run, clock: &Clock, tokens: usize) -> f64 {
    let (tensors, rows, scale) = heads(run, tokens);
    clock.time(|| {
        let [q, k, v] = tensors.each_ref().map(leaf);
        drop(causal_attention(q, k, v, &rows, scale).backward());
    })
}

fn norm(run: &Run, clock: &Clock, tokens: usize) -> f64 {
    let (mut random, on) = (Random::new(), (&run.device, run.dtype));
    let x = random.tensor::<2>([tokens, run.sizes.hidden], 1.0, on);
    let weight = random.tensor::<1>([run.sizes.hidden], 1.0, on);
    clock.time(|| drop(rms_norm(leaf(&x), Tensor::from_inner(weight.clone()), 1e-5).backward()))
}

fn log_probs(run: &Run, clock: &Clock, tokens: usize) -> f64 {
    let (vocabulary, hidden) = (run.sizes.vocabulary, run.sizes.hidden);
    let (mut random, on) = (Random::new(), (&run.device, run.dtype));
    let x = random.tensor::<2>([tokens, hidden], 1.0, on);
    let head = random.tensor::<2>([vocabulary, hidden], 0.05, on);
    let targets: Vec<Option<u32>> = (0..tokens).map(|token| Some((token * 31 % vocabulary) as u32)).collect();
    clock.time(|| drop(linear_log_probs(leaf(&x), Tensor::from_inner(head.clone()), &targets).backward()))
}

fn gated(run: &Run, clock: &Clock, tokens: usize) -> f64 {
    let (mut random, on) = (Random::new(), (&run.device, run.dtype));
    let [gate, up] = [(); 2].map(|()| random.tensor::<2>([tokens, run.sizes.intermediate], 1.0, on));
    clock.time(|| drop(swiglu(leaf(&gate), leaf(&up)).backward()))
}

fn optimizer(run: &Run, clock: &Clock, _tokens: usize) -> f64 {
    let (sizes, mut random) = (&run.sizes, Random::new());
    let widths: usize = sizes.linears_of_block().iter().map(|[d_out, d_in]| d_out + d_in).sum();
    let each = sizes.layers * sizes.rank * widths;
    let mut flat = || random.tensor::<1>([sizes.adapters * each], 0.01, (&run.device, DType::F32));
    let gradient = flat();
    let span = |adapter: usize| adapter * each..(adapter + 1) * each;
    let group = |span: Range<usize>| AdamWGroup {
        spans: vec![span],
        learning_rate: 1e-4,
        weight_decay: 0.01,
        betas: (0.9, 0.999),
        epsilon: 1e-8,
        clip: Some(1.0),
        step: 10,
    };
    let groups: Vec<AdamWGroup> = (0..sizes.adapters).map(span).map(group).collect();
    let mut state = Some(AdamWState { parameters: flat(), first: flat(), second: flat().abs() });
    clock.time(|| {
        let (next, _) = grouped_adamw(state.take().expect("back from the last step"), gradient.clone(), &groups);
        state = Some(next);
    })
}
