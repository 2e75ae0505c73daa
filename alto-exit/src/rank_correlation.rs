//! How alike two rankings are.

use std::cmp::Ordering;

use crate::ranking::by_loss;

/// Spearman's correlation of two rankings, -1 to 1: Pearson's of the ranks, equal values sharing the mean of theirs.
///
/// Values that are not finite are above all others and equal to one another. `None` where fewer than two values, or only
/// equal ones, leave nothing to rank.
///
/// Source: C. Spearman, "The Proof and Measurement of Association between Two Things", 1904.
///
/// # Panics
/// If the lists differ in length.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    assert_eq!(a.len(), b.len(), "both rank the same things");
    let (a, b) = (ranks(a), ranks(b));
    // Shared ranks don't change their sum.
    let centre = (a.len() + 1) as f64 / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - centre) * (y - centre)).sum::<f64>();
    let spread = (product(&a, &a) * product(&b, &b)).sqrt();
    (spread > 0.0).then(|| product(&a, &b) / spread)
}

/// Kendall's tau-b of two rankings, -1 to 1: pairs that they order alike less pairs that they order differently, over the
/// geometric mean of the pairs that each of them orders at all.
///
/// Values that are not finite, and what gives `None`, as in [`spearman`].
///
/// Source: M. Kendall, "The Treatment of Ties in Ranking Problems", 1945.
///
/// # Panics
/// If the lists differ in length.
pub fn kendall(a: &[f64], b: &[f64]) -> Option<f64> {
    assert_eq!(a.len(), b.len(), "both rank the same things");
    let (mut agreement, mut ordered_by_a, mut ordered_by_b) = (0_i64, 0_u64, 0_u64);
    for i in 0..a.len() {
        for j in 0..i {
            let (by_a, by_b) = (by_loss(a[i], a[j]) as i64, by_loss(b[i], b[j]) as i64);
            agreement += by_a * by_b;
            ordered_by_a += by_a.unsigned_abs();
            ordered_by_b += by_b.unsigned_abs();
        }
    }
    let spread = (ordered_by_a as f64 * ordered_by_b as f64).sqrt();
    (spread > 0.0).then(|| agreement as f64 / spread)
}

/// The rank of each value, 1 for the lowest; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order(values).chunk_by(|&a, &b| by_loss(values[a], values[b]) == Ordering::Equal) {
        let mean = before as f64 + (equal.len() + 1) as f64 / 2.0;
        equal.iter().for_each(|&index| ranks[index] = mean);
        before += equal.len();
    }
    ranks
}

/// Indices of the values, the lowest first, ties by index.
pub(crate) fn order(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| by_loss(values[a], values[b]));
    order
}
