//! Data files as tables.

mod csv;
mod database;
mod json;
pub(super) mod list;
pub(super) mod query;
pub(super) mod read;

use std::fmt;

use serde_json::Value;

use super::{
    path::RelativePath,
    root::Root,
    text::{cut, decode},
};
use crate::tool::ToolError;

/// How many columns a table has at most, which is also what SQLite takes.
const MOST_COLUMNS: usize = 2000;
/// How many values a table has at most, nulls included. A small file can stand for a huge table.
const MOST_VALUES: usize = 2_000_000;

/// What a data file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Tsv,
    Json,
    JsonLines,
}

/// What a column holds, as far as all of its values agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnType {
    Integer,
    Real,
    Text,
    /// Several, or values with values in them.
    Mixed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: String,
    kind: ColumnType,
}

/// Records, every one with a value for each column.
#[derive(Debug, PartialEq)]
struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
}

/// Why the contents of a data file cannot be read, and where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
struct DataFault {
    line: usize,
    problem: String,
}

/// Refuses a table that is too large, on the line on which it becomes so.
fn must_fit(columns: usize, rows: usize, line: usize) -> Result<(), DataFault> {
    let problem = if columns > MOST_COLUMNS {
        format!("there are more than {MOST_COLUMNS} columns")
    } else if columns.saturating_mul(rows) > MOST_VALUES {
        format!("there are more than {MOST_VALUES} values")
    } else {
        return Ok(());
    };
    Err(DataFault { line, problem })
}

impl Format {
    /// By the end of its name.
    fn of(path: &RelativePath) -> Option<Self> {
        let (stem, extension) = path.name().rsplit_once('.')?;
        if stem.is_empty() {
            return None;
        }
        match extension.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            "json" => Some(Self::Json),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            _ => None,
        }
    }

    fn parse(self, text: &str) -> Result<Table, DataFault> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self {
            Self::Csv => csv::parse(text, csv::delimiter(text)),
            Self::Tsv => csv::parse(text, '\t'),
            Self::Json => json::parse(text),
            Self::JsonLines => json::parse_lines(text),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Csv => "CSV",
            Self::Tsv => "TSV",
            Self::Json => "JSON",
            Self::JsonLines => "JSON Lines",
        })
    }
}

impl ColumnType {
    fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Real => "number",
            Self::Text => "text",
            Self::Mixed => "mixed",
        }
    }
}

/// Reads a data file that holds at most this many bytes.
fn load(root: &Root, path: &RelativePath, limit: u64) -> Result<(Table, u64), ToolError> {
    let Some(format) = Format::of(path) else {
        return Err(ToolError::Refused(format!(
            "{path} is no data file by its name: it should end in .csv, .tsv, .json, .jsonl or \
             .ndjson. file_load loads any text file."
        )));
    };
    let file = root.read_at_most(path, limit)?;
    let size = u64::try_from(file.bytes.len()).unwrap_or(u64::MAX);
    let text = decode(path, file.bytes)?;
    let table = format
        .parse(&text)
        .map_err(|fault| ToolError::Refused(format!("{path} is not good {format}: {fault}.")))?;
    Ok((table, size))
}

/// How many bytes of one value are shown where all of a record may have about `bytes`.
fn shown_of_each(bytes: usize, columns: usize) -> usize {
    (bytes / columns.max(1)).clamp(64, 8 * 1024)
}

/// A value as it is shown: a long one as the start of its text.
fn shortened(value: &Value, bytes: usize) -> Value {
    match value {
        Value::String(text) => Value::String(shortened_text(text, bytes)),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            if text.len() > bytes {
                Value::String(shortened_text(&text, bytes))
            } else {
                value.clone()
            }
        }
        other => other.clone(),
    }
}

fn shortened_text(text: &str, bytes: usize) -> String {
    if text.len() > bytes {
        format!("{}… ({} bytes in all)", cut(text, bytes), text.len())
    } else {
        text.to_owned()
    }
}

/// Names for columns, every one with a name and no two with the same. SQL does not tell `A` from
/// `a`, so neither does this.
fn distinct(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut taken = std::collections::HashSet::new();
    let names = names.into_iter().enumerate().map(|(index, name)| {
        let name = match name.trim() {
            "" => format!("column_{}", index + 1),
            name => name.to_owned(),
        };
        let mut distinct = name.clone();
        let mut number = 1;
        while !taken.insert(distinct.to_lowercase()) {
            number += 1;
            distinct = format!("{name}_{number}");
        }
        distinct
    });
    names.collect()
}
