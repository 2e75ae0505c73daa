//! Where each adapter's entries lie in the flat parameters.
//!
//! Module by module: the packed `a` of all tenants, `[ranks, d_in]`, then their packed `b`, `[ranks, d_out]`. A tenant's
//! factors are consecutive rows of both, so each is one span of entries, and a whole packed factor is one view.

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

/// A module's place in the flat parameters.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// Entries of the packed `a`.
    pub(super) a: Range<usize>,
    /// Entries of the packed `b`.
    pub(super) b: Range<usize>,
    /// Each tenant's rows in both; empty where it doesn't target the module.
    pub(super) ranks: Vec<Range<usize>>,
}

impl Place {
    /// Rows of the packed factors.
    pub(super) fn total_ranks(&self) -> usize {
        self.ranks.last().map_or(0, |ranks| ranks.end)
    }

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
        let total = ranks.last().map_or(0, |ranks| ranks.end);
        Place { a: take(total * module.d_in), b: take(total * module.d_out), ranks }
    };
    modules.iter().map(place).collect()
}
