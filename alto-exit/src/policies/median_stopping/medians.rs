//! Medians that leave one value out.

/// The medians of some values without one of them, whichever it is.
pub(super) struct Medians {
    count: usize,
    /// The values that can be in the middle then, ascending, if not all.
    middle: Vec<f64>,
}

impl Medians {
    pub(super) fn of(mut values: Vec<f64>) -> Self {
        let count = values.len();
        let from = lower(count.saturating_sub(1));
        if from < count {
            values.select_nth_unstable_by(from, f64::total_cmp);
        }
        // Two more above it: one for an even count, one for a value taken out.
        let mut middle = values.split_off(from.min(count));
        for place in 0..middle.len().min(3) {
            middle[place..].select_nth_unstable_by(0, f64::total_cmp);
        }
        middle.truncate(3);
        Self { count, middle }
    }

    /// The median of the values but for this one, and how many they are.
    pub(super) fn without(&self, own: f64) -> (f64, usize) {
        if own.is_nan() {
            return (f64::INFINITY, 0);
        }
        let others = self.count - 1;
        let at = |place: usize| {
            let shifted = if own <= self.middle[place] { place + 1 } else { place };
            self.middle[shifted]
        };
        let median = match others {
            0 => f64::INFINITY,
            odd if odd % 2 == 1 => at(0),
            _ => at(0) / 2.0 + at(1) / 2.0,
        };
        (median, others)
    }
}

/// Index of the lower of the middle values of so many.
fn lower(count: usize) -> usize {
    count.saturating_sub(1) / 2
}
