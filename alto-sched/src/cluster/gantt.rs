//! A plan as a drawing in text.

use std::fmt;

use super::plan::Plan;
use super::snapshot::Snapshot;

/// Columns from now to the last end.
const WIDTH: usize = 100;

/// What tasks are drawn as, in turn.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Tasks that the legend names.
const NAMED: usize = LETTERS.len();

/// A [`Plan`] as a Gantt chart in plain text; see [`Plan::gantt`].
#[derive(Debug)]
pub struct Gantt<'a> {
    plan: &'a Plan,
    snapshot: &'a Snapshot,
}

impl Plan {
    /// This plan for this snapshot as a Gantt chart: a row for each device, 100 columns from now to the last end. Each task
    /// is a letter, `#` is a task that runs already, `.` is nobody. The first tasks are named below.
    ///
    /// ```
    /// use alto_sched::{Cluster, Makespan, Scheduler, Snapshot, Task};
    ///
    /// let waiting = vec![Task::rigid("wide", 2, 10.0), Task::rigid("long", 1, 40.0)];
    /// let snapshot = Snapshot { cluster: Cluster::single("H100", 2), waiting, ..Snapshot::default() };
    /// let plan = Makespan::default().plan(&snapshot)?;
    /// print!("{}", plan.gantt(&snapshot));
    /// # assert!(plan.gantt(&snapshot).to_string().contains("H100    0 "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn gantt<'a>(&'a self, snapshot: &'a Snapshot) -> Gantt<'a> {
        Gantt { plan: self, snapshot }
    }
}

impl fmt::Display for Gantt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, snapshot } = self;
        let columns = |from: f64, to: f64| {
            let at = |time: f64| (((time - snapshot.now) / plan.makespan * WIDTH as f64).round() as usize).min(WIDTH);
            // However short, a task is seen.
            at(from).min(WIDTH - 1)..at(to).max(at(from) + 1).min(WIDTH)
        };
        let running = snapshot.running.iter().map(|task| (&task.devices, columns(snapshot.now, task.until), '#'));
        let placed = plan.placements.iter().enumerate().filter_map(|(task, placement)| {
            let placement = placement.as_ref()?;
            Some((&placement.devices, columns(placement.start, placement.end), letter(task)))
        });
        let bars: Vec<_> = running.chain(placed).collect();
        let kinds = snapshot.cluster.nodes.iter().map(|node| node.kind.chars().count()).max().unwrap_or(0);
        for node in &snapshot.cluster.nodes {
            for device in &node.devices {
                let mut row = ['.'; WIDTH];
                for (_, columns, letter) in bars.iter().filter(|bar| bar.0.contains(device)) {
                    row[columns.clone()].fill(*letter);
                }
                writeln!(f, "{:>kinds$} {device:>4} {}", node.kind, row.iter().collect::<String>())?;
            }
        }
        for (task, waiting) in snapshot.waiting.iter().enumerate().take(NAMED) {
            if let Some(placement) = plan.placements.get(task).and_then(Option::as_ref) {
                let (from, to) = (placement.start, placement.end);
                writeln!(f, "{}: {} from {from:.1} to {to:.1} s", letter(task), waiting.name)?;
            }
        }
        Ok(())
    }
}

fn letter(task: usize) -> char {
    char::from(LETTERS[task % LETTERS.len()])
}
