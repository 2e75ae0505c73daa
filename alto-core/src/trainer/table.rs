//! A report as a table that people read.

use std::fmt;

use super::report::{JobReport, Report};

/// A [`Report`] as plain text; see [`Report::table`].
#[derive(Debug)]
pub struct Table<'a>(&'a Report);

impl Report {
    /// A table in plain text: each job's settings, how it ended and why, its best loss and the share of its budget that
    /// it used; below it the winner, sums and warnings.
    pub fn table(&self) -> Table<'_> {
        Table(self)
    }
}

const HEADER: [&str; 9] = ["job", "rank", "lr", "batch", "ended", "best loss", "at step", "used", "why"];

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        let mut lines = vec![HEADER.map(str::to_owned)];
        lines.extend(report.jobs.iter().map(cells));
        let widths: Vec<usize> = (0..HEADER.len())
            .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
            .collect();
        for line in &lines {
            let mut text = String::new();
            for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                // Names to the left, numbers to the right.
                text += &match HEADER[column] {
                    "job" | "ended" | "why" => format!("{cell:<width$}  "),
                    _ => format!("{cell:>width$}  "),
                };
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        writeln!(f)?;
        match report.winner.map(|index| &report.jobs[index]) {
            Some(JobReport { job, best: Some(best), .. }) => {
                write!(f, "Best: {}, validation loss {:.4} nats per token", job.name, best.loss)?;
                if let Some(bits) = report.bits_per_byte(best.loss) {
                    write!(f, " ({bits:.4} bits per byte)")?;
                }
                writeln!(f, " after {} steps.", best.step)?;
            }
            _ => writeln!(f, "No job was trained and has a finite validation loss.")?,
        }
        let totals = &report.totals;
        writeln!(
            f,
            "{} of {} samples ({:.0}% saved), {} tokens, {:.1} s.",
            totals.samples,
            totals.samples_budgeted,
            100.0 * totals.saved(),
            totals.tokens,
            totals.seconds
        )?;
        if let Some(audit) = &report.audit {
            audit.rates.iter().try_for_each(|rate| writeln!(f, "{rate}"))?;
        }
        if report.memory.is_some() {
            writeln!(f, "Measuring memory took {:.1}% of the time.", 100.0 * totals.profile_share())?;
        }
        report.warnings.iter().try_for_each(|warning| writeln!(f, "Warning: {warning}."))
    }
}

fn cells(report: &JobReport) -> [String; HEADER.len()] {
    let JobReport { job, best, .. } = report;
    let batch = match job.accumulation {
        1 => job.batch.to_string(),
        accumulation => format!("{} x {accumulation}", job.batch),
    };
    let (loss, step) = match best {
        Some(best) => (format!("{:.4}", best.loss), best.step.to_string()),
        None => ("-".into(), "-".into()),
    };
    let (word, why) = (report.ended.word(), report.ended.to_string());
    // The word stands in its own column.
    let why = why.strip_prefix(word).unwrap_or(&why).trim_start().to_owned();
    [
        job.name.clone(),
        job.adapter.rank.to_string(),
        format!("{:e}", job.optimizer.learning_rate),
        batch,
        word.to_owned(),
        loss,
        step,
        format!("{:.1}%", 100.0 * report.share),
        why,
    ]
}
