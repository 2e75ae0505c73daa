//! The cases of `causal_attention`: rows of one length, and as many tokens in rows of very different lengths.

use alto_kernels::Rows;
use burn::tensor::Tensor;

use crate::case::{Case, forward, forward_backward};
use crate::plain;
use crate::random::Random;

const HEADS: usize = 9;
const KV_HEADS: usize = 3;
const DIM: usize = 64;
const SCALE: f32 = 0.125;

/// Forward, and forward with backward, of 16 rows.
pub fn attention_cases() -> Vec<Case> {
    let ragged: Vec<usize> = (1..=16).map(|i| 32 * i).collect();
    let sizes = [("16 rows of 272", vec![272; 16]), ("16 rows of 32 to 512", ragged)];
    sizes.into_iter().flat_map(|(size, row_lengths)| cases(size, &row_lengths)).collect()
}

fn cases(size: &str, row_lengths: &[usize]) -> [Case; 2] {
    let (tokens, mut random) = (row_lengths.iter().sum(), Random(21));
    let mut input = |heads| random.tensor([tokens, heads, DIM], 1.0);
    let inputs = vec![input(HEADS), input(KV_HEADS), input(KV_HEADS)];
    let name = |pass: &str| format!("causal_attention {pass}, {size}");
    let with = |compute: Compute| {
        let (inputs, rows) = (inputs.clone(), Rows::from(row_lengths));
        forward(move || {
            let [q, k, v] = [0, 1, 2].map(|i: usize| inputs[i].clone());
            compute(q, k, v, &rows, SCALE)
        })
    };
    let forward = Case {
        name: name("forward"),
        ours: with(alto_kernels::causal_attention),
        plain: with(plain::causal_attention),
        floor: None,
    };
    let with = |compute: Compute| {
        let rows = Rows::from(row_lengths);
        forward_backward(inputs.clone(), move |inputs| {
            let [q, k, v] = <[Tensor<3>; 3]>::try_from(inputs).expect("three inputs");
            compute(q, k, v, &rows, SCALE)
        })
    };
    let backward = Case {
        name: name("forward and backward"),
        ours: with(alto_kernels::causal_attention),
        plain: with(plain::causal_attention),
        floor: None,
    };
    [forward, backward]
}

type Compute = fn(Tensor<3>, Tensor<3>, Tensor<3>, &Rows, f32) -> Tensor<3>;
