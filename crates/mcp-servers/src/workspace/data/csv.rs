//! CSV and similar formats (RFC 4180). The first record contains the names of the columns.
//!
//! Quoted values are text, also with digits only. The `csv` crate does not report quotes.

use serde_json::{Number, Value};

use super::{Column, ColumnType, DataFault, MAX_COLUMNS, Table, check_size, unique_names};

/// An unparsed value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    text: String,
    /// The value has quotes, so it is text.
    quoted: bool,
}

/// Detects the separator: a semicolon if the first line contains one and no comma, otherwise a
/// comma. Spreadsheets use semicolons where numbers contain commas.
pub(super) fn delimiter(text: &str) -> char {
    let first = text.lines().next().unwrap_or_default();
    if !first.contains(',') && first.contains(';') {
        ';'
    } else {
        ','
    }
}

/// Returns the column names of a text, which may be cut at any position.
pub(super) fn header(text: &str, delimiter: char) -> Vec<String> {
    let record = Records::new(text, delimiter).next();
    let fields = record.and_then(Result::ok).unwrap_or_default().fields;
    let fields = fields.into_iter().take(MAX_COLUMNS);
    unique_names(fields.map(|field| field.text))
}

pub(super) fn parse(text: &str, delimiter: char) -> Result<Table, DataFault> {
    let mut records = Records::new(text, delimiter);
    let Some(header) = records.next().transpose()? else {
        return Ok(Table {
            columns: Vec::new(),
            rows: Vec::new(),
        });
    };
    check_size(header.fields.len(), 0, header.line)?;
    let names = unique_names(header.fields.into_iter().map(|field| field.text));
    let mut rows = Vec::new();
    for record in records {
        let Record { line, mut fields } = record?;
        if fields.len() > names.len() {
            return Err(DataFault {
                line,
                problem: format!(
                    "there are {} values, but the first line names {} columns",
                    fields.len(),
                    names.len()
                ),
            });
        }
        check_size(names.len(), rows.len() + 1, line)?;
        // Some programs omit empty values at the end.
        fields.resize_with(names.len(), || Field {
            text: String::new(),
            quoted: false,
        });
        rows.push(fields);
    }
    Ok(typed_table(names, rows))
}

/// Converts the values of columns that contain only numbers, and converts empty values to null.
fn typed_table(names: Vec<String>, rows: Vec<Vec<Field>>) -> Table {
    let mut kinds: Vec<Option<ColumnType>> = vec![None; names.len()];
    for (field, kind) in rows.iter().flat_map(|row| row.iter().zip(0..)) {
        let Some(known) = kinds.get_mut(kind) else {
            continue;
        };
        *known = match (*known, kind_of(field)) {
            (known, None) => known,
            (None, found) => found,
            (Some(known), Some(found)) if known == found => Some(known),
            (Some(ColumnType::Text), _) | (_, Some(ColumnType::Text)) => Some(ColumnType::Text),
            _ => Some(ColumnType::Real),
        };
    }
    let kinds: Vec<ColumnType> = kinds
        .into_iter()
        .map(|kind| kind.unwrap_or(ColumnType::Text))
        .collect();
    let rows = rows.into_iter().map(|row| {
        let values = row.into_iter().zip(&kinds);
        values.map(|(field, kind)| value(field, *kind)).collect()
    });
    let rows = rows.collect();
    let columns = names.into_iter().zip(kinds);
    let columns = columns.map(|(name, kind)| Column { name, kind }).collect();
    Table { columns, rows }
}

fn kind_of(field: &Field) -> Option<ColumnType> {
    if field.quoted {
        return Some(ColumnType::Text);
    }
    let text = field.text.trim();
    if text.is_empty() {
        None
    } else if !is_json_number(text) {
        Some(ColumnType::Text)
    } else if text.parse::<i64>().is_ok() {
        Some(ColumnType::Integer)
    } else if text.contains(['.', 'e', 'E']) && text.parse::<f64>().is_ok_and(f64::is_finite) {
        Some(ColumnType::Real)
    } else {
        // An integer outside of the range of i64.
        Some(ColumnType::Text)
    }
}

/// Returns whether this is a JSON number. Texts that begin with further zeros or a plus sign are
/// codes or telephone numbers.
fn is_json_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|it| digits(it.strip_prefix(['+', '-']).unwrap_or(it)))
}

fn value(field: Field, kind: ColumnType) -> Value {
    if field.text.trim().is_empty() && !field.quoted {
        return Value::Null;
    }
    let number = match kind {
        ColumnType::Integer => field.text.trim().parse::<i64>().ok().map(Number::from),
        ColumnType::Real => field.text.trim().parse().ok().and_then(Number::from_f64),
        ColumnType::Text | ColumnType::Mixed => None,
    };
    number.map_or_else(|| Value::String(field.text), Value::Number)
}

#[derive(Debug, Default)]
struct Record {
    line: usize,
    fields: Vec<Field>,
}

/// Iterator over the records of a text. Skips empty lines.
struct Records<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    delimiter: char,
    line: usize,
}

impl<'a> Records<'a> {
    fn new(text: &'a str, delimiter: char) -> Self {
        Self {
            rest: text.chars().peekable(),
            delimiter,
            line: 1,
        }
    }

    fn take(&mut self) -> Option<char> {
        let character = self.rest.next()?;
        if character == '\n' {
            self.line += 1;
        }
        Some(character)
    }

    /// Consumes a line break, if there is one.
    fn take_break(&mut self) -> bool {
        match self.rest.peek() {
            Some('\n') => {
                self.take();
                true
            }
            Some('\r') => {
                self.take();
                if self.rest.peek() == Some(&'\n') {
                    self.take();
                } else {
                    self.line += 1;
                }
                true
            }
            _ => false,
        }
    }

    fn field(&mut self) -> Result<Field, DataFault> {
        let mut text = String::new();
        if self.rest.peek() != Some(&'"') {
            while let Some(&character) = self.rest.peek() {
                if character == self.delimiter || character == '\n' || character == '\r' {
                    break;
                }
                text.push(character);
                self.take();
            }
            return Ok(Field {
                text,
                quoted: false,
            });
        }
        let line = self.line;
        self.take();
        loop {
            match self.take() {
                Some('"') if self.rest.peek() == Some(&'"') => {
                    self.take();
                    text.push('"');
                }
                Some('"') => break,
                Some(character) => text.push(character),
                None => {
                    return Err(DataFault {
                        line,
                        problem: "a quoted value has no end".to_owned(),
                    });
                }
            }
        }
        match self.rest.peek() {
            Some(&next) if next != self.delimiter && next != '\n' && next != '\r' => {
                Err(DataFault {
                    line: self.line,
                    problem: "there is text after a quoted value; write a quote in a value \
                              twice"
                        .to_owned(),
                })
            }
            _ => Ok(Field { text, quoted: true }),
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, DataFault>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.take_break() {}
        self.rest.peek()?;
        let line = self.line;
        let mut fields = Vec::new();
        loop {
            match self.field() {
                Ok(field) => fields.push(field),
                Err(fault) => return Some(Err(fault)),
            }
            if self.rest.peek() == Some(&self.delimiter) {
                self.take();
                continue;
            }
            self.take_break();
            return Some(Ok(Record { line, fields }));
        }
    }
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
