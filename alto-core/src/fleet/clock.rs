//! Seconds outside, whole microseconds inside: the grid of the planner's times, on which sums are exact.

/// The latest expected end that is believed, in seconds: about 30 years, well before the planner's latest time.
pub(super) const FAR: f64 = 1e9;

/// The nearest microsecond; what is no time counts as the nearest that is one, NaN as 0.
pub(super) fn micros(seconds: f64) -> u64 {
    // The planner's latest time: up to it a number of seconds tells all microseconds apart.
    const LATEST: f64 = (1_u64 << 51) as f64;
    (seconds * 1e6).round().clamp(0.0, LATEST) as u64
}

/// Seconds, from which [`micros`] makes the same number again.
pub(super) fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// The last microsecond that has come by then, so that nothing is planned to start before it does.
pub(super) fn floor(time: f64) -> f64 {
    let nearest = micros(time);
    let later = seconds(nearest) > time;
    seconds(nearest - u64::from(later))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_on_the_grid_stays_and_any_other_goes_down() {
        for time in (0..200_000).map(|step| seconds(step * 7919)) {
            assert_eq!(floor(time), time);
            assert_eq!(floor(time + 0.9e-6), time);
            assert_eq!(floor(time + 0.4e-6), time);
        }
    }
}
