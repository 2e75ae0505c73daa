//! The policies, one in each file.

pub(crate) mod any_of;
mod diverging;
mod loss_aware;
mod never;
mod overfitting;
mod underperforming;

pub use any_of::AnyOf;
pub use diverging::Diverging;
pub use loss_aware::LossAware;
pub use never::Never;
pub use overfitting::Overfitting;
pub use underperforming::Underperforming;
