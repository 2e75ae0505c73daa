//! Reasons as sentences.

use std::fmt;

use super::{Reason, Series, Standing};

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Training => "training",
            Self::Validation => "validation",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diverging { step, train_slope, validation_slope, threshold, window, patience } => write!(
                f,
                "diverging at step {step}: over {window} evaluations the training loss rises by {} and the validation \
                 loss by {} per evaluation, both at least {threshold}, {patience} times in a row",
                Short(*train_slope),
                Short(*validation_slope),
            ),
            Self::NotFinite { step, series, loss } => {
                write!(f, "not finite at step {step}: the {series} loss is {loss}")
            }
            Self::Overfitting { step, gap, threshold, patience, train, validation } => write!(
                f,
                "overfitting at step {step}: validation loss {} against training loss {} is a gap of {}, over {threshold}, \
                 {patience} evaluations in a row",
                Short(*validation),
                Short(*train),
                Short(*gap),
            ),
            &Self::Underperforming { step, mark, place, of, kept, loss, cut } => {
                write!(f, "underperforming at {}", Standing { step, mark, place, of, kept, loss, cut })
            }
            Self::Outpaced { step, mark, place, of, gap, chance, spent, risk, stability } => {
                write!(
                    f,
                    "outpaced at step {step}: place {place} of {of} at progress {}, behind the lowest loss by {} of what was \
                     learned there, with a chance of {} to come in first; all that were cut so far have {} of {risk} allowed",
                    Mark(*mark),
                    Short(*gap),
                    Short(*chance),
                    Short(*spent),
                )?;
                match stability {
                    Some(stability) => write!(f, ", and the ranking correlates with the last one by {stability:.2}"),
                    None => Ok(()),
                }
            }
            Self::WorseThanUntrained { step, loss, untrained, margin, patience } => write!(
                f,
                "worse than untrained at step {step}: loss {} against {} before training, above it by more than a share of \
                 {margin}, {patience} times in a row",
                Short(*loss),
                Short(*untrained),
            ),
            Self::Stalled { step, best, since, gain, evaluations } => write!(
                f,
                "stalled at step {step}: the best of {evaluations} evaluations, {}, is not under the best before them, {}, by \
                 more than a share of {gain}",
                Short(*since),
                Short(*best),
            ),
            Self::GeneralizationLoss { step, loss, best, percent, alpha } => write!(
                f,
                "generalization loss at step {step}: loss {} is {} percent above its lowest, {}, and over {alpha} is too much",
                Short(*loss),
                Short(*percent),
                Short(*best),
            ),
            Self::Quotient { step, percent, per_mille, quotient, alpha, strip } => write!(
                f,
                "quotient at step {step}: a generalization loss of {} percent against training progress of {} per mille \
                 over {strip} evaluations is {}, over {alpha}",
                Short(*percent),
                Short(*per_mille),
                Short(*quotient),
            ),
            Self::Rising { step, from, to, strips, strip } => write!(
                f,
                "rising at step {step}: from {} to {} in {strips} strips of {strip} evaluations, each ending higher than \
                 the one before",
                Short(*from),
                Short(*to),
            ),
            Self::MedianStopping { step, progress, best, median, peers } => write!(
                f,
                "median stopping at step {step}: its best loss is {}, but the median of what {peers} others averaged up \
                 to progress {} is {}",
                Short(*best),
                Short(*progress),
                Short(*median),
            ),
            Self::SuccessiveHalving(standing) => write!(f, "successive halving at {standing}"),
            Self::Hyperband { bracket, standing } => write!(f, "hyperband, bracket {bracket}, at {standing}"),
            Self::Asha(standing) => write!(f, "asha at {standing}"),
            Self::Extrapolation { step, expected, target, chance, bound, evaluations } => write!(
                f,
                "extrapolation at step {step}: {evaluations} evaluations lead to a loss of {} at the end, and the chance to \
                 get under the best so far, {}, is {}, under {bound}",
                Short(*expected),
                Short(*target),
                Short(*chance),
            ),
            Self::Custom { policy, numbers } => {
                f.write_str(policy)?;
                for (i, (name, number)) in numbers.iter().enumerate() {
                    write!(f, "{}{name} = {}", if i == 0 { ": " } else { ", " }, Short(*number))?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, mark, place, of, kept, loss, cut } = self;
        write!(
            f,
            "step {step}: place {place} of {of} at progress {} with loss {}, but only the best {kept} stay, up to {}",
            Mark(*mark),
            Short(*loss),
            Short(*cut),
        )
    }
}

/// A mark may be the product of others: 0.15000000000000002.
struct Mark(f64);

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", (self.0 * 1e6).round() / 1e6)
    }
}

/// Four decimals where they tell something, else scientific: an exploded loss may be 1e30.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        if size != 0.0 && size.is_finite() && !(1e-3..1e6).contains(&size) {
            write!(f, "{:.3e}", self.0)
        } else {
            write!(f, "{:.4}", self.0)
        }
    }
}
