//! The cases of `linear_log_probs`: all tokens labelled, and as many labelled ones among twice as many.

use burn::tensor::Tensor;

use crate::case::{Case, forward, forward_backward};
use crate::plain;
use crate::random::Random;

const LABELLED: usize = 1024;

/// Forward, and forward with backward, at two sizes of the head.
pub fn log_probs_cases() -> Vec<Case> {
    [(288, 32_000, 1), (288, 32_000, 2), (576, 49_152, 1)].into_iter().flat_map(cases).collect()
}

/// Of `label_every` tokens, one is labelled.
fn cases((width, vocabulary, label_every): (usize, usize, usize)) -> [Case; 2] {
    let mut random = Random(31);
    let x = random.tensor([LABELLED * label_every, width], 1.0);
    let head = random.tensor([vocabulary, width], 0.2);
    let label = |token: usize| token.is_multiple_of(label_every).then(|| random.bits() % vocabulary as u32);
    let targets: Vec<Option<u32>> = (0..LABELLED * label_every).map(label).collect();
    let of = if label_every == 1 { String::new() } else { format!(" of {}", LABELLED * label_every) };
    let name = |pass: &str| format!("linear_log_probs {pass}, {LABELLED}{of} tokens, {width} x {vocabulary}");

    // The product that gives the logits; going backward, the one that gives the hidden states' gradient besides.
    let hidden = x.clone().slice([0..LABELLED, 0..width]);
    let with = |compute: Compute| {
        let (x, head, targets) = (x.clone(), head.clone(), targets.clone());
        forward(move || compute(x.clone(), head.clone(), &targets))
    };
    let forward = Case {
        name: name("forward"),
        ours: with(alto_kernels::linear_log_probs),
        plain: with(plain::linear_log_probs),
        floor: Some(forward({
            let (x, head) = (hidden.clone(), head.clone());
            move || x.clone().matmul(head.clone().transpose())
        })),
    };
    let on_graph = |x: &Tensor<2>, head: &Tensor<2>| {
        if x.is_require_grad() { Tensor::from_inner(head.clone()) } else { head.clone() }
    };
    let with = |compute: Compute| {
        let (head, targets) = (head.clone(), targets.clone());
        forward_backward(vec![x.clone()], move |mut inputs| {
            let x = inputs.remove(0);
            let head = on_graph(&x, &head);
            compute(x, head, &targets)
        })
    };
    let backward = Case {
        name: name("forward and backward"),
        ours: with(alto_kernels::linear_log_probs),
        plain: with(plain::linear_log_probs),
        floor: Some(Box::new({
            let (x, head) = (hidden, head.clone());
            move || {
                let logits = x.clone().matmul(head.clone().transpose());
                vec![logits.matmul(head.clone()).reshape([LABELLED * width])]
            }
        })),
    };
    [forward, backward]
}

type Compute = fn(Tensor<2>, Tensor<2>, &[Option<u32>]) -> Tensor<1>;
