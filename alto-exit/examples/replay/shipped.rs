//! The policies that come with the crate, by name.

use alto_exit::{
    AdaptiveRung, Asha, Diverging, Extrapolation, Hyperband, LossAware, MedianStopping, Overfitting, Patience, Policy,
    SuccessiveHalving, Underperforming, WorseThanUntrained,
};

/// Each with its default settings, and the paper's with a rung later in the budget.
pub(crate) fn policies() -> Vec<(String, Policy)> {
    let overfitting = Overfitting { require_rise: true, ..Overfitting::default() };
    let rising = LossAware { overfitting: overfitting.clone(), ..LossAware::default() };
    let adaptive = |risk| AdaptiveRung { risk, ..AdaptiveRung::default() };
    let later = |keep| LossAware { underperforming: Underperforming { mark: 0.1, keep }, ..rising.clone() };
    let policies = [
        ("never", Policy::Never),
        ("diverging", Policy::Diverging(Diverging::default())),
        ("overfitting", Policy::Overfitting(Overfitting::default())),
        ("overfitting, rising", Policy::Overfitting(overfitting.clone())),
        ("underperforming", Policy::Underperforming(Underperforming::default())),
        ("loss aware", Policy::LossAware(LossAware::default())),
        ("loss aware, rising, an eighth stays at 10%", Policy::LossAware(later(0.125))),
        ("loss aware, rising, a quarter stays at 10%", Policy::LossAware(later(0.25))),
        ("an eighth stays at 10%", Policy::Underperforming(Underperforming { mark: 0.1, keep: 0.125 })),
        ("a quarter stays at 10%", Policy::Underperforming(Underperforming { mark: 0.1, keep: 0.25 })),
        ("loss aware, rising", Policy::LossAware(rising)),
        ("worse than untrained", Policy::WorseThanUntrained(WorseThanUntrained::default())),
        ("stalled", Policy::Patience(Patience::default())),
        ("extrapolation", Policy::Extrapolation(Extrapolation::default())),
        ("median stopping", Policy::MedianStopping(MedianStopping::default())),
        ("successive halving", Policy::SuccessiveHalving(SuccessiveHalving::default())),
        ("hyperband", Policy::Hyperband(Hyperband::default())),
        ("asha", Policy::Asha(Asha::default())),
        ("adaptive rung, 1%", Policy::AdaptiveRung(AdaptiveRung::default())),
        ("adaptive rung, 30%", Policy::AdaptiveRung(adaptive(0.3))),
        ("adaptive rung, 100%", Policy::AdaptiveRung(adaptive(1.0))),
        (
            "adaptive rung, 30%, and overfitting, rising",
            Policy::AnyOf(vec![Policy::Overfitting(overfitting), Policy::AdaptiveRung(adaptive(0.3))]),
        ),
    ];
    policies.into_iter().map(|(name, policy)| (name.to_owned(), policy)).collect()
}
