//! Tables from data files (CSV, TSV, JSON and JSON Lines).

mod csv;
mod database;
mod json;
pub(super) mod list;
pub(super) mod query;
pub(super) mod read_table;

use std::fmt;

use serde_json::Value;

use super::{
    root::{
        Root,
        folder::Kind,
        folder_walk::Walk,
        path::{Access, RelativePath},
    },
    text::{decode_text_file, truncate_bytes},
};
use crate::{text::join_first_items, tool::ToolError};

/// Maximum number of columns of a table. SQLite has the same limit.
const MAX_COLUMNS: usize = 2000;
/// Maximum number of values in a table, including nulls. A small JSON file can describe a huge
/// table, because each new member name adds a column to all records.
const MAX_VALUES: usize = 2_000_000;

/// The format of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DataFormat {
    Csv,
    Tsv,
    Json,
    JsonLines,
}

/// The common type of all values in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnType {
    Integer,
    Real,
    Text,
    /// The column contains values of several types, or booleans, arrays or objects.
    Mixed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: String,
    kind: ColumnType,
}

/// A table. Each row is a record with one value for each column.
#[derive(Debug, PartialEq)]
struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
}

/// A syntax error in a data file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
struct TableError {
    line: usize,
    problem: String,
}

/// Returns an error for the line `line` if a table has more than [`MAX_COLUMNS`] columns or
/// [`MAX_VALUES`] values.
fn check_table_size(columns: usize, rows: usize, line: usize) -> Result<(), TableError> {
    let problem = if columns > MAX_COLUMNS {
        format!("more than {MAX_COLUMNS} columns")
    } else if columns.saturating_mul(rows) > MAX_VALUES {
        format!("more than {MAX_VALUES} values")
    } else {
        return Ok(());
    };
    Err(TableError { line, problem })
}

impl DataFormat {
    /// Returns the data format that the extension of a file name stands for, or `None` for other
    /// extensions.
    fn from_path(path: &RelativePath) -> Option<Self> {
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

    fn parse_table(self, text: &str) -> Result<Table, TableError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self {
            Self::Csv => csv::parse_csv(text, csv::detect_delimiter(text)),
            Self::Tsv => csv::parse_csv(text, b'\t'),
            Self::Json => json::parse_json(text),
            Self::JsonLines => json::parse_json_lines(text),
        }
    }
}

impl fmt::Display for DataFormat {
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
    /// Returns the type of a column that contains values of the types `self` and `other`.
    fn common_type(self, other: Self) -> Self {
        match (self, other) {
            _ if self == other => self,
            (Self::Integer | Self::Real, Self::Integer | Self::Real) => Self::Real,
            _ => Self::Mixed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Real => "number",
            Self::Text => "text",
            Self::Mixed => "mixed",
        }
    }
}

/// Finds the data file of a collection. `name` is the path of the file, or the end of the path
/// without the extension: `customers` or `shop/customers` for `data/shop/customers.json`. Returns
/// an error for the model if no file or several files match.
fn find_collection(root: &Root, name: &str) -> Result<RelativePath, ToolError> {
    let path = root.parse_path(name, Access::Read)?;
    if DataFormat::from_path(&path).is_some() {
        return Ok(path);
    }
    let end = format!("/{path}");
    let mut found = Vec::new();
    Walk::VISIBLE.visit_entries(root, &RelativePath::default(), |path, meta| {
        let file = format!("/{path}");
        let stem = file.rsplit_once('.').map_or("", |(stem, _)| stem);
        let is_data = meta.kind == Kind::File && DataFormat::from_path(&path).is_some();
        if is_data && stem.ends_with(&end) {
            found.push(path.to_string());
        }
        true
    })?;
    match found.as_slice() {
        [file] => Ok(root.parse_path(file, Access::Read)?),
        [] => {
            let way_out = "data_list with recursive lists the data files.";
            Err(format!("No data file has the name {name}. {way_out}").into())
        }
        files => {
            let files = join_first_items(files, 10);
            Err(format!("{name} is ambiguous. Set collection to one of the paths {files}.").into())
        }
    }
}

/// Loads a data file. Returns the table and the file size in bytes. Returns an error for the model
/// if the file is larger than `limit` bytes or is not valid.
fn load_table(root: &Root, path: &RelativePath, limit: u64) -> Result<(Table, u64), ToolError> {
    let Some(format) = DataFormat::from_path(path) else {
        return Err(format!(
            "{path} does not have the extension of a data file (.csv, .tsv, .json, .jsonl or \
             .ndjson). file_load loads any text file."
        )
        .into());
    };
    let file = root.read_file_with_limit(path, limit)?;
    let size = u64::try_from(file.bytes.len()).unwrap_or(u64::MAX);
    let text = decode_text_file(path, file.bytes)?;
    let table = format
        .parse_table(&text)
        .map_err(|fault| ToolError::Refused(format!("{path} is not valid {format}: {fault}.")))?;
    Ok((table, size))
}

/// Returns the maximum size of one displayed value in bytes: the maximum size of the whole result
/// (`bytes`) divided by the number of columns, but at least 64 bytes and at most 8 KiB.
fn max_shown_bytes(bytes: usize, columns: usize) -> usize {
    (bytes / columns.max(1)).clamp(64, 8 * 1024)
}

/// Returns the value. For a string, array or object whose text is longer than `bytes` bytes,
/// returns a string with the start of the text and its full size in bytes.
fn shorten_value(value: &Value, bytes: usize) -> Value {
    match value {
        Value::String(text) => Value::String(shorten_text(text, bytes)),
        Value::Array(_) | Value::Object(_) if value.to_string().len() > bytes => {
            Value::String(shorten_text(&value.to_string(), bytes))
        }
        other => other.clone(),
    }
}

fn shorten_text(text: &str, bytes: usize) -> String {
    if text.len() > bytes {
        let start = truncate_bytes(text, bytes);
        format!("{start}… ({} bytes in total)", text.len())
    } else {
        text.to_owned()
    }
}

/// Makes names of columns or tables unique. Ignores case, as SQL does: `a`, `A` becomes `a`, `A_2`.
/// Blank names become `column_1`, `column_2` and so on, by position.
fn unique_names(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut used = std::collections::HashSet::new();
    let names = names.into_iter().enumerate().map(|(index, name)| {
        let name = match name.trim() {
            "" => format!("column_{}", index + 1),
            name => name.to_owned(),
        };
        let mut unique = name.clone();
        let mut number = 1;
        while !used.insert(unique.to_lowercase()) {
            number += 1;
            unique = format!("{name}_{number}");
        }
        unique
    });
    names.collect()
}
