//! Rows of text in a JSONL file, one per line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

use super::error::{DataError, Place};

/// What a row looks like, for errors.
const EXPECTED: &str = r#"{"prompt": "...", "completion": "..."}"#;

/// One row, as text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) prompt: String,
    pub(super) completion: String,
}

/// Hands over every row of the file, with its place, in order.
pub(super) fn read_rows(
    path: &Path,
    mut row: impl FnMut(Place, Row) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let io = |source| DataError::Io { path: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(io)?);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(io)? == 0 {
            break;
        }
        let place = Place { path: Some(path.to_owned()), line: number };
        let mut bytes = line.as_slice();
        if number == 1 {
            bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        }
        let parsed = parse(&place, bytes)?;
        row(place, parsed)?;
    }
    Ok(())
}

fn parse(place: &Place, line: &[u8]) -> Result<Row, DataError> {
    let (place, expected) = (place.clone(), EXPECTED);
    let text = match std::str::from_utf8(line) {
        Ok(text) if text.trim().is_empty() => return Err(DataError::EmptyLine { place, expected }),
        Ok(text) => text.trim_end(),
        Err(error) => return Err(DataError::NotUtf8 { place, byte: error.valid_up_to(), expected }),
    };
    // A list of two texts would pass for a row otherwise.
    if !text.trim_start().starts_with('{') {
        return Err(DataError::BadRow { place, column: 1, problem: "not a JSON object".to_owned(), expected });
    }
    let row: Row = serde_json::from_str(text).map_err(|error| {
        // It says "at line 1 column 9" at its end, of the line's own first line.
        let mut problem = error.to_string();
        problem.truncate(problem.rfind(" at line ").unwrap_or(problem.len()));
        DataError::BadRow { place: place.clone(), column: error.column(), problem, expected }
    })?;
    if row.completion.is_empty() { Err(DataError::EmptyCompletion { place }) } else { Ok(row) }
}
