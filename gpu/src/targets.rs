//! What the figures were to reach.

use crate::record::{Record, Target};

/// Sets what was measured beside what was to be reached; a rehearsal's times neither meet nor miss anything.
pub(crate) fn targets(record: &mut Record, first_batch: usize, rehearsal: bool) {
    let step = format!("step {first_batch}");
    let found = [
        worst(record, "Base GEMM, share of PyTorch's rate, worst shape", |name| {
            name.starts_with("gemm ") && name.ends_with("share of PyTorch's rate")
        })
        .at_least(0.97),
        worst(record, "Grouped launches, share of the bandwidth floor, worst", |name| {
            name.starts_with("launch ") && name.ends_with("share of floor")
        })
        .at_least(0.8),
        worst(record, "The same, less what empty launches take", |name| {
            name.starts_with("launch ") && name.ends_with("share of floor less empty launches")
        })
        .at_least(0.8),
        Found { what: "Adapters add to a step of the base alone, worst batch".to_owned(), found: most_added(record) }
            .at_most(0.1),
        one(
            record,
            "Step with one row of each adapter, times PyTorch's best grouping",
            &step,
            "PyTorch's best grouping",
        )
        .at_least(2.5),
        one(record, "Step with one row of each adapter, times one after another", &step, "one after another")
            .at_least(6.0),
    ];
    record.targets.extend(found.map(|target| Target { met: target.met.filter(|_| !rehearsal), ..target }));
}

/// A figure, if it was measured.
struct Found {
    what: String,
    found: Option<f64>,
}

impl Found {
    fn at_least(self, wanted: f64) -> Target {
        let met = self.found.map(|found| found >= wanted);
        self.target(format!("at least {wanted}"), met)
    }

    fn at_most(self, wanted: f64) -> Target {
        let met = self.found.map(|found| found <= wanted);
        self.target(format!("at most {wanted}"), met)
    }

    fn target(self, wanted: String, met: Option<bool>) -> Target {
        Target { what: self.what, wanted, reached: self.found.map(|found| format!("{found:.2}")), met }
    }
}

fn worst(record: &Record, what: &str, which: impl Fn(&str) -> bool) -> Found {
    let figures = record.figures.iter().filter(|(name, _)| which(name));
    Found { what: what.to_owned(), found: figures.map(|(_, &figure)| figure).min_by(f64::total_cmp) }
}

fn most_added(record: &Record) -> Option<f64> {
    let added = record.figures.iter().filter(|(name, _)| name.ends_with(": share added by adapters"));
    added.map(|(_, &share)| share).max_by(f64::total_cmp)
}

fn one(record: &Record, what: &str, step: &str, than: &str) -> Found {
    let found = record.figures.get(&format!("{step}: times faster than {than}")).copied();
    Found { what: what.to_owned(), found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_worst_figure_decides_and_nothing_is_made_up() {
        let mut record = Record::new(BTreeMap::new());
        record.figure("gemm forward a: share of PyTorch's rate".to_owned(), 1.01);
        record.figure("gemm forward b: share of PyTorch's rate".to_owned(), 0.9);
        record.figure("step 1: share added by adapters".to_owned(), 0.05);
        targets(&mut record, 1, false);
        let met: Vec<Option<bool>> = record.targets.iter().map(|target| target.met).collect();
        assert_eq!(met, [Some(false), None, None, Some(true), None, None]);
        assert_eq!(record.targets[0].reached.as_deref(), Some("0.90"));
    }
}
