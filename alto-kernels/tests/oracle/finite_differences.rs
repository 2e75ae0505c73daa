//! Every reference's gradient against central differences of the reference itself.
//!
//! The loss is `sum(y * dy)`. Its slope along a random direction in one input is compared with the gradient's
//! component in that direction: an error in any entry shows, at the cost of two forward passes.

use alto_kernels::reference::{
    Matrix, causal_attention, causal_attention_backward, linear_log_probs, linear_log_probs_backward,
    multi_lora_linear, multi_lora_linear_backward, rms_norm, rms_norm_backward, rotary, rotary_backward, swiglu,
    swiglu_backward,
};

use crate::data::Draws;
use crate::shapes::shapes;

/// Along each coordinate. The error of a central difference is its square times the third derivative.
const STEP: f64 = 1e-4;
/// Relative to the gradient's norm.
const TOLERANCE: f64 = 1e-6;

/// Checks `gradients[i]`, the gradient of `inputs[i]`, along three directions each.
fn check(what: &str, inputs: &[&Matrix], gradients: &[&Matrix], dy: &Matrix, forward: impl Fn(&[&Matrix]) -> Matrix) {
    let loss = |inputs: &[&Matrix]| dot(&forward(inputs), dy);
    for (i, gradient) in gradients.iter().enumerate() {
        for seed in 0..3 {
            let direction = Draws::new(900 + seed).matrix(inputs[i].rows(), inputs[i].columns());
            let at = |distance: f64| {
                let moved = added(inputs[i], distance, &direction);
                let mut inputs = inputs.to_vec();
                inputs[i] = &moved;
                loss(&inputs)
            };
            let difference = (at(STEP) - at(-STEP)) / (2.0 * STEP);
            let slope = dot(gradient, &direction);
            let norm = dot(gradient, gradient).sqrt();
            // The absolute part is the rounding of a loss that doesn't depend on the input.
            assert!(
                (difference - slope).abs() <= TOLERANCE * norm + 1e-10,
                "{what}: input {i} along direction {seed}: gradient gives {slope:e}, differences {difference:e}"
            );
        }
    }
}

fn dot(a: &Matrix, b: &Matrix) -> f64 {
    a.data().iter().zip(b.data()).map(|(a, b)| a * b).sum()
}

/// `a + factor * b`.
fn added(a: &Matrix, factor: f64, b: &Matrix) -> Matrix {
    let data = a.data().iter().zip(b.data()).map(|(a, b)| a + factor * b).collect();
    Matrix::new(a.rows(), a.columns(), data)
}

#[test]
fn multi_lora_linear_backward_is_the_slope() {
    for shape in shapes() {
        let (tokens, lanes, mut draws) = (shape.tokens(), &shape.lanes, Draws::new(1));
        let (x, w) = (draws.matrix(tokens, shape.d_in), draws.matrix(shape.d_out, shape.d_in));
        let (a, b) = (draws.matrix(shape.ranks, shape.d_in), draws.matrix(shape.ranks, shape.d_out));
        let dy = draws.matrix(tokens, shape.d_out);
        let (dx, da, db) = multi_lora_linear_backward(&x, &w, &a, &b, lanes, &dy);
        check(shape.name, &[&x, &a, &b], &[&dx, &da, &db], &dy, |i| multi_lora_linear(i[0], &w, i[1], i[2], lanes));
    }
}

#[test]
fn causal_attention_backward_is_the_slope() {
    for shape in shapes() {
        let (tokens, d, mut draws) = (shape.tokens(), shape.head_dim, Draws::new(2));
        let q = draws.matrix(tokens, shape.heads * d);
        let (k, v) = (draws.matrix(tokens, shape.kv_heads * d), draws.matrix(tokens, shape.kv_heads * d));
        let dy = draws.matrix(tokens, shape.heads * d);
        let (lengths, scale) = (&shape.row_lengths, (d as f64).powf(-0.5));
        let (dq, dk, dv) = causal_attention_backward(&q, &k, &v, d, lengths, scale, &dy);
        check(shape.name, &[&q, &k, &v], &[&dq, &dk, &dv], &dy, |i| {
            causal_attention(i[0], i[1], i[2], d, lengths, scale)
        });
    }
}

#[test]
fn linear_log_probs_backward_is_the_slope() {
    for shape in shapes() {
        let (targets, mut draws) = (shape.targets(), Draws::new(3));
        let (x, head) = (draws.matrix(shape.tokens(), shape.d_in), draws.matrix(shape.vocabulary, shape.d_in));
        let dlogp = draws.matrix(1, targets.iter().flatten().count());
        let dx = linear_log_probs_backward(&x, &head, &targets, dlogp.data());
        check(shape.name, &[&x], &[&dx], &dlogp, |i| {
            Matrix::new(1, dlogp.columns(), linear_log_probs(i[0], &head, &targets))
        });
    }
}

#[test]
fn rms_norm_backward_is_the_slope() {
    for shape in shapes() {
        let mut draws = Draws::new(4);
        let (x, dy) = (draws.matrix(shape.tokens(), shape.d_in), draws.matrix(shape.tokens(), shape.d_in));
        let weight = draws.matrix(1, shape.d_in);
        let dx = rms_norm_backward(&x, weight.data(), 0.1, &dy);
        check(shape.name, &[&x], &[&dx], &dy, |i| rms_norm(i[0], weight.data(), 0.1));
    }
}

#[test]
fn swiglu_backward_is_the_slope() {
    for shape in shapes() {
        let mut draws = Draws::new(5);
        let [gate, up, dy] = std::array::from_fn(|_| draws.matrix(shape.tokens(), shape.d_out));
        let (dgate, dup) = swiglu_backward(&gate, &up, &dy);
        check(shape.name, &[&gate, &up], &[&dgate, &dup], &dy, |i| swiglu(i[0], i[1]));
    }
}

#[test]
fn rotary_backward_is_the_slope() {
    for shape in shapes() {
        let (width, mut draws) = (shape.heads * shape.head_dim, Draws::new(6));
        let (x, dy) = (draws.matrix(shape.tokens(), width), draws.matrix(shape.tokens(), width));
        // Not an angle's cosine and sine, which the gradient doesn't rely on.
        let positions = shape.row_lengths.iter().copied().max().unwrap_or(0);
        let (cos, sin) = (draws.matrix(positions, shape.head_dim / 2), draws.matrix(positions, shape.head_dim / 2));
        let dx = rotary_backward(&dy, &shape.row_lengths, &cos, &sin);
        check(shape.name, &[&x], &[&dx], &dy, |i| rotary(i[0], &shape.row_lengths, &cos, &sin));
    }
}
