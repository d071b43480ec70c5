//! The connection to a file of SQLite that writes.
//!
//! It is called on the thread of the writer itself. Through a driver that keeps a thread of its own, every statement
//! is handed over to that thread and its result back again, which costs many times what the statement does.

use std::{borrow::Cow, fmt, path::PathBuf, time::Duration};

use rusqlite::{CachedStatement, OpenFlags, types::ValueRef};
use sqlx::error::{DatabaseError, ErrorKind};
use tokio::time::{Instant, sleep};

use crate::{
    Durability,
    database::{Value, has_nul},
    place::{BUSY, PAUSE},
};

/// Statements that are kept prepared: there are fewer of them, with those of several numbers of rows.
const STATEMENTS: usize = 128;

/// How a file is opened for writing.
#[derive(Clone)]
pub(crate) struct Opening {
    path: PathBuf,
    pragmas: Vec<(&'static str, &'static str)>,
}

impl Opening {
    pub(crate) fn new(path: PathBuf, durability: Durability) -> Self {
        let synchronous = match durability {
            Durability::PowerLoss => "FULL",
            Durability::ProcessCrash => "NORMAL",
        };
        let pragmas = vec![
            // What retention removes makes the file smaller; can only be chosen before the first table, and before the
            // file has a log.
            ("auto_vacuum", "INCREMENTAL"),
            ("journal_mode", "WAL"),
            ("foreign_keys", "ON"),
            ("synchronous", synchronous),
            // The log keeps its size after a large transaction otherwise.
            ("journal_size_limit", "67108864"),
        ];
        Self { path, pragmas }
    }

    #[cfg(test)]
    pub(crate) fn pragma(mut self, name: &'static str, value: &'static str) -> Self {
        self.pragmas.push((name, value));
        self
    }

    /// Opens it, which blocks. SQLite does not wait, whatever its time for that, where two who open a new file both want it
    /// to have a log: one of them is told that it is locked, and then it is the other's turn to be done.
    pub(crate) async fn open(&self) -> Result<File, sqlx::Error> {
        let until = Instant::now() + BUSY;
        loop {
            match self.open_once() {
                Err(error) if is_busy(&error) && Instant::now() < until => sleep(PAUSE).await,
                opened => return opened.map_err(failed),
            }
        }
    }

    fn open_once(&self) -> Result<File, rusqlite::Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
        let connection = rusqlite::Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY)?;
        for (name, value) in &self.pragmas {
            connection.execute_batch(&format!("PRAGMA {name} = {value}"))?;
        }
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(File {
            connection,
            #[cfg(test)]
            statements: 0,
        })
    }
}

/// Whether somebody else has the file: `SQLITE_BUSY` and what it has of extended codes
/// (<https://sqlite.org/rescode.html#busy>).
fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    code.is_some_and(|code| code & 0xff == rusqlite::ffi::SQLITE_BUSY)
}

/// A file of SQLite. What is asked of it is done when the call returns: it blocks.
pub(crate) struct File {
    connection: rusqlite::Connection,
    /// How many were executed, for tests.
    #[cfg(test)]
    pub(crate) statements: u64,
}

