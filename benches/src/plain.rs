//! What the kernels compute, from Burn's own tensor operations: how one would write it without them.

use alto_kernels::{LoraLane, LoraLanes, Rows};
use burn::tensor::activation::{log_softmax, softmax};
use burn::tensor::{Bool, Int, Tensor, TensorData};

/// As [`alto_kernels::multi_lora_linear`], for lanes that cover all tokens in order: the base product over the whole
/// batch, and a loop over the adapters for the rest.
pub(crate) fn multi_lora_linear(
    x: Tensor<2>,
    weight: Tensor<2>,
    a: Tensor<2>,
    b: Tensor<2>,
    lanes: &LoraLanes,
) -> Tensor<2> {
    let ([_, d_in], [_, d_out]) = (a.dims(), b.dims());
    let delta = |lane: &LoraLane| {
        let x = x.clone().slice([lane.rows.clone(), 0..d_in]);
        let a = a.clone().slice([lane.ranks.clone(), 0..d_in]);
        let b = b.clone().slice([lane.ranks.clone(), 0..d_out]);
        x.matmul(a.transpose()).matmul(b).mul_scalar(lane.scale)
    };
    let deltas = Tensor::cat(lanes.iter().map(delta).collect(), 0);
    x.matmul(weight.transpose()) + deltas
}

/// As [`alto_kernels::causal_attention`]: rows padded to the longest, scores of all heads at once, a mask, softmax.
pub(crate) fn causal_attention(q: Tensor<3>, k: Tensor<3>, v: Tensor<3>, row_lengths: &Rows, scale: f32) -> Tensor<3> {
    let ([_, heads, dim], [_, kv_heads, _]) = (q.dims(), k.dims());
    let (rows, longest) = (row_lengths.len(), row_lengths.iter().copied().max().unwrap_or(0));
    let padded = |x: Tensor<3>| {
        let [_, heads, _] = x.dims();
        let mut start = 0;
        let row = |&length: &usize| {
            let row = x.clone().slice([start..start + length, 0..heads, 0..dim]);
            start += length;
            let padding = Tensor::zeros([longest - length, heads, dim], &x.device());
            if length < longest { Tensor::cat(vec![row, padding], 0) } else { row }
        };
        Tensor::<3>::stack::<4>(row_lengths.iter().map(row).collect(), 0).swap_dims(1, 2)
    };
    // Each key and value head stands for a group of query heads.
    let for_all_heads = |x: Tensor<4>| {
        let group = heads / kv_heads;
        let shared = x.reshape([rows, kv_heads, 1, longest, dim]).expand([rows, kv_heads, group, longest, dim]);
        shared.reshape([rows, heads, longest, dim])
    };
    let (q, k, v) = (padded(q), for_all_heads(padded(k)), for_all_heads(padded(v)));
    // No query of a row sees padding: that comes after it.
    let future = Tensor::<2, Bool>::tril_mask([longest, longest], 0, &q.device());
    let future = future.reshape([1, 1, longest, longest]).expand([rows, heads, longest, longest]);
    let scores = q.matmul(k.swap_dims(2, 3)).mul_scalar(scale).mask_fill(future, f32::NEG_INFINITY);
    let output = softmax(scores, 3).matmul(v).swap_dims(1, 2);
    let row = |(row, &length): (usize, &usize)| {
        output.clone().slice([row..row + 1, 0..length, 0..heads, 0..dim]).reshape([length, heads, dim])
    };
    Tensor::cat(row_lengths.iter().enumerate().map(row).collect(), 0)
}

/// As [`alto_kernels::linear_log_probs`]: the logits of every labelled token, a log-softmax, and one entry of each.
pub(crate) fn linear_log_probs(x: Tensor<2>, head: Tensor<2>, targets: &[Option<u32>]) -> Tensor<1> {
    let labelled = targets.iter().enumerate().filter_map(|(token, target)| Some((token as i64, i64::from((*target)?))));
    let (tokens, targets): (Vec<i64>, Vec<i64>) = labelled.unzip();
    let (count, device) = (tokens.len(), x.device());
    let tokens = Tensor::<1, Int>::from_data(TensorData::new(tokens, [count]), &device);
    let targets = Tensor::<2, Int>::from_data(TensorData::new(targets, [count, 1]), &device);
    let logits = x.select(0, tokens).matmul(head.transpose());
    log_softmax(logits, 1).gather(1, targets).reshape([count])
}
