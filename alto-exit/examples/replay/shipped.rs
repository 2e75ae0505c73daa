//! The policies that come with the crate, by name.

use alto_exit::{
    AdaptiveRung, Asha, Diverging, Extrapolation, Hyperband, LossAware, MedianStopping, Overfitting, Patience, Policy,
    SuccessiveHalving, Underperforming, WorseThanUntrained,
};

/// Each with its default settings, and the paper's three together with `require_rise` and with later rungs.
pub(crate) fn policies() -> Vec<(String, Policy)> {
    let rising = || Overfitting { require_rise: true, ..Overfitting::default() };
    let loss_aware = |mark, keep| {
        let underperforming = Underperforming { mark, keep };
        Policy::LossAware(LossAware { overfitting: rising(), underperforming, ..LossAware::default() })
    };
    let adaptive = |risk, caution| Policy::AdaptiveRung(AdaptiveRung { risk, caution, ..AdaptiveRung::default() });
    let policies = [
        ("never", Policy::Never),
        ("diverging", Policy::Diverging(Diverging::default())),
        ("overfitting", Policy::Overfitting(Overfitting::default())),
        ("overfitting, rising", Policy::Overfitting(rising())),
        ("underperforming", Policy::Underperforming(Underperforming::default())),
        ("loss aware", Policy::LossAware(LossAware::default())),
        ("loss aware, rising", loss_aware(0.05, 0.25)),
        ("loss aware, rising, 1/4 at 10%", loss_aware(0.1, 0.25)),
        ("loss aware, rising, 1/2 at 10%", loss_aware(0.1, 0.5)),
        ("underperforming, 1/8 at 10%", Policy::Underperforming(Underperforming { mark: 0.1, keep: 0.125 })),
        ("underperforming, 1/4 at 10%", Policy::Underperforming(Underperforming { mark: 0.1, keep: 0.25 })),
        ("adaptive rung, risk 1%", adaptive(0.01, 1.0)),
        ("adaptive rung, risk 30%", adaptive(0.3, 1.0)),
        ("adaptive rung, risk 30%, caution 0.7", adaptive(0.3, 0.7)),
        ("overfitting, rising + adaptive, 1%", Policy::AnyOf(vec![Policy::Overfitting(rising()), adaptive(0.01, 1.0)])),
        ("overfitting, rising + adaptive, 30%", Policy::AnyOf(vec![Policy::Overfitting(rising()), adaptive(0.3, 1.0)])),
        ("worse than untrained", Policy::WorseThanUntrained(WorseThanUntrained::default())),
        ("patience", Policy::Patience(Patience::default())),
        ("median stopping", Policy::MedianStopping(MedianStopping::default())),
        ("successive halving", Policy::SuccessiveHalving(SuccessiveHalving::default())),
        ("hyperband", Policy::Hyperband(Hyperband::default())),
        ("asha", Policy::Asha(Asha::default())),
        ("extrapolation", Policy::Extrapolation(Extrapolation::default())),
    ];
    policies.into_iter().map(|(name, policy)| (name.to_owned(), policy)).collect()
}
