use super::error::DatabaseError;

/// A parameter of an SQL statement.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Int(i64),
    Text(String),
    Null,
}

impl Value {
    /// Returns whether the value is text with the character NUL, which no row can contain.
    pub(crate) fn contains_nul(&self) -> bool {
        matches!(self, Self::Text(text) if has_nul(text))
    }

    /// Returns an error for text with the character NUL.
    ///
    /// PostgreSQL does not support NUL in text. SQLite does, but both databases must behave the
    /// same.
    pub(crate) fn check_storable(&self) -> Result<(), DatabaseError> {
        if self.contains_nul() {
            let cause = "text that contains the character NUL cannot be stored";
            return Err(DatabaseError::other_failure(cause));
        }
        Ok(())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        text.map_or(Self::Null, Self::from)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Returns whether a text contains the character NUL, so that it cannot be stored.
pub(crate) fn has_nul(text: &str) -> bool {
    text.contains('\0')
}

/// Converts the parameters of an SQL statement to a vector of `Value`.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::database::Value::from($value)),*] };
}
pub(crate) use values;

/// A row of a query result.
#[derive(Debug)]
pub(crate) struct Row(pub(crate) Vec<Cell>);

/// A value in a row of a query result.
#[derive(Debug)]
pub(crate) enum Cell {
    Int(i64),
    Text(String),
    Null,
    /// The value is not an integer, text or null. This crate stores no such values.
    Other,
}

impl Row {
    pub(crate) fn read_int(&self, column: usize) -> Result<i64, DatabaseError> {
        match self.0.get(column) {
            Some(Cell::Int(number)) => Ok(*number),
            other => Err(column_type_error(column, "an integer", other)),
        }
    }

    /// Returns an integer column as an unsigned count. A negative number becomes 0.
    pub(crate) fn read_count(&self, column: usize) -> Result<u64, DatabaseError> {
        Ok(u64::try_from(self.read_int(column)?).unwrap_or(0))
    }

    pub(crate) fn read_text(&self, column: usize) -> Result<String, DatabaseError> {
        match self.0.get(column) {
            Some(Cell::Text(text)) => Ok(text.clone()),
            other => Err(column_type_error(column, "text", other)),
        }
    }

    pub(crate) fn optional_text(&self, column: usize) -> Result<Option<String>, DatabaseError> {
        match self.0.get(column) {
            Some(Cell::Null) => Ok(None),
            _ => self.read_text(column).map(Some),
        }
    }
}

fn column_type_error(column: usize, expected: &str, found: Option<&Cell>) -> DatabaseError {
    let found = match found {
        Some(Cell::Int(_)) => "an integer",
        Some(Cell::Text(_)) => "text",
        Some(Cell::Null) => "null",
        Some(Cell::Other) => "another type",
        None => "no such column",
    };
    DatabaseError::unreadable_data(format!(
        "column {column}: expected {expected}, found {found}"
    ))
}
