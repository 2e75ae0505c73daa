//! `y[t] = sum_s softmax_s(scale q[t] · k[s]) v[s]` over the tokens `s <= t` of the row that `t` belongs to.

use super::Matrix;

/// Causal softmax attention within each row, `[tokens, heads * head_dim]`.
///
/// `q` is `[tokens, heads * head_dim]`, `k` and `v` are `[tokens, kv_heads * head_dim]`. The rows lie end to end:
/// the first `row_lengths[0]` tokens are the first row. Query head `h` reads key and value head
/// `h / (heads / kv_heads)` (grouped queries).
///
/// # Panics
/// If the shapes don't fit together, `kv_heads` doesn't divide `heads`, or the lengths don't sum to the tokens.
pub fn causal_attention(
    q: &Matrix,
    k: &Matrix,
    v: &Matrix,
    head_dim: usize,
    row_lengths: &[usize],
    scale: f64,
) -> Matrix {
    let group = check(q, k, v, head_dim, row_lengths);
    let mut y = Matrix::zeros(q.rows(), q.columns());
    for (start, end) in rows(row_lengths) {
        for h in 0..q.columns() / head_dim {
            let (at, kv_at) = (h * head_dim, h / group * head_dim);
            for t in start..end {
                let p = probabilities(q, k, head_dim, scale, (t, at), (start, kv_at));
                for s in start..=t {
                    for d in 0..head_dim {
                        y[(t, at + d)] += p[s - start] * v[(s, kv_at + d)];
                    }
                }
            }
        }
    }
    y
}

/// The gradients `(dq, dk, dv)` of [`causal_attention`] for the output's gradient `dy`.
///
/// With `p` a token's probabilities and `dp[s] = dy · v[s]`: the scores have the gradient
/// `ds[s] = p[s] (dp[s] - sum_u p[u] dp[u])`, and `dq += scale ds[s] k[s]`, `dk[s] += scale ds[s] q`,
/// `dv[s] += p[s] dy`.
///
/// # Panics
/// If the shapes don't fit together, `kv_heads` doesn't divide `heads`, or the lengths don't sum to the tokens.
pub fn causal_attention_backward(
    q: &Matrix,
    k: &Matrix,
    v: &Matrix,
    head_dim: usize,
    row_lengths: &[usize],
    scale: f64,
    dy: &Matrix,
) -> (Matrix, Matrix, Matrix) {
    let group = check(q, k, v, head_dim, row_lengths);
    dy.expect_shape("dy", q.rows(), q.columns());
    let mut dq = Matrix::zeros(q.rows(), q.columns());
    let mut dk = Matrix::zeros(k.rows(), k.columns());
    let mut dv = Matrix::zeros(v.rows(), v.columns());
    for (start, end) in rows(row_lengths) {
        for h in 0..q.columns() / head_dim {
            let (at, kv_at) = (h * head_dim, h / group * head_dim);
            for t in start..end {
                let p = probabilities(q, k, head_dim, scale, (t, at), (start, kv_at));
                let dp: Vec<f64> =
                    (start..=t).map(|s| (0..head_dim).map(|d| dy[(t, at + d)] * v[(s, kv_at + d)]).sum()).collect();
                let mean: f64 = p.iter().zip(&dp).map(|(p, dp)| p * dp).sum();
                for s in start..=t {
                    let ds = p[s - start] * (dp[s - start] - mean);
                    for d in 0..head_dim {
                        dq[(t, at + d)] += scale * ds * k[(s, kv_at + d)];
                        dk[(s, kv_at + d)] += scale * ds * q[(t, at + d)];
                        dv[(s, kv_at + d)] += p[s - start] * dy[(t, at + d)];
                    }
                }
            }
        }
    }
    (dq, dk, dv)
}

/// How much the token `t` attends to each token `start..=t`; its query starts at column `at`, the keys at `kv_at`.
fn probabilities(
    q: &Matrix,
    k: &Matrix,
    head_dim: usize,
    scale: f64,
    (t, at): (usize, usize),
    (start, kv_at): (usize, usize),
) -> Vec<f64> {
    let scores: Vec<f64> =
        (start..=t).map(|s| scale * (0..head_dim).map(|d| q[(t, at + d)] * k[(s, kv_at + d)]).sum::<f64>()).collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

/// The first token of each row and the one past its last.
fn rows(row_lengths: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    row_lengths.iter().scan(0, |start, length| {
        let row = (*start, *start + length);
        *start = row.1;
        Some(row)
    })
}

/// The number of query heads for each key and value head.
fn check(q: &Matrix, k: &Matrix, v: &Matrix, head_dim: usize, row_lengths: &[usize]) -> usize {
    let (heads, kv_heads) = (q.columns() / head_dim, k.columns() / head_dim);
    q.expect_shape("q", row_lengths.iter().sum(), heads * head_dim);
    k.expect_shape("k", q.rows(), kv_heads * head_dim);
    v.expect_shape("v", q.rows(), kv_heads * head_dim);
    assert!(heads.is_multiple_of(kv_heads), "{heads} heads, not a multiple of {kv_heads} key and value heads");
    heads / kv_heads
}
