//! Rows of different lengths, laid end to end.

use std::ops::{Deref, Range};
use std::sync::Arc;

#[cfg(feature = "cubecl")]
use crate::cube::Tables;

/// The lengths of a batch's rows, which lie end to end without padding; shared by all layers.
///
/// A clone is cheap, and shares what a device needs to know of them: it is laid out and sent once, however many layers
/// and directions use it. So make one per batch, not one per layer.
#[derive(Debug, Clone)]
pub struct Rows(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    lengths: Vec<usize>,
    #[cfg(feature = "cubecl")]
    tables: Tables,
}

impl Rows {
    /// Rows of so many tokens each; any may be empty.
    pub fn new(lengths: Vec<usize>) -> Self {
        Self(Arc::new(Shared {
            lengths,
            #[cfg(feature = "cubecl")]
            tables: Tables::default(),
        }))
    }

    /// Tokens of all rows together.
    pub fn tokens(&self) -> usize {
        self.iter().sum()
    }

    /// Tokens of the longest row; 0 without rows.
    pub fn longest(&self) -> usize {
        self.iter().copied().max().unwrap_or(0)
    }

    /// Each row's tokens, in order.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.iter().scan(0, |end, &length| {
            *end += length;
            Some(*end - length..*end)
        })
    }

    /// What devices know of these rows.
    #[cfg(feature = "cubecl")]
    pub(crate) fn tables(&self) -> &Tables {
        &self.0.tables
    }
}

impl Deref for Rows {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0.lengths
    }
}

impl From<Vec<usize>> for Rows {
    fn from(lengths: Vec<usize>) -> Self {
        Self::new(lengths)
    }
}

impl From<&[usize]> for Rows {
    fn from(lengths: &[usize]) -> Self {
        Self::new(lengths.to_vec())
    }
}
