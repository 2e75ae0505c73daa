//! `y = silu(gate) up` entry by entry, with `silu(z) = z sigmoid(z)` and `sigmoid(z) = 1 / (1 + exp(-z))`.

use super::Matrix;

/// The gated activation of Llama's feed-forward, `[tokens, n]` (arXiv:2002.05202).
///
/// `gate` and `up` are `[tokens, n]`.
///
/// # Panics
/// If the shapes differ.
pub fn swiglu(gate: &Matrix, up: &Matrix) -> Matrix {
    up.expect_shape("up", gate.rows(), gate.columns());
    let mut y = Matrix::zeros(gate.rows(), gate.columns());
    for (y, (gate, up)) in y.data_mut().iter_mut().zip(gate.data().iter().zip(up.data())) {
        *y = gate * sigmoid(*gate) * up;
    }
    y
}

/// The gradients `(dgate, dup)` of [`swiglu`] for the output's gradient `dy`.
///
/// With `s = sigmoid(gate)`: `dgate = dy up s (1 + gate (1 - s))` and `dup = dy gate s`.
///
/// # Panics
/// If the shapes differ.
pub fn swiglu_backward(gate: &Matrix, up: &Matrix, dy: &Matrix) -> (Matrix, Matrix) {
    let (rows, columns) = (gate.rows(), gate.columns());
    up.expect_shape("up", rows, columns);
    dy.expect_shape("dy", rows, columns);
    let (mut dgate, mut dup) = (Matrix::zeros(rows, columns), Matrix::zeros(rows, columns));
    for t in 0..rows {
        for i in 0..columns {
            let s = sigmoid(gate[(t, i)]);
            dgate[(t, i)] = dy[(t, i)] * up[(t, i)] * s * (1.0 + gate[(t, i)] * (1.0 - s));
            dup[(t, i)] = dy[(t, i)] * gate[(t, i)] * s;
        }
    }
    (dgate, dup)
}

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}
