//! Column `i` of each head is turned with column `i + head_dim / 2` by the angle of the token's position in its row:
//! `y[i] = x[i] cos - x[i + half] sin` and `y[i + half] = x[i + half] cos + x[i] sin`.

use super::Matrix;

/// Rotary position embedding over half-split pairs, as Hugging Face's Llama, `[tokens, heads * head_dim]`
/// (arXiv:2104.09864).
///
/// `x` is `[tokens, heads * head_dim]`. `cos` and `sin` are `[positions, head_dim / 2]`: the angle of pair `i` at
/// position `p` is in row `p`, column `i`. Positions count from 0 in each row; the rows lie end to end, the first
/// `row_lengths[0]` tokens being the first.
///
/// # Panics
/// If the shapes don't fit together, the lengths don't sum to the tokens, or a row is longer than the positions.
pub fn rotary(x: &Matrix, row_lengths: &[usize], cos: &Matrix, sin: &Matrix) -> Matrix {
    turned(x, row_lengths, cos, sin, 1.0)
}

/// The gradient `dx` of [`rotary`] for the output's gradient `dy`: the turn back, by minus the angle.
///
/// # Panics
/// If the shapes don't fit together, the lengths don't sum to the tokens, or a row is longer than the positions.
pub fn rotary_backward(dy: &Matrix, row_lengths: &[usize], cos: &Matrix, sin: &Matrix) -> Matrix {
    turned(dy, row_lengths, cos, sin, -1.0)
}

fn turned(x: &Matrix, row_lengths: &[usize], cos: &Matrix, sin: &Matrix, direction: f64) -> Matrix {
    let half = cos.columns();
    let heads = x.columns() / (2 * half);
    sin.expect_shape("sin", cos.rows(), half);
    x.expect_shape("x", row_lengths.iter().sum(), heads * 2 * half);
    let mut y = Matrix::zeros(x.rows(), x.columns());
    let positions = row_lengths.iter().flat_map(|&length| 0..length);
    for (t, position) in positions.enumerate() {
        for h in 0..heads {
            for i in 0..half {
                let (cos, sin) = (cos[(position, i)], direction * sin[(position, i)]);
                let (low, high) = (h * 2 * half + i, h * 2 * half + i + half);
                y[(t, low)] = x[(t, low)] * cos - x[(t, high)] * sin;
                y[(t, high)] = x[(t, high)] * cos + x[(t, low)] * sin;
            }
        }
    }
    y
}
