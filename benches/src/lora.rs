//! The cases of `multi_lora_linear`: adapters of rank 8, from one to 64 over the same tokens, and of mixed ranks.

use alto_kernels::{LoraLane, LoraLanes};
use burn::tensor::Tensor;

use crate::case::{Case, forward, forward_backward};
use crate::plain;
use crate::random::Random;

const TOKENS: usize = 2048;
const D_IN: usize = 576;
const D_OUT: usize = 1536;

/// Forward, and forward with backward, at every number of adapters. The floor is the base product alone.
pub fn lora_cases() -> Vec<Case> {
    let mixed = [4, 8, 16, 32, 64].into_iter().cycle().take(16).collect();
    let uniform = [1, 4, 16, 64].map(|adapters| (format!("{adapters} of rank 8"), vec![8; adapters]));
    let sizes = uniform.into_iter().chain([("16 of ranks 4 to 64".to_owned(), mixed)]);
    sizes.flat_map(|(size, ranks)| cases(&size, &ranks)).collect()
}

fn cases(size: &str, ranks: &[usize]) -> [Case; 2] {
    let mut random = Random(11);
    let (x, weight) = (random.tensor([TOKENS, D_IN], 1.0), random.tensor([D_OUT, D_IN], 1.0));
    let total = ranks.iter().sum();
    let (a, b) = (random.tensor([total, D_IN], 1.0), random.tensor([total, D_OUT], 1.0));
    let lanes = lanes(ranks);
    let name = |pass: &str| format!("multi_lora_linear {pass}, {size}");

    let inputs = (x.clone(), weight.clone(), a.clone(), b.clone(), lanes.clone());
    let with = |compute: Compute| {
        let (x, weight, a, b, lanes) = inputs.clone();
        forward(move || compute(x.clone(), weight.clone(), a.clone(), b.clone(), &lanes))
    };
    let forward = Case {
        name: name("forward"),
        ours: with(alto_kernels::multi_lora_linear),
        plain: with(plain::multi_lora_linear),
        floor: Some(with(|x, weight, _, _, _| x.matmul(weight.transpose()))),
    };
    let with = |compute: Compute| {
        let (weight, lanes) = (weight.clone(), lanes.clone());
        forward_backward(vec![x.clone(), a.clone(), b.clone()], move |inputs| {
            let [x, a, b] = <[Tensor<2>; 3]>::try_from(inputs).expect("three inputs");
            let weight = if x.is_require_grad() { Tensor::from_inner(weight.clone()) } else { weight.clone() };
            compute(x, weight, a, b, &lanes)
        })
    };
    let floor = forward_backward(vec![x.clone()], {
        let weight = weight.clone();
        move |mut inputs| {
            let x = inputs.remove(0);
            let weight = if x.is_require_grad() { Tensor::from_inner(weight.clone()) } else { weight.clone() };
            x.matmul(weight.transpose())
        }
    });
    let backward = Case {
        name: name("forward and backward"),
        ours: with(alto_kernels::multi_lora_linear),
        plain: with(plain::multi_lora_linear),
        floor: Some(floor),
    };
    [forward, backward]
}

type Compute = fn(Tensor<2>, Tensor<2>, Tensor<2>, Tensor<2>, &LoraLanes) -> Tensor<2>;

/// A lane for each rank; the tokens are dealt out evenly.
fn lanes(ranks: &[usize]) -> LoraLanes {
    let (count, mut end) = (ranks.len(), 0);
    let lane = |(index, rank): (usize, &usize)| {
        end += rank;
        LoraLane { rows: TOKENS * index / count..TOKENS * (index + 1) / count, ranks: end - rank..end, scale: 0.5 }
    };
    LoraLanes::new(ranks.iter().enumerate().map(lane).collect())
}
