//! How far a tensor is from its reference, and where the most.

use std::fmt;

use crate::reference::Matrix;

/// One tensor beside its reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Which tensor: an output such as `y` or a gradient such as `dx`.
    pub tensor: &'static str,
    /// Its entries.
    pub entries: usize,
    /// How many of them are further from the reference than allowed.
    pub differing: usize,
    /// The largest distance as a share of what is allowed: at most 1 in a tensor that passes, infinite where an entry isn't
    /// finite or where nothing is allowed and something is off.
    pub worst: f64,
    /// Row and column of that entry.
    pub at: [usize; 2],
    /// What stands there.
    pub got: f64,
    /// What should.
    pub expected: f64,
}

impl Comparison {
    /// Whether every entry is close enough.
    pub fn passes(&self) -> bool {
        self.differing == 0
    }

    /// Sets a tensor beside its reference; `tolerance` is relative to its largest entry, or to `least` if that is larger.
    ///
    /// # Panics
    /// If the shapes differ.
    pub(super) fn new(tensor: &'static str, got: &Matrix, expected: &Matrix, tolerance: f64, least: f64) -> Self {
        let shapes = [got, expected].map(|matrix| [matrix.rows(), matrix.columns()]);
        assert_eq!(shapes[0], shapes[1], "{tensor}: shape");
        let largest = expected.data().iter().fold(least, |largest, entry| largest.max(entry.abs()));
        let allowed = tolerance * largest;
        let entries = got.data().len();
        let mut comparison = Self { tensor, entries, differing: 0, worst: 0.0, at: [0, 0], got: 0.0, expected: 0.0 };
        for (index, (&got, &expected)) in got.data().iter().zip(expected.data()).enumerate() {
            let distance = (got - expected).abs();
            let share = match distance {
                0.0 => 0.0,
                distance if distance.is_finite() => distance / allowed,
                _ => f64::INFINITY,
            };
            comparison.differing += usize::from(share > 1.0);
            if share > comparison.worst || index == 0 {
                let at = [index / shapes[0][1], index % shapes[0][1]];
                comparison = Self { worst: share, at, got, expected, ..comparison };
            }
        }
        comparison
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tensor, entries, differing, worst, at: [row, column], got, expected } = self;
        write!(
            f,
            "{tensor}: {differing} of {entries} entries differ, worst {worst:.2} of what is allowed at \
             [{row}, {column}]: got {got:e}, expected {expected:e}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(entries: &[f64]) -> Matrix {
        Matrix::new(1, entries.len(), entries.to_vec())
    }

    #[test]
    fn counts_what_differs_and_finds_the_worst() {
        let (got, expected) = (row(&[1.0, 2.02, 4.1, -3.0]), row(&[1.0, 2.0, 4.0, -3.0]));
        let strict = Comparison::new("y", &got, &expected, 0.0125, 0.0);
        assert_eq!((strict.differing, strict.at, strict.passes()), (1, [0, 2], false));
        assert!((strict.worst - 2.0).abs() < 1e-9, "{strict}");
        assert!(Comparison::new("y", &got, &expected, 0.0125, 8.0).passes());
    }

    #[test]
    fn what_is_not_finite_differs_and_so_does_anything_from_zeros() {
        for (got, expected) in [(f64::NAN, 1.0), (f64::INFINITY, 1.0), (1e-30, 0.0)] {
            let comparison = Comparison::new("y", &row(&[got]), &row(&[expected]), 0.5, 0.0);
            assert_eq!((comparison.differing, comparison.worst), (1, f64::INFINITY));
        }
        assert!(Comparison::new("y", &row(&[]), &row(&[]), 0.0, 0.0).passes());
        assert!(Comparison::new("y", &row(&[0.0]), &row(&[0.0]), 0.0, 0.0).passes());
    }
}
