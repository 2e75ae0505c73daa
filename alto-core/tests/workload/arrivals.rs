//! When tasks come.

use alto_core::simulated::workload::Arrivals;

const POISSON: Arrivals = Arrivals::Poisson { per_hour: 12.0 };
const BURSTY: Arrivals = Arrivals::Bursty { bursts_per_hour: 2.0, mean_size: 6.0, spread: 60.0 };

fn gaps(times: &[f64]) -> Vec<f64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Variance of the gaps over their mean squared: 1 for exponential gaps.
fn dispersion(gaps: &[f64]) -> f64 {
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64 / (mean * mean)
}

#[test]
fn times_ascend_and_follow_from_the_seed() {
    for arrivals in [POISSON, BURSTY, Arrivals::AtOnce] {
        let times = arrivals.times(500, 3).unwrap();
        assert_eq!(times.len(), 500);
        assert!(gaps(&times).iter().all(|gap| *gap >= 0.0) && times[0] >= 0.0);
        assert_eq!(arrivals.times(500, 3).unwrap(), times);
        if arrivals != Arrivals::AtOnce {
            assert_ne!(arrivals.times(500, 4).unwrap(), times);
        }
    }
    assert_eq!(Arrivals::AtOnce.times(2, 0).unwrap(), [0.0, 0.0]);
}

#[test]
fn the_first_times_stay_when_more_are_asked_for() {
    let (few, many) = (POISSON.times(10, 5).unwrap(), POISSON.times(100, 5).unwrap());
    assert_eq!(few, many[..10]);
}

#[test]
fn both_come_at_their_rate_but_bursts_come_together() {
    let (poisson, bursty) = (POISSON.times(20_000, 1).unwrap(), BURSTY.times(20_000, 1).unwrap());
    // Twelve an hour, either way.
    for times in [&poisson, &bursty] {
        let per_hour = 20_000.0 / (times[times.len() - 1] / 3600.0);
        assert!((per_hour / 12.0 - 1.0).abs() < 0.05, "{per_hour}");
    }
    assert!((dispersion(&gaps(&poisson)) - 1.0).abs() < 0.1);
    assert!(dispersion(&gaps(&bursty)) > 5.0);
}

#[test]
fn rates_that_make_no_sense_are_refused_by_name() {
    let refused = |arrivals: Arrivals| arrivals.times(1, 0).unwrap_err().to_string();
    let poisson = refused(Arrivals::Poisson { per_hour: 0.0 });
    assert_eq!(poisson, "per_hour is 0, expected a finite number over 0");
    let bursty = |bursts_per_hour, mean_size, spread| refused(Arrivals::Bursty { bursts_per_hour, mean_size, spread });
    assert!(bursty(f64::NAN, 2.0, 0.0).starts_with("bursts_per_hour is NaN"));
    assert_eq!(bursty(1.0, 0.5, 0.0), "mean_size is 0.5, expected a finite number of at least 1");
    assert_eq!(bursty(1.0, 2.0, -1.0), "spread is -1, expected a finite number of at least 0");
}
