//! The policies, one in each file.

mod adaptive_rung;
pub(crate) mod any_of;
mod asha;
mod at_least_peers;
mod diverging;
mod extrapolation;
mod hyperband;
mod loss_aware;
mod median_stopping;
mod never;
mod not_before;
mod overfitting;
mod patience;
mod patient;
mod successive_halving;
mod underperforming;
mod worse_than_untrained;

pub use adaptive_rung::AdaptiveRung;
pub use any_of::AnyOf;
pub use asha::Asha;
pub use at_least_peers::AtLeastPeers;
pub use diverging::Diverging;
pub use extrapolation::Extrapolation;
pub use hyperband::Hyperband;
pub use loss_aware::LossAware;
pub use median_stopping::MedianStopping;
pub use never::Never;
pub use not_before::NotBefore;
pub use overfitting::Overfitting;
pub use patience::Patience;
pub use patient::Patient;
pub use successive_halving::SuccessiveHalving;
pub use underperforming::Underperforming;
pub use worse_than_untrained::WorseThanUntrained;
