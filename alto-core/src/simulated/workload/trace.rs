//! Traces of clusters, from CSV.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use alto_sched::{Choice, Task};
use csv::StringRecord;

use super::error::TraceError;
use super::task::{TaskJob, TuningTask};

/// A task of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceTask {
    /// What it is called; its line, if the trace has no names.
    pub name: String,
    /// When it came, in seconds.
    pub arrival: f64,
    /// Devices that it takes.
    pub devices: usize,
    /// Their kind; `None` is any.
    pub kind: Option<String>,
    /// What it does there.
    pub work: Work,
}

/// How long a task of a trace takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// So many seconds.
    Duration(f64),
    /// What its jobs take.
    Tuning(TuningTask),
}

impl TraceTask {
    /// The task as a scheduler sees it, if it is to take so long.
    pub fn to_task(&self, duration: f64) -> Task {
        let options = vec![Choice { kind: self.kind.clone(), width: self.devices as u32, duration, memory: 0 }];
        Task { name: self.name.clone(), release: self.arrival, weight: 1.0, options }
    }
}

/// The columns that a trace may have.
const COLUMNS: [&str; 8] = ["name", "arrival", "devices", "kind", "duration", "model", "row_tokens", "jobs"];

impl TraceTask {
    /// Reads a trace from a file.
    ///
    /// # Errors
    /// As [`read_trace`], with the file's name.
    pub fn read_file(path: &Path) -> Result<Vec<TraceTask>, TraceError> {
        let file = File::open(path).map_err(|source| TraceError::Open { path: path.into(), source })?;
        read_trace(file).map_err(|source| TraceError::InFile { path: path.into(), source: Box::new(source) })
    }
}

/// Reads a trace in CSV, in the order of its lines. The header names the columns, in any order:
///
/// | column | what it holds |
/// |---|---|
/// | `arrival` | when the task came, in seconds |
/// | `devices` | how many it takes |
/// | `duration` | how long, in seconds; empty where the task has jobs |
/// | `jobs` | `rank:learning_rate:batch:samples`, several separated by `;` |
/// | `model`, `row_tokens` | with jobs: a shipped model's name, tokens of a row |
/// | `name`, `kind` | what the task is called, what kind of device it needs |
///
/// ```
/// use alto_core::simulated::workload::{Work, read_trace};
///
/// let text = "arrival,devices,duration\n0,4,3600\n12.5,1,900\n";
/// let tasks = read_trace(text.as_bytes())?;
/// assert_eq!((tasks[1].arrival, &tasks[1].work), (12.5, &Work::Duration(900.0)));
/// # Ok::<(), alto_core::simulated::workload::TraceError>(())
/// ```
///
/// # Errors
/// Names the line, the header's being 1, and the column that is missing, unknown or can't be read.
pub fn read_trace(mut text: impl Read) -> Result<Vec<TraceTask>, TraceError> {
    let mut bytes = Vec::new();
    text.read_to_end(&mut bytes).map_err(csv::Error::from)?;
    let mut lines = Lines { left: &bytes, at: 0, line: 1 };
    let mut reader = csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(&bytes[..]);
    let header = reader.headers()?.clone();
    check_header(&header)?;
    let mut tasks = Vec::new();
    for record in reader.records() {
        let record = record?;
        let line = lines.line_of(record.position().map_or(0, |position| position.byte() as usize));
        if record.len() != header.len() {
            return Err(TraceError::Fields { line, found: record.len(), expected: header.len() });
        }
        tasks.push(Line { line, header: &header, record: &record }.task()?);
    }
    Ok(tasks)
}

fn check_header(header: &StringRecord) -> Result<(), TraceError> {
    let has = |column: &str| header.iter().any(|name| name == column);
    for column in ["arrival", "devices"] {
        if !has(column) {
            return Err(TraceError::MissingColumn { column });
        }
    }
    if !has("duration") && !has("jobs") {
        return Err(TraceError::MissingColumn { column: "duration" });
    }
    for column in ["model", "row_tokens"] {
        if has("jobs") && !has(column) {
            return Err(TraceError::MissingColumn { column });
        }
    }
    for (index, column) in header.iter().enumerate() {
        if !COLUMNS.contains(&column) {
            return Err(TraceError::UnknownColumn { column: column.to_owned(), known: COLUMNS.join(", ") });
        }
        if header.iter().take(index).any(|earlier| earlier == column) {
            return Err(TraceError::DuplicateColumn { column: column.to_owned() });
        }
    }
    Ok(())
}

