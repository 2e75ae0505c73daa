//! What `torch_times.py` measured on the same machine.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

/// PyTorch's times, in seconds, by what is timed and then by how it was computed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TorchTimes {
    /// Versions and the device's name.
    pub(crate) facts: BTreeMap<String, String>,
    pub(crate) rehearsal: bool,
    times: BTreeMap<String, BTreeMap<String, f64>>,
    /// Bytes per second that a copy reads and writes.
    pub(crate) bandwidth: Option<f64>,
    /// What wasn't measured, and why.
    pub(crate) missing: Vec<String>,
}

impl TorchTimes {
    /// # Errors
    /// When the file can't be read, or is of a rehearsal where this is none, or the other way round.
    pub(crate) fn read(path: &Path, rehearsal: bool) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let times: Self = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if times.rehearsal == rehearsal {
            Ok(times)
        } else {
            Err(format!("{} is of other sizes: one of the two is a rehearsal", path.display()))
        }
    }

    /// Every time with its name.
    pub(crate) fn figures(&self) -> impl Iterator<Item = (String, f64)> {
        let figure = |(what, ways): (&String, &BTreeMap<String, f64>)| {
            let figure = |(way, &seconds): (&String, &f64)| (format!("{what}: seconds of PyTorch, {way}"), seconds);
            ways.iter().map(figure).collect::<Vec<_>>()
        };
        self.times.iter().flat_map(figure)
    }

    /// Whether a way trains one adapter after another.
    pub(crate) fn is_sequential(way: &str) -> bool {
        way.ends_with("one after another")
    }

    /// The way that took least, of all or of those whose name passes.
    pub(crate) fn best(&self, what: &str, which: impl Fn(&str) -> bool) -> Option<(&str, f64)> {
        let ways = self.times.get(what)?.iter().filter(|(way, _)| which(way));
        ways.map(|(way, &seconds)| (way.as_str(), seconds)).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// All ways, such as `bmm 1.2, loop 3.4`, in milliseconds.
    pub(crate) fn all(&self, what: &str) -> String {
        let ways = self.times.get(what).into_iter().flatten();
        let ways: Vec<String> = ways.map(|(way, &seconds)| format!("{way} {}", crate::record::ms(seconds))).collect();
        if ways.is_empty() { "-".to_owned() } else { ways.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_way_is_the_shortest_of_those_asked_for() {
        let text = r#"{"facts": {}, "rehearsal": true, "bandwidth": null, "missing": [],
                       "times": {"step 1": {"loop": 3.0, "bmm": 2.0, "one after another": 1.0}}}"#;
        let times: TorchTimes = serde_json::from_str(text).unwrap();
        assert_eq!(times.best("step 1", |_| true), Some(("one after another", 1.0)));
        assert_eq!(times.best("step 1", |way| way != "one after another"), Some(("bmm", 2.0)));
        assert_eq!(times.best("step 2", |_| true), None);
    }
}
