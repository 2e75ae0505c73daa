//! `y[t] = x[t] / sqrt(mean(x[t]²) + eps) * weight`, the mean over a token's entries.

use super::Matrix;

/// Every token divided by its root mean square, times a weight per column, `[tokens, d]` (arXiv:1910.07467).
///
/// `x` is `[tokens, d]` and `weight` has `d` entries.
///
/// # Panics
/// If the weight doesn't have an entry for each column of `x`.
pub fn rms_norm(x: &Matrix, weight: &[f64], epsilon: f64) -> Matrix {
    assert_eq!(weight.len(), x.columns(), "one weight per column");
    let mut y = Matrix::zeros(x.rows(), x.columns());
    for t in 0..x.rows() {
        let inverse = inverse_rms(x.row(t), epsilon);
        for i in 0..x.columns() {
            y[(t, i)] = x[(t, i)] * inverse * weight[i];
        }
    }
    y
}

/// The gradient `dx` of [`rms_norm`] for the output's gradient `dy`, `[tokens, d]`.
///
/// The weight is frozen and gets none. With `q = 1 / sqrt(mean(x²) + eps)` of a token:
/// `dx[i] = q weight[i] dy[i] - q³ x[i] / d sum_j weight[j] dy[j] x[j]`.
///
/// # Panics
/// If the shapes don't fit together.
pub fn rms_norm_backward(x: &Matrix, weight: &[f64], epsilon: f64, dy: &Matrix) -> Matrix {
    assert_eq!(weight.len(), x.columns(), "one weight per column");
    dy.expect_shape("dy", x.rows(), x.columns());
    let d = x.columns();
    let mut dx = Matrix::zeros(x.rows(), d);
    for t in 0..x.rows() {
        let inverse = inverse_rms(x.row(t), epsilon);
        let along: f64 = (0..d).map(|j| weight[j] * dy[(t, j)] * x[(t, j)]).sum();
        for i in 0..d {
            dx[(t, i)] = inverse * weight[i] * dy[(t, i)] - inverse.powi(3) * x[(t, i)] / d as f64 * along;
        }
    }
    dx
}

fn inverse_rms(x: &[f64], epsilon: f64) -> f64 {
    let mean_square = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    1.0 / (mean_square + epsilon).sqrt()
}