/// Counts lines as an editor does. The reader's own count has a record begin at the blank lines before it, and at the
/// line feed that belongs to the line before.
struct Lines<'a> {
    left: &'a [u8],
    at: usize,
    /// The line of the first byte that is left.
    line: u64,
}

impl Lines<'_> {
    /// The line of the first byte at or after this place that doesn't end a line; places come in ascending order.
    fn line_of(&mut self, place: usize) -> u64 {
        while let [first, rest @ ..] = self.left
            && (self.at < place || matches!(first, b'\r' | b'\n'))
        {
            let ends = *first == b'\n' || *first == b'\r' && rest.first() != Some(&b'\n');
            self.line += u64::from(ends);
            (self.left, self.at) = (rest, self.at + 1);
        }
        self.line
    }
}

struct Line<'a> {
    line: u64,
    header: &'a StringRecord,
    record: &'a StringRecord,
}

impl Line<'_> {
    fn task(&self) -> Result<TraceTask, TraceError> {
        let name = self.field("name").map_or_else(|| format!("line {}", self.line), str::to_owned);
        let arrival = self.number("arrival", "seconds, at least 0", |&x: &f64| x.is_finite() && x >= 0.0)?;
        let devices = self.number("devices", "a whole number of at least 1", |&x: &u32| x >= 1)? as usize;
        let work = match (self.field("duration"), self.field("jobs")) {
            (Some(_), None) => {
                Work::Duration(self.number("duration", "seconds, over 0", |&x: &f64| x.is_finite() && x > 0.0)?)
            }
            (None, Some(jobs)) => Work::Tuning(TuningTask {
                name: name.clone(),
                release: arrival,
                model: self.field("model").ok_or_else(|| self.wrong("model", "a model's name"))?.to_owned(),
                devices,
                row_tokens: self.number("row_tokens", "a whole number of at least 1", |&x: &u64| x >= 1)?,
                jobs: jobs.split(';').map(|job| self.job(job)).collect::<Result<_, _>>()?,
            }),
            (None, None) => return Err(self.wrong("duration", "seconds, or jobs in the column jobs")),
            (Some(_), Some(_)) => return Err(self.wrong("duration", "nothing, since the task has jobs")),
        };
        Ok(TraceTask { name, arrival, devices, kind: self.field("kind").map(str::to_owned), work })
    }

    /// What stands in this column, unless it is empty or there is none.
    fn field(&self, column: &str) -> Option<&str> {
        let index = self.header.iter().position(|name| name == column)?;
        self.record.get(index).filter(|text| !text.is_empty())
    }

    fn number<T: FromStr>(
        &self,
        column: &'static str,
        expected: &'static str,
        is_right: impl FnOnce(&T) -> bool,
    ) -> Result<T, TraceError> {
        let number = self.field(column).and_then(|text| text.parse().ok());
        number.filter(is_right).ok_or_else(|| self.wrong(column, expected))
    }

    fn job(&self, text: &str) -> Result<TaskJob, TraceError> {
        let read = || {
            let parts: [&str; 4] = text.trim().split(':').collect::<Vec<_>>().try_into().ok()?;
            let [rank, learning_rate, batch, samples] = parts;
            let learning_rate: f64 = learning_rate.parse().ok()?;
            let job = TaskJob {
                rank: rank.parse().ok()?,
                learning_rate,
                batch: batch.parse().ok()?,
                samples: samples.parse().ok()?,
            };
            let is_right = learning_rate.is_finite() && learning_rate > 0.0;
            (is_right && job.rank > 0 && job.batch > 0 && job.samples > 0).then_some(job)
        };
        let expected = "rank:learning_rate:batch:samples, all over 0, several separated by semicolons";
        read().ok_or_else(|| self.wrong("jobs", expected))
    }

    fn wrong(&self, column: &'static str, expected: &'static str) -> TraceError {
        let found = self.field(column).unwrap_or("").to_owned();
        TraceError::Field { line: self.line, column, found, expected }
    }
}
