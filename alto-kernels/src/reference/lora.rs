//! `y[t] = x[t] Wᵀ + scale_i (x[t] A_iᵀ) B_i` for every token `t` of lane `i`, and `y[t] = x[t] Wᵀ` for a token in
//! no lane.

use super::Matrix;
use crate::LoraLane;

/// One frozen linear layer with each lane's own adapter added, `[tokens, d_out]`.
///
/// `x` is `[tokens, d_in]` and `w` is `[d_out, d_in]`, as Hugging Face stores it. The adapters' factors are stacked
/// along the rank: `a` is `[ranks, d_in]` and `b` is `[ranks, d_out]`, the transpose of PEFT's `lora_B`; a lane
/// owns the rows `lane.ranks` of both. An empty range of rows or of ranks is allowed.
///
/// # Panics
/// If the shapes don't fit together or a lane reaches beyond the tokens or the ranks.
pub fn multi_lora_linear(x: &Matrix, w: &Matrix, a: &Matrix, b: &Matrix, lanes: &[LoraLane]) -> Matrix {
    let (tokens, d_in, d_out) = (x.rows(), x.columns(), w.rows());
    check(x, w, a, b, lanes);
    let mut y = Matrix::zeros(tokens, d_out);
    for t in 0..tokens {
        for o in 0..d_out {
            for i in 0..d_in {
                y[(t, o)] += x[(t, i)] * w[(o, i)];
            }
        }
    }
    for lane in lanes {
        for t in lane.rows.clone() {
            for r in lane.ranks.clone() {
                let s: f64 = (0..d_in).map(|i| x[(t, i)] * a[(r, i)]).sum();
                for o in 0..d_out {
                    y[(t, o)] += f64::from(lane.scale) * s * b[(r, o)];
                }
            }
        }
    }
    y
}

/// The gradients `(dx, da, db)` of [`multi_lora_linear`] for the output's gradient `dy`, `[tokens, d_out]`.
///
/// The weight is frozen and gets none. With `s = x A_iᵀ` and `ds = scale_i dy B_iᵀ` over a lane's tokens:
/// `dx = dy W + ds A_i`, `da = dsᵀ x`, `db = scale_i sᵀ dy`. Ranks that no lane owns have zero gradients.
///
/// # Panics
/// If the shapes don't fit together or a lane reaches beyond the tokens or the ranks.
pub fn multi_lora_linear_backward(
    x: &Matrix,
    w: &Matrix,
    a: &Matrix,
    b: &Matrix,
    lanes: &[LoraLane],
    dy: &Matrix,
) -> (Matrix, Matrix, Matrix) {
    let (tokens, d_in, d_out) = (x.rows(), x.columns(), w.rows());
    check(x, w, a, b, lanes);
    dy.expect_shape("dy", tokens, d_out);
    let mut dx = Matrix::zeros(tokens, d_in);
    let mut da = Matrix::zeros(a.rows(), d_in);
    let mut db = Matrix::zeros(b.rows(), d_out);
    for t in 0..tokens {
        for o in 0..d_out {
            for i in 0..d_in {
                dx[(t, i)] += dy[(t, o)] * w[(o, i)];
            }
        }
    }
    for lane in lanes {
        let scale = f64::from(lane.scale);
        for t in lane.rows.clone() {
            for r in lane.ranks.clone() {
                let s: f64 = (0..d_in).map(|i| x[(t, i)] * a[(r, i)]).sum();
                let ds: f64 = scale * (0..d_out).map(|o| dy[(t, o)] * b[(r, o)]).sum::<f64>();
                for i in 0..d_in {
                    dx[(t, i)] += ds * a[(r, i)];
                    da[(r, i)] += ds * x[(t, i)];
                }
                for o in 0..d_out {
                    db[(r, o)] += scale * s * dy[(t, o)];
                }
            }
        }
    }
    (dx, da, db)
}

fn check(x: &Matrix, w: &Matrix, a: &Matrix, b: &Matrix, lanes: &[LoraLane]) {
    w.expect_shape("w", w.rows(), x.columns());
    a.expect_shape("a", a.rows(), x.columns());
    b.expect_shape("b", a.rows(), w.rows());
    for lane in lanes {
        assert!(lane.rows.end <= x.rows(), "a lane of rows {:?}, but {} tokens", lane.rows, x.rows());
        assert!(lane.ranks.end <= a.rows(), "a lane of ranks {:?}, but {} in all", lane.ranks, a.rows());
    }
}
