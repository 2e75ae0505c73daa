//! `logp[j] = log softmax(x[t] headᵀ)[target[t]]` for the `j`-th token `t` that has a target.

use super::Matrix;

/// The natural log-probability of each labelled token's target, in the order of the tokens.
///
/// `x` is `[tokens, d]`, `head` is `[vocabulary, d]`, and `targets` has one entry per token: the id that the model
/// should give it, or `None` where none is asked for.
///
/// # Panics
/// If the shapes don't fit together or a target lies outside the vocabulary.
pub fn linear_log_probs(x: &Matrix, head: &Matrix, targets: &[Option<u32>]) -> Vec<f64> {
    labelled(x, head, targets)
        .map(|(t, target)| {
            let logits = logits(x, head, t);
            logits[target] - log_sum_exp(&logits)
        })
        .collect()
}

/// The gradient `dx`, `[tokens, d]`, of [`linear_log_probs`] for the gradient `dlogp` of each log-probability.
///
/// The head is frozen and gets none. With `p = softmax(x[t] headᵀ)`: `dx[t] = dlogp[j] (head[target] - p head)`,
/// and zero for a token without a target.
///
/// # Panics
/// If the shapes don't fit together or a target lies outside the vocabulary.
pub fn linear_log_probs_backward(x: &Matrix, head: &Matrix, targets: &[Option<u32>], dlogp: &[f64]) -> Matrix {
    assert_eq!(dlogp.len(), targets.iter().flatten().count(), "one gradient per labelled token");
    let mut dx = Matrix::zeros(x.rows(), x.columns());
    for ((t, target), dlogp) in labelled(x, head, targets).zip(dlogp) {
        let logits = logits(x, head, t);
        let log_total = log_sum_exp(&logits);
        for i in 0..x.columns() {
            dx[(t, i)] += dlogp * head[(target, i)];
            for token in 0..head.rows() {
                dx[(t, i)] -= dlogp * (logits[token] - log_total).exp() * head[(token, i)];
            }
        }
    }
    dx
}

/// Each labelled token with its target.
fn labelled(x: &Matrix, head: &Matrix, targets: &[Option<u32>]) -> impl Iterator<Item = (usize, usize)> {
    head.expect_shape("head", head.rows(), x.columns());
    assert_eq!(targets.len(), x.rows(), "one target or none per token");
    let vocabulary = head.rows();
    targets.iter().enumerate().filter_map(move |(t, target)| {
        let target = (*target)? as usize;
        assert!(target < vocabulary, "token {t} has target {target}, but the vocabulary is {vocabulary}");
        Some((t, target))
    })
}

fn logits(x: &Matrix, head: &Matrix, t: usize) -> Vec<f64> {
    (0..head.rows()).map(|token| (0..x.columns()).map(|i| x[(t, i)] * head[(token, i)]).sum()).collect()
}

fn log_sum_exp(logits: &[f64]) -> f64 {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + logits.iter().map(|logit| (logit - largest).exp()).sum::<f64>().ln()
}