impl File {
    /// How many rows it changed.
    pub(crate) fn execute(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<u64, sqlx::Error> {
        let mut statement = self.prepared(sql, values)?;
        let changed = statement.raw_execute().map_err(failed)?;
        Ok(changed.try_into().unwrap_or(u64::MAX))
    }

    pub(crate) fn rows(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Vec<Cell>>, sqlx::Error> {
        let mut statement = self.prepared(sql, values)?;
        let columns = statement.column_count();
        let mut found = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(failed)? {
            let cells = (0..columns).map(|column| row.get_ref(column).map(Cell::from));
            found.push(cells.collect::<Result<_, _>>().map_err(failed)?);
        }
        Ok(found)
    }

    /// Statements without parameters, whose results nobody looks at.
    pub(crate) fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        self.count();
        self.connection.execute_batch(sql).map_err(failed)
    }

    pub(crate) fn is_in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// Sets how long a statement waits for the lock of another writer.
    pub(crate) fn wait_for_lock(&self, time: Duration) -> Result<(), sqlx::Error> {
        self.connection.busy_timeout(time).map_err(failed)
    }

    fn prepared(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<CachedStatement<'_>, sqlx::Error> {
        self.count();
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        for place in 1..=statement.parameter_count() {
            // `$4` is a name to SQLite, whose places are given in the order in which names are met.
            let name = statement.parameter_name(place);
            let number = name.and_then(|name| name.strip_prefix('$')?.parse::<usize>().ok());
            let value = number.and_then(|number| values.get(number.checked_sub(1)?));
            let bound = match value {
                Some(Value::Int(number)) => statement.raw_bind_parameter(place, number),
                // PostgreSQL has no such text. SQLite would take it; then the two would differ.
                Some(Value::Text(text)) if has_nul(text) => {
                    let why = "text with the character NUL cannot be stored";
                    return Err(sqlx::Error::Encode(why.into()));
                }
                Some(Value::Text(text)) => statement.raw_bind_parameter(place, &**text),
                Some(Value::NoText) => statement.raw_bind_parameter(place, rusqlite::types::Null),
                None => {
                    let why = format!("parameter {place} of `{sql}` has no value");
                    return Err(sqlx::Error::Encode(why.into()));
                }
            };
            bound.map_err(failed)?;
        }
        Ok(statement)
    }

    #[cfg(test)]
    fn count(&mut self) {
        self.statements += 1;
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self, reason = "tests count here")]
    fn count(&mut self) {}
}

/// A value of a row.
#[derive(Debug)]
pub(crate) enum Cell {
    Int(i64),
    Text(Vec<u8>),
    NoText,
    /// What no column of ours holds.
    Other,
}

impl From<ValueRef<'_>> for Cell {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::NoText,
            ValueRef::Integer(number) => Self::Int(number),
            ValueRef::Text(text) => Self::Text(text.to_owned()),
            ValueRef::Real(_) | ValueRef::Blob(_) => Self::Other,
        }
    }
}

impl Cell {
    pub(crate) fn int(&self) -> Result<i64, sqlx::Error> {
        match self {
            Self::Int(number) => Ok(*number),
            _ => Err(sqlx::Error::Decode("this is no whole number".into())),
        }
    }

    pub(crate) fn text(&self) -> Result<String, sqlx::Error> {
        let text = self.optional_text()?;
        text.ok_or_else(|| sqlx::Error::Decode("there is no text".into()))
    }

    pub(crate) fn optional_text(&self) -> Result<Option<String>, sqlx::Error> {
        match self {
            Self::Text(text) => match str::from_utf8(text) {
                Ok(text) => Ok(Some(text.to_owned())),
                Err(error) => Err(sqlx::Error::Decode(error.into())),
            },
            Self::NoText => Ok(None),
            _ => Err(sqlx::Error::Decode("this is no text".into())),
        }
    }
}

/// An error of SQLite among those of all databases.
#[derive(Debug)]
struct Failure {
    code: i32,
    message: String,
}

/// What went wrong, in the form that both databases share.
fn failed(error: rusqlite::Error) -> sqlx::Error {
    match error {
        rusqlite::Error::SqliteFailure(error, message) => {
            let message = message.unwrap_or_else(|| error.to_string());
            let code = error.extended_code;
            sqlx::Error::Database(Box::new(Failure { code, message }))
        }
        error => sqlx::Error::Decode(error.into()),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "(code: {}) {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}

impl DatabaseError for Failure {
    fn message(&self) -> &str {
        &self.message
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        Some(self.code.to_string().into())
    }

    fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> ErrorKind {
        // Nobody asks.
        ErrorKind::Other
    }
}
