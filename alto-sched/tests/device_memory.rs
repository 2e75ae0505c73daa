//! The memory model: what a profile gives, what it refuses, and what a file may hold.

use alto_sched::{Coefficients, FitError, Load, MemoryModel, MemorySample, ModelError};
use proptest::prelude::*;

fn sample(adapter_bytes: u64, tokens: u64, squared_tokens: u64, peak: u64) -> MemorySample {
    MemorySample { load: Load { adapter_bytes, tokens, squared_tokens }, peak }
}

#[test]
fn an_exact_profile_gives_back_its_coefficients() {
    let bytes = |adapters: u64, tokens: u64| sample(adapters, tokens, 0, 5_000_000_000 + adapters + 70_000 * tokens);
    let model = MemoryModel::fit(&[bytes(0, 128), bytes(8_000_000, 2048), bytes(3, 100_000)], false).unwrap();
    assert_eq!(model.predict(&Load { adapter_bytes: 17, tokens: 4096, squared_tokens: 9 }), 5_286_720_017);
    assert!(model.margin() <= 1, "{model:?}");
}

#[test]
fn the_largest_residual_becomes_the_margin() {
    // Least squares through (0, 10), (1, 14), (2, 12): 11 + 1 * tokens, residuals -1, 2, -1.
    let model = MemoryModel::fit(&[sample(0, 0, 0, 10), sample(5, 1, 0, 19), sample(0, 2, 0, 12)], false).unwrap();
    let Coefficients { fixed, per_token, per_squared_token, margin } = model.coefficients();
    assert!((fixed - 11.0).abs() < 1e-9 && (per_token - 1.0).abs() < 1e-9, "{model:?}");
    assert!(per_squared_token == 0.0 && (margin - 2.0).abs() < 1e-9, "{model:?}");
    let load = Load { adapter_bytes: 100, tokens: 9, squared_tokens: 0 };
    assert_eq!((model.predict(&load), model.margin()), (120, 2));
    assert!(matches!(model.reserve(&load), 122 | 123));
    // Also where the fit is over the measurement: 9 + 1 * tokens, residuals 1, -2, 1.
    let model = MemoryModel::fit(&[sample(0, 0, 0, 10), sample(0, 1, 0, 8), sample(0, 2, 0, 12)], false).unwrap();
    assert!((model.coefficients().margin - 2.0).abs() < 1e-9, "{model:?}");
}

#[test]
fn a_quadratic_profile_needs_the_quadratic_term() {
    let rows = |count: u64, length: u64| {
        sample(0, count * length, count * length * length, 1000 + 10 * count * length + 3 * count * length * length)
    };
    let profile = [rows(1, 64), rows(4, 64), rows(1, 256), rows(2, 128), rows(8, 32)];
    let quadratic = MemoryModel::fit(&profile, true).unwrap();
    let long = rows(3, 1000);
    assert!(quadratic.predict(&long.load).abs_diff(long.peak) <= 1, "{quadratic:?}");
    assert!(quadratic.margin() <= 1);
    assert!(MemoryModel::fit(&profile, false).unwrap().margin() > 10_000);
}

#[test]
fn coefficients_are_never_negative() {
    let falling = MemoryModel::fit(&[sample(0, 1, 0, 30), sample(0, 2, 0, 20), sample(0, 3, 0, 10)], false).unwrap();
    assert_eq!(falling.coefficients().per_token, 0.0);
    assert!((falling.coefficients().margin - 10.0).abs() < 1e-9, "{falling:?}");
}

