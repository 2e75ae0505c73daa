//! Which tokens of a batch go through which adapter.

use std::ops::{Deref, Range};
use std::sync::Arc;

#[cfg(feature = "cubecl")]
use crate::cube::Tables;

/// The tokens that go through one adapter, and where that adapter's factors lie in the packed ones.
#[derive(Debug, Clone, PartialEq)]
pub struct LoraLane {
    /// Tokens of the batch.
    pub rows: Range<usize>,
    /// Rows of the packed factors; none where the adapter doesn't target this layer.
    pub ranks: Range<usize>,
    /// Factor on the adapter's output, such as alpha over rank.
    pub scale: f32,
}

/// The lanes of a batch, checked once and shared by all layers whose factors are packed alike.
///
/// A clone is cheap, and shares what a device needs to know of them: it is laid out and sent once, however many layers
/// and directions use it. So make one per batch, not one per layer.
#[derive(Debug, Clone)]
pub struct LoraLanes(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    lanes: Vec<LoraLane>,
    #[cfg(feature = "cubecl")]
    tables: Tables,
}

impl LoraLanes {
    /// The lanes in any order; they may be empty, and tokens and ranks may belong to none.
    ///
    /// # Panics
    /// If two lanes share tokens or ranks.
    pub fn new(lanes: Vec<LoraLane>) -> Self {
        disjoint("tokens", lanes.iter().map(|lane| &lane.rows));
        disjoint("ranks", lanes.iter().map(|lane| &lane.ranks));
        Self(Arc::new(Shared {
            lanes,
            #[cfg(feature = "cubecl")]
            tables: Tables::default(),
        }))
    }

    /// Panics if a lane reaches beyond so many tokens or ranks.
    pub(crate) fn check(&self, tokens: usize, ranks: usize) {
        for lane in self.iter() {
            for (what, range, end) in [("tokens", &lane.rows, tokens), ("ranks", &lane.ranks, ranks)] {
                assert!(range.is_empty() || range.end <= end, "a lane has the {what} {range:?} of only {end}");
            }
        }
    }

    /// What devices know of these lanes.
    #[cfg(feature = "cubecl")]
    pub(crate) fn tables(&self) -> &Tables {
        &self.0.tables
    }
}

impl Deref for LoraLanes {
    type Target = [LoraLane];

    fn deref(&self) -> &[LoraLane] {
        &self.0.lanes
    }
}

impl From<Vec<LoraLane>> for LoraLanes {
    fn from(lanes: Vec<LoraLane>) -> Self {
        Self::new(lanes)
    }
}

fn disjoint<'r>(what: &str, ranges: impl Iterator<Item = &'r Range<usize>>) {
    let mut used: Vec<_> = ranges.filter(|range| !range.is_empty()).collect();
    used.sort_by_key(|range| range.start);
    for pair in used.windows(2) {
        assert!(pair[0].end <= pair[1].start, "two lanes share {what}: {:?} and {:?}", pair[0], pair[1]);
    }
}
