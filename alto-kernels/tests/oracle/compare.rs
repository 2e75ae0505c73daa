//! Comparisons that say how many entries differ, and where the worst of them is.

use alto_kernels::reference::Matrix;

/// Panics unless every entry of `got` is within `tolerance` times the largest entry of `expected`; without entries,
/// or if all are zero, the difference must be zero. An entry that isn't finite differs.
pub(crate) fn assert_close(what: &str, got: &Matrix, expected: &Matrix, tolerance: f64) {
    assert_close_over(what, got, expected, tolerance, 0.0);
}

/// As [`assert_close`], but relative to `least` where no entry is larger: the size of the terms of a tensor whose
/// entries are their differences, which may all cancel.
pub(crate) fn assert_close_over(what: &str, got: &Matrix, expected: &Matrix, tolerance: f64, least: f64) {
    let largest = expected.data().iter().fold(least, |largest, entry| largest.max(entry.abs()));
    let allowed = tolerance * largest;
    assert_entries(what, got, expected, &format!("allowed {allowed:.1e}"), |got, expected| {
        (got - expected).abs() <= allowed
    });
}

/// Panics unless every entry of `got` equals that of `expected`; NaN equals NaN.
pub(crate) fn assert_equal(what: &str, got: &Matrix, expected: &Matrix) {
    assert_entries(what, got, expected, "must be equal", |got, expected| {
        got == expected || (got.is_nan() && expected.is_nan())
    });
}

fn assert_entries(what: &str, got: &Matrix, expected: &Matrix, rule: &str, right: impl Fn(f64, f64) -> bool) {
    let shape = (expected.rows(), expected.columns());
    assert_eq!((got.rows(), got.columns()), shape, "{what}: shape");
    let entries = || got.data().iter().copied().zip(expected.data().iter().copied()).enumerate();
    let different = entries().filter(|(_, (got, expected))| !right(*got, *expected));
    // NaN is the worst of all.
    let error =
        |got: f64, expected: f64| if (got - expected).is_nan() { f64::INFINITY } else { (got - expected).abs() };
    let worst = different.clone().max_by(|(_, a), (_, b)| error(a.0, a.1).total_cmp(&error(b.0, b.1)));
    if let Some((at, (got, expected))) = worst {
        panic!(
            "{what}: {} of {} entries differ ({rule}), most at [{}, {}]: got {got:e}, expected {expected:e}",
            different.count(),
            shape.0 * shape.1,
            at / shape.1,
            at % shape.1,
        );
    }
}
