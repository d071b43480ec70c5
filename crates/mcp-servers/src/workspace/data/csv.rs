//! Conversion of CSV and TSV files to tables. The first record contains the column names.

use csv::{Reader, ReaderBuilder, StringRecord};
use serde_json::{Number, Value};

use super::{Column, ColumnType, MAX_COLUMNS, Table, TableError, check_table_size, unique_names};

/// Detects the separator: a semicolon if the first line contains one and no comma, otherwise a
/// comma. Spreadsheets use semicolons where numbers contain commas.
pub(super) fn detect_delimiter(text: &str) -> u8 {
    let first = text.lines().next().unwrap_or_default();
    if !first.contains(',') && first.contains(';') {
        b';'
    } else {
        b','
    }
}

/// Parses the column names in the first record of a CSV text. The text may be cut off at any
/// position.
pub(super) fn parse_header(text: &str, delimiter: u8) -> Vec<String> {
    let mut reader = reader(text, delimiter);
    let fields = reader.headers().into_iter().flatten().take(MAX_COLUMNS);
    unique_names(fields.map(str::to_owned))
}

pub(super) fn parse_csv(text: &str, delimiter: u8) -> Result<Table, TableError> {
    let mut reader = reader(text, delimiter);
    let names = reader.headers().map_err(|error| to_parse_error(&error))?;
    check_table_size(names.len(), 0, 1)?;
    let names = unique_names(names.iter().map(str::to_owned));
    let mut records: Vec<StringRecord> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| to_parse_error(&error))?;
        let line = line_number(record.position());
        if record.len() > names.len() {
            return Err(TableError {
                line,
                problem: format!(
                    "found {} values, but the first line has {} column names",
                    record.len(),
                    names.len()
                ),
            });
        }
        check_table_size(names.len(), records.len() + 1, line)?;
        records.push(record);
    }
    let columns = names.into_iter().enumerate().map(|(index, name)| {
        let values = records.iter().filter_map(|record| record.get(index));
        let kind = match values
            .filter_map(detect_type)
            .reduce(ColumnType::common_type)
        {
            Some(ColumnType::Mixed) | None => ColumnType::Text,
            Some(kind) => kind,
        };
        Column { name, kind }
    });
    let columns: Vec<Column> = columns.collect();
    let rows = records.iter().map(|record| {
        // A record with fewer values than columns is filled with empty values, because some
        // programs omit empty values at the end of a line.
        let fields = record.iter().chain(std::iter::repeat(""));
        let values = fields.zip(&columns);
        values
            .map(|(text, column)| parse_value(text, column.kind))
            .collect()
    });
    Ok(Table {
        rows: rows.collect(),
        columns,
    })
}

fn reader(text: &str, delimiter: u8) -> Reader<&[u8]> {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(delimiter).flexible(true);
    builder.from_reader(text.as_bytes())
}

fn to_parse_error(error: &csv::Error) -> TableError {
    TableError {
        line: line_number(error.position()),
        problem: error.to_string(),
    }
}

fn line_number(position: Option<&csv::Position>) -> usize {
    let line = position.map_or(1, csv::Position::line);
    usize::try_from(line).unwrap_or(usize::MAX)
}

/// Returns the type of a CSV value, or `None` for an empty value. Only numbers in JSON syntax are
/// numbers: text with leading zeros or a plus sign is a code or a telephone number. Integers
/// outside of the range of `i64` are texts.
fn detect_type(text: &str) -> Option<ColumnType> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    Some(match serde_json::from_str::<Number>(text) {
        Ok(number) if number.is_i64() => ColumnType::Integer,
        Ok(_) if text.contains(['.', 'e', 'E']) => ColumnType::Real,
        _ => ColumnType::Text,
    })
}

fn parse_value(text: &str, kind: ColumnType) -> Value {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Value::Null;
    }
    let number = match kind {
        ColumnType::Integer => trimmed.parse::<i64>().ok().map(Number::from),
        ColumnType::Real => trimmed.parse().ok().and_then(Number::from_f64),
        ColumnType::Text | ColumnType::Mixed => None,
    };
    number.map_or_else(|| text.into(), Value::Number)
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
