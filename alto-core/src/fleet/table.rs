//! A report as a table that people read.

use std::fmt;

use super::report::{Report, TaskReport};

/// A [`Report`] as plain text; see [`Report::table`].
#[derive(Debug)]
pub struct Table<'a>(&'a Report);

impl Report {
    /// A table in plain text: when each task came, how long it waited and ran, on which devices, and how it ended; below
    /// it the sums.
    pub fn table(&self) -> Table<'_> {
        Table(self)
    }
}

const HEADER: [&str; 6] = ["task", "came", "waited", "ran", "devices", "ended"];

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Report { tasks, totals, .. }) = self;
        let mut lines = vec![HEADER.map(str::to_owned)];
        lines.extend(tasks.iter().map(cells));
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; HEADER.len()] = std::array::from_fn(width);
        for line in &lines {
            let mut text = String::new();
            for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                // Words to the left, numbers to the right.
                text += &match HEADER[column] {
                    "task" | "ended" => format!("{cell:<width$}  "),
                    _ => format!("{cell:>width$}  "),
                };
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        writeln!(
            f,
            "\n{} tasks ended, {} failed, {} were refused; {:.1} s in all, devices in use {:.1}% of it.",
            totals.finished,
            totals.failed,
            totals.refused,
            totals.makespan,
            100.0 * totals.utilization
        )?;
        if totals.unfinished > 0 {
            writeln!(f, "{} tasks run or wait still.", totals.unfinished)?;
        }
        let planning = totals.planning_seconds.map_or_else(String::new, |seconds| format!(", in {seconds:.3} s"));
        writeln!(
            f,
            "They waited {:.1} s on average, {:.1} s at most. Planned {} times{planning}; profiles took {:.2}% of the time.",
            totals.mean_wait,
            totals.longest_wait,
            totals.replans,
            100.0 * totals.profile_share()
        )
    }
}

fn cells(task: &TaskReport) -> [String; HEADER.len()] {
    let seconds = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.1}"));
    let ended = match (&task.failure, task.started, task.ended) {
        (None, _, Some(_)) => "finished".to_owned(),
        (None, Some(_), None) => "runs".to_owned(),
        (None, None, None) => "waits".to_owned(),
        (Some(why), Some(_), _) => format!("failed: {why}"),
        (Some(why), None, _) => format!("refused: {why}"),
    };
    let arrived = seconds(Some(task.arrived));
    // A line is a task's, whatever it is called and says.
    let line = |text: &str| text.split(char::is_control).collect::<Vec<_>>().join(" ");
    let (name, ended) = (line(&task.name), line(&ended));
    [name, arrived, seconds(task.wait()), seconds(task.run()), ranges(&task.devices), ended]
}

/// Ascending numbers, such as `0-3 8`.
fn ranges(devices: &[u32]) -> String {
    let runs = devices.chunk_by(|a, b| a + 1 == *b).filter_map(|run| Some((run.first()?, run.last()?)));
    let text = runs.map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") });
    let text = text.collect::<Vec<_>>().join(" ");
    if text.is_empty() { "-".to_owned() } else { text }
}
