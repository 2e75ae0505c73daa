//! The policies that come with the crate, by name.

use alto_exit::{Diverging, LossAware, Overfitting, Policy, Underperforming};

/// Each with its default settings.
pub(crate) fn policies() -> Vec<(String, Policy)> {
    let overfitting = Overfitting { require_rise: true, ..Overfitting::default() };
    let rising = LossAware { overfitting: overfitting.clone(), ..LossAware::default() };
    let policies = [
        ("never", Policy::Never),
        ("diverging", Policy::Diverging(Diverging::default())),
        ("overfitting", Policy::Overfitting(Overfitting::default())),
        ("overfitting, rising", Policy::Overfitting(overfitting)),
        ("underperforming", Policy::Underperforming(Underperforming::default())),
        ("loss aware", Policy::LossAware(LossAware::default())),
        ("loss aware, rising", Policy::LossAware(rising)),
    ];
    policies.into_iter().map(|(name, policy)| (name.to_owned(), policy)).collect()
}
