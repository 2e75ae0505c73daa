//! What was found, as a table for people and as JSON for programs.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use serde::Serialize;

/// Everything that one run of the check found.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    /// What the figures are true of, such as the device, its driver and the commit.
    pub(crate) facts: BTreeMap<&'static str, String>,
    pub(crate) targets: Vec<Target>,
    pub(crate) tables: Vec<Table>,
    /// Every number of the tables by name; times are seconds.
    pub(crate) figures: BTreeMap<String, f64>,
    /// What wasn't measured, and why.
    pub(crate) missing: Vec<String>,
    /// What is wrong.
    pub(crate) failures: Vec<String>,
}

/// Something that was to be reached.
#[derive(Debug, Serialize)]
pub(crate) struct Target {
    pub(crate) what: String,
    /// In words, such as `at least 97%`.
    pub(crate) wanted: String,
    /// In words; `None` where it wasn't measured.
    pub(crate) reached: Option<String>,
    pub(crate) met: Option<bool>,
}

/// Rows of text under a title.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    /// What the columns mean.
    pub(crate) note: String,
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Record {
    pub(crate) fn new(facts: BTreeMap<&'static str, String>) -> Self {
        let (targets, tables, figures) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { facts, targets, tables, figures, missing: Vec::new(), failures: Vec::new() }
    }

    /// Takes down a number under a name that nothing else has.
    pub(crate) fn figure(&mut self, name: String, number: f64) {
        self.figures.insert(name, number);
    }

    /// Runs a part of the check; a panic in it is a failure of this part, and the others run all the same.
    pub(crate) fn part(&mut self, what: &str, run: impl FnOnce(&mut Self)) {
        eprintln!("{what} ...");
        let start = Instant::now();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(self))) {
            self.failures.push(format!("{what}: {}", message(&*panic)));
        }
        eprintln!("{what}: {:.1} s", start.elapsed().as_secs_f64());
    }

    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n", self.facts.get("device").map_or("unknown device", String::as_str));
        let facts = self.facts.iter().filter(|(name, _)| **name != "device");
        let facts: Vec<String> = facts.map(|(name, fact)| format!("{name}: {fact}")).collect();
        text += &facts.join("; ");
        text += ".\n";
        if !self.targets.is_empty() {
            let row = |target: &Target| {
                let reached = target.reached.clone().unwrap_or_else(|| "not measured".to_owned());
                let verdict = target.met.map_or("", |met| if met { "yes" } else { "no" });
                vec![target.what.clone(), target.wanted.clone(), reached, verdict.to_owned()]
            };
            let rows: Vec<_> = self.targets.iter().map(row).collect();
            section(&mut text, "Targets", "", &["what", "target", "reached", "met"], &rows);
        }
        for Table { title, note, columns, rows } in self.tables.iter().filter(|table| !table.rows.is_empty()) {
            section(&mut text, title, note, columns, rows);
        }
        for (title, lines) in [("Failures", &self.failures), ("Not measured", &self.missing)] {
            if !lines.is_empty() {
                write!(text, "\n## {title}\n\n").expect("memory");
                for line in lines {
                    writeln!(text, "- {line}").expect("memory");
                }
            }
        }
        text
    }
}

fn section(text: &mut String, title: &str, note: &str, columns: &[&str], rows: &[Vec<String>]) {
    write!(text, "\n## {title}\n\n").expect("memory");
    if !note.is_empty() {
        write!(text, "{note}\n\n").expect("memory");
    }
    writeln!(text, "| {} |\n|---|{}", columns.join(" | "), "---:|".repeat(columns.len() - 1)).expect("memory");
    for row in rows {
        writeln!(text, "| {} |", row.join(" | ")).expect("memory");
    }
}

/// Milliseconds, to three digits or so.
pub(crate) fn ms(seconds: f64) -> String {
    match seconds * 1e3 {
        ms if !ms.is_finite() => "-".to_owned(),
        ms if ms < 10.0 => format!("{ms:.3}"),
        ms => format!("{ms:.1}"),
    }
}

/// As [`ms`], if there is a time.
pub(crate) fn ms_or_none(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), ms)
}

/// A ratio, if there is one.
pub(crate) fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// What a panic said, on one line.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked without a message").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_panics_is_a_failure_and_the_next_one_runs() {
        let mut record = Record::new(BTreeMap::from([("device", "X 1".to_owned())]));
        record.part("first", |_| panic!("out of\nmemory"));
        record.part("second", |record| record.figure("a".to_owned(), 1.0));
        assert_eq!(record.failures, ["first: out of memory"]);
        assert_eq!(record.figures["a"], 1.0);
        let text = record.markdown();
        assert!(text.starts_with("# X 1\n") && text.contains("- first: out of memory"), "{text}");
    }

    #[test]
    fn a_target_that_was_not_measured_is_neither_met_nor_missed() {
        let mut record = Record::new(BTreeMap::new());
        let target = Target { what: "speed".into(), wanted: "at least 2".into(), reached: None, met: None };
        record.targets.push(target);
        assert!(record.markdown().contains("| speed | at least 2 | not measured |  |"), "{}", record.markdown());
    }
}