#[test]
fn profiles_that_say_too_little_are_refused() {
    let fit = |samples: &[MemorySample], quadratic| MemoryModel::fit(samples, quadratic).unwrap_err();
    assert_eq!(fit(&[], false), FitError::TooFewSamples { found: 0, needed: 3 });
    assert_eq!(fit(&[sample(0, 1, 1, 9); 3], true), FitError::TooFewSamples { found: 3, needed: 4 });
    assert_eq!(fit(&[sample(0, 7, 0, 9); 3], false), FitError::SameTokens { samples: 3, tokens: 7 });
    let same_length: Vec<_> = (1..5).map(|rows| sample(0, rows * 128, rows * 128 * 128, rows)).collect();
    assert_eq!(fit(&same_length, true), FitError::SameRows { samples: 4 });
    let impossible = [sample(0, 1, 0, 9), sample(10, 2, 0, 9), sample(0, 3, 0, 9)];
    assert_eq!(fit(&impossible, false), FitError::PeakUnderAdapters { sample: 1, peak: 9, adapter_bytes: 10 });
}

#[test]
fn a_stored_model_comes_back_and_a_wrong_one_is_refused() {
    let coefficients = Coefficients { fixed: 1.5, per_token: 0.1, per_squared_token: 0.0, margin: 1e9 / 3.0 };
    let model = MemoryModel::from_coefficients(coefficients).unwrap();
    let text = serde_json::to_string(&model).unwrap();
    assert_eq!(serde_json::from_str::<MemoryModel>(&text).unwrap(), model);
    for (from, to, error) in [
        ("\"version\":1", "\"version\":2", "version 2, expected 1"),
        ("\"fixed\":1.5", "\"fixed\":-1.5", "fixed is -1.5"),
        ("\"fixed\":1.5", "\"fixed\":1.5,\"more\":1", "unknown field `more`"),
    ] {
        assert!(text.contains(from), "{text}");
        let refused = serde_json::from_str::<MemoryModel>(&text.replace(from, to)).unwrap_err().to_string();
        assert!(refused.contains(error), "{refused}");
    }
}

#[test]
fn coefficients_that_are_no_numbers_are_refused() {
    for value in [f64::NAN, f64::INFINITY, -1.0] {
        let refused = MemoryModel::from_coefficients(Coefficients { per_token: value, ..Default::default() });
        assert!(matches!(refused, Err(ModelError::BadCoefficient { coefficient: "per_token", .. })), "{refused:?}");
    }
}

prop_compose! {
    fn any_load()(adapter_bytes in 0_u64..1_000_000, tokens in 0_u64..100_000, length in 1_u64..1000) -> Load {
        Load { adapter_bytes, tokens, squared_tokens: tokens * length }
    }
}

proptest! {
    #[test]
    fn the_reserve_covers_every_sample_and_grows_with_the_load(
        profile in prop::collection::vec((any_load(), 0_u64..10_000_000_000), 4..20),
        (load, more) in (any_load(), any_load()),
        quadratic in any::<bool>(),
    ) {
        let profile: Vec<_> =
            profile.iter().map(|&(load, peak)| MemorySample { load, peak: peak + load.adapter_bytes }).collect();
        let Ok(model) = MemoryModel::fit(&profile, quadratic) else { return Ok(()) };
        for MemorySample { load, peak } in &profile {
            prop_assert!(model.reserve(load) >= *peak, "{} < {peak}", model.reserve(load));
        }
        prop_assert!(model.reserve(&load) <= model.reserve(&load.plus(more)));
        prop_assert!(model.predict(&load) <= model.reserve(&load));
    }

    #[test]
    fn the_order_of_the_samples_does_not_matter(
        profile in prop::collection::vec((any_load(), 0_u64..10_000_000_000), 4..10),
        load in any_load(),
    ) {
        let mut profile: Vec<_> =
            profile.iter().map(|&(load, peak)| MemorySample { load, peak: peak + load.adapter_bytes }).collect();
        let Ok(model) = MemoryModel::fit(&profile, false) else { return Ok(()) };
        profile.reverse();
        let reversed = MemoryModel::fit(&profile, false).unwrap();
        prop_assert!(model.predict(&load).abs_diff(reversed.predict(&load)) <= 1);
    }
}
