//! AdamW with decoupled weight decay (Loshchilov and Hutter, arXiv:1711.05101) after clipping by the global norm,
//! operation for operation as `torch.nn.utils.clip_grad_norm_` and `torch.optim.AdamW` define them.

use crate::AdamWGroup;

/// What [`adamw`] found in a group's gradient.
#[derive(Debug, Clone, PartialEq)]
pub struct AdamWOutcome {
    /// The norm over all the group's entries, before clipping.
    pub norm: f64,
    /// The first of the group's spans with an entry that is not finite; the group was left as it was.
    pub not_finite: Option<usize>,
}

/// One optimizer step of one group, in place; all four slices are `[entries]`.
///
/// Only the entries of `group.spans` are read and written. With `c = min(1, clip / (norm + 1e-6))`, or 1 without a
/// clip, and `t = group.step`:
///
/// ```text
/// g = c gradient
/// p = p (1 - lr wd)
/// m = b1 m + (1 - b1) g
/// v = b2 v + (1 - b2) g²
/// p = p - lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + epsilon)
/// ```
///
/// # Panics
/// If a span reaches beyond a slice.
pub fn adamw(
    parameters: &mut [f64],
    first: &mut [f64],
    second: &mut [f64],
    gradient: &[f64],
    group: &AdamWGroup,
) -> AdamWOutcome {
    let entries = || group.spans.iter().cloned().flatten();
    let norm = entries().map(|i| gradient[i] * gradient[i]).sum::<f64>().sqrt();
    let not_finite = group.spans.iter().position(|span| span.clone().any(|i| !gradient[i].is_finite()));
    if not_finite.is_some() {
        return AdamWOutcome { norm, not_finite };
    }
    let clip = group.clip.map_or(1.0, |clip| (clip / (norm + 1e-6)).min(1.0));
    let (lr, (b1, b2), t) = (group.learning_rate, group.betas, group.step as f64);
    for i in entries() {
        let g = clip * gradient[i];
        let (p, m, v) = (&mut parameters[i], &mut first[i], &mut second[i]);
        *p *= 1.0 - lr * group.weight_decay;
        *m = b1 * *m + (1.0 - b1) * g;
        *v = b2 * *v + (1.0 - b2) * g * g;
        *p -= lr / (1.0 - b1.powf(t)) * *m / (v.sqrt() / (1.0 - b2.powf(t)).sqrt() + group.epsilon);
    }
    AdamWOutcome { norm, not_finite }
}
