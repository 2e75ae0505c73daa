//! What one call of a backend computes on: the rows of all lanes end to end, unpadded.

use crate::backend::Slot;

/// One training example: what goes in, and what each position is to predict.
///
/// Both have the same length. A position predicts the *following* token, so a text of `n` tokens
/// gives at most `n - 1` positions; those behind the last labelled one never matter and are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Example {
    /// Token ids, in order.
    pub tokens: Vec<u32>,
    /// The token that each position is to predict; `None` where it doesn't count.
    pub targets: Vec<Option<u32>>,
}

impl Example {
    /// From token ids and labels aligned with them, as Hugging Face lays them out: the label at `t` is what
    /// position `t - 1` predicts, and negative labels don't count.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn from_labels(tokens: &[u32], labels: &[i64]) -> Self {
        assert_eq!(tokens.len(), labels.len(), "one label for each token");
        let targets = labels.iter().skip(1).map(|&label| u32::try_from(label).ok());
        let mut targets: Vec<_> = targets.collect();
        let used = targets.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        targets.truncate(used);
        Self { tokens: tokens[..used].to_vec(), targets }
    }

    /// Positions that count in the loss.
    pub fn labelled(&self) -> usize {
        self.targets.iter().flatten().count()
    }
}

/// What a lane is trained towards, as a function of its labelled tokens' log-probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Objective {
    /// Supervised tuning: the sum of `-log p` over the labelled tokens, over the lane's divisor.
    #[default]
    NegativeLogLikelihood,
}

/// The consecutive rows of one job in a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// Whose adapter the rows go through; `None` is the base model alone.
    pub slot: Option<Slot>,
    /// How many rows; may be zero.
    pub rows: usize,
    /// What the rows are trained towards.
    pub objective: Objective,
    /// What the summed loss is divided by: for token-mean accumulation, all labelled tokens of the optimizer step.
    pub divisor: f64,
    /// Whether this is the last micro-batch of the optimizer step: the optimizer leaves the lane alone until then.
    pub last: bool,
}

/// The rows of all lanes, end to end and unpadded, in the lanes' order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// Token ids of all rows.
    pub tokens: Vec<u32>,
    /// What each position is to predict; as long as `tokens`.
    pub targets: Vec<Option<u32>>,
    /// Each row's length; they add up to the number of tokens.
    pub row_lengths: Vec<usize>,
    /// Whose rows they are; their row counts add up to the number of rows.
    pub lanes: Vec<Lane>,
}

impl Batch {
    /// Appends a lane and its rows.
    pub fn push<'a>(&mut self, lane: Lane, rows: impl IntoIterator<Item = &'a Example>) {
        let before = self.row_lengths.len();
        for row in rows {
            self.tokens.extend_from_slice(&row.tokens);
            self.targets.extend_from_slice(&row.targets);
            self.row_lengths.push(row.tokens.len());
        }
        assert_eq!(self.row_lengths.len() - before, lane.rows, "a lane's row count is that of its rows");
        self.lanes.push(lane);
    }

    /// Each lane with the range of its tokens.
    pub fn lane_tokens(&self) -> impl Iterator<Item = (&Lane, std::ops::Range<usize>)> {
        let (mut row, mut token) = (0, 0);
        self.lanes.iter().map(move |lane| {
            let length: usize = self.row_lengths[row..row + lane.rows].iter().sum();
            row += lane.rows;
            token += length;
            (lane, token - length..token)
        })
    }
}
