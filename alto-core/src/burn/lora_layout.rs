//! Where each adapter's entries lie in the flat parameters.
//!
//! Module by module: the packed `a` of all tenants, `[ranks, d_in]`, then their packed `b`, `[ranks, d_out]`. A tenant's
//! factors are consecutive rows of both, so each is one span of entries, and a whole packed factor is one view.
//!
//! Devices have views only of what begins and ends at a multiple of their alignment, up to 512 bytes, and copy anything
//! else. So each module's ranks are padded with rows that are nobody's and zero until both its factors do: none for widths
//! that are multiples of 128, as those of real models mostly are, fewer than 128 at most.

use std::ops::Range;

use crate::job::AdapterConfig;
use crate::model::{Linear, ModelConfig};

/// A linear layer that an adapter may sit on.
#[derive(Debug, Clone)]
pub(super) struct Module {
    pub(super) path: String,
    pub(super) linear: Linear,
    pub(super) d_in: usize,
    pub(super) d_out: usize,
}

/// All modules of a model, in the order in which it computes them.
pub(super) fn modules(config: &ModelConfig) -> Vec<Module> {
    let of_layer = |layer| {
        Linear::ALL.map(|linear| {
            let [d_out, d_in] = linear.shape(config);
            Module { path: linear.path(layer), linear, d_in, d_out }
        })
    };
    (0..config.layers).flat_map(of_layer).collect()
}

/// Entries in f32 that the strictest device's alignment is worth.
const ALIGNMENT: usize = 512 / size_of::<f32>();

/// A module's place in the flat parameters.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// Rows of the packed factors, nobody's included.
    pub(super) total_ranks: usize,
    /// Entries of the packed `a`.
    pub(super) a: Range<usize>,
    /// Entries of the packed `b`.
    pub(super) b: Range<usize>,
    /// Each tenant's rows in both; empty where it doesn't target the module.
    pub(super) ranks: Vec<Range<usize>>,
}

impl Place {
    /// A tenant's entries of `a` and of `b`.
    pub(super) fn spans(&self, module: &Module, tenant: usize) -> [Range<usize>; 2] {
        let ranks = &self.ranks[tenant];
        let span = |base: usize, width: usize| base + ranks.start * width..base + ranks.end * width;
        [span(self.a.start, module.d_in), span(self.b.start, module.d_out)]
    }
}

/// The places of all modules for these tenants, in order.
pub(super) fn places<'a>(modules: &[Module], tenants: impl Iterator<Item = &'a AdapterConfig> + Clone) -> Vec<Place> {
    let mut end = 0;
    let mut take = |entries: usize| {
        end += entries;
        end - entries..end
    };
    let place = |module: &Module| {
        let ranks = tenants.clone().scan(0, |end, adapter| {
            let rank = if adapter.targets.contains(module.linear.name()) { adapter.rank } else { 0 };
            *end += rank;
            Some(*end - rank..*end)
        });
        let ranks: Vec<Range<usize>> = ranks.collect();
        let total_ranks = padded(ranks.last().map_or(0, |ranks| ranks.end), module);
        Place { total_ranks, a: take(total_ranks * module.d_in), b: take(total_ranks * module.d_out), ranks }
    };
    modules.iter().map(place).collect()
}

/// The least number of rows, at least so many, at which both factors' entries are a multiple of the alignment.
fn padded(ranks: usize, module: &Module) -> usize {
    // The alignment is a power of two, so what a width lacks of it is, too, and the larger lack covers the smaller.
    let lacks = |width: usize| ALIGNMENT >> width.trailing_zeros().min(ALIGNMENT.trailing_zeros());
    ranks.next_multiple_of(lacks(module.d_in).max(lacks(module.d_out)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Linear;

    fn module(d_in: usize, d_out: usize) -> Module {
        Module { path: "layer".to_owned(), linear: Linear::Q, d_in, d_out }
    }

    fn adapter(rank: usize) -> AdapterConfig {
        let targets = [Linear::Q.name().to_owned()].into();
        AdapterConfig { rank, alpha: 1.0, rank_stabilized: false, targets }
    }

    #[test]
    fn every_factor_begins_and_ends_at_a_multiple_of_the_alignment() {
        let modules = [module(64, 160), module(1, 3), module(2048, 512), module(160, 64), module(96, 576)];
        let tenants = [adapter(3), adapter(8), adapter(1)];
        let places = places(&modules, tenants.iter());
        let mut end = 0;
        for (place, module) in places.iter().zip(&modules) {
            for factor in [&place.a, &place.b] {
                assert_eq!(factor.start, end);
                assert!(factor.end.is_multiple_of(ALIGNMENT), "{factor:?} of {module:?}");
                end = factor.end;
            }
            assert_eq!(place.ranks, [0..3, 3..11, 11..12]);
            assert_eq!(place.a.len(), place.total_ranks * module.d_in);
            assert_eq!(place.b.len(), place.total_ranks * module.d_out);
        }
        // 12 rows: to multiples of 4, of 128, of 1, of 4, of 4.
        assert_eq!(places.iter().map(|place| place.total_ranks).collect::<Vec<_>>(), [12, 128, 12, 12, 12]);
        assert_eq!(padded(13, &modules[0]), 16);
        assert_eq!(padded(0, &modules[1]), 0);
    }

    #[test]
    fn nobody_takes_no_room() {
        let modules = [module(64, 160), module(1, 3)];
        for tenants in [&[][..], &[AdapterConfig { targets: Default::default(), ..adapter(8) }]] {
            let places = places(&modules, tenants.iter());
            assert!(places.iter().all(|place| place.a.is_empty() && place.b.is_empty()), "{places:?}");
        }
    }
}
