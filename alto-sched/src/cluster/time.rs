//! Seconds outside, whole microseconds inside.
//!
//! Sums and comparisons of integers are exact, so two schedulers never disagree on whether one task ends before
//! another begins. A time of at most [`LATEST`] comes back from seconds as the same number of microseconds.

/// Microseconds.
pub(crate) type Micros = u64;

/// The latest time there is, about 71 years: up to it a number of seconds in `f64` tells all microseconds apart.
pub(crate) const LATEST: Micros = 1 << 51;

/// The nearest microsecond; `None` if that is negative, past [`LATEST`], or no number.
pub(crate) fn micros(seconds: f64) -> Option<Micros> {
    let micros = (seconds * 1e6).round();
    // NaN is in no range.
    (0.0..=LATEST as f64).contains(&micros).then_some(micros as Micros)
}

/// The nearest microsecond, at least one: however short, a task takes time.
pub(crate) fn duration(seconds: f64) -> Option<Micros> {
    if seconds > 0.0 { micros(seconds).map(|micros| micros.max(1)) } else { None }
}

/// Seconds, from which [`micros`] makes the same number again.
pub(crate) fn seconds(micros: Micros) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_time_survives_the_way_to_seconds_and_back(time in 0..=LATEST) {
            prop_assert_eq!(micros(seconds(time)), Some(time));
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for bad in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, seconds(LATEST) * 1.001] {
            assert_eq!((micros(bad), duration(bad)), (None, None), "{bad}");
        }
        assert_eq!((micros(0.0), duration(0.0), duration(-0.0)), (Some(0), None, None));
    }

    #[test]
    fn the_shortest_duration_is_a_microsecond() {
        assert_eq!(duration(1e-12), Some(1));
    }
}
