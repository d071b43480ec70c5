//! One connection to a SQLite file.

use std::{path::Path, time::Duration};

use async_trait::async_trait;
use rusqlite::{CachedStatement, OpenFlags, types::ValueRef};

use crate::database::{Cell, Connection, DatabaseError, DatabaseKind, FailureKind, Row, Value};

/// Maximum number of prepared statements. There are fewer statements than this.
const STATEMENT_CACHE: usize = 128;

/// A connection. Its methods block until SQLite has finished.
pub(super) struct SqliteConnection {
    connection: rusqlite::Connection,
    #[cfg(test)]
    statements: u64,
}

impl SqliteConnection {
    pub(super) fn open(
        path: &Path,
        pragmas: &[(&str, &str)],
        busy_timeout: Duration,
    ) -> Result<Self, DatabaseError> {
        let opened = Self::open_with(path, OpenFlags::SQLITE_OPEN_READ_WRITE, busy_timeout)?;
        for (name, value) in pragmas {
            let set = format!("PRAGMA {name} = {value}");
            opened.connection.execute_batch(&set).map_err(failed)?;
        }
        Ok(opened)
    }

    pub(super) fn open_read_only(
        path: &Path,
        busy_timeout: Duration,
    ) -> Result<Self, DatabaseError> {
        Self::open_with(path, OpenFlags::SQLITE_OPEN_READ_ONLY, busy_timeout)
    }

    fn open_with(
        path: &Path,
        access: OpenFlags,
        busy_timeout: Duration,
    ) -> Result<Self, DatabaseError> {
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
        let connection = rusqlite::Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(busy_timeout).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
        Ok(Self {
            connection,
            #[cfg(test)]
            statements: 0,
        })
    }

    pub(super) fn query(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, DatabaseError> {
        let mut statement = self.prepare(sql, values)?;
        let columns = statement.column_count();
        let mut found = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(failed)? {
            let cells = (0..columns).map(|column| cell(row.get_ref(column).map_err(failed)?));
            found.push(Row(cells.collect::<Result<_, _>>()?));
        }
        Ok(found)
    }

    pub(super) fn run_batch(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.count_statement();
        self.connection.execute_batch(sql).map_err(failed)
    }

    fn prepare(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<CachedStatement<'_>, DatabaseError> {
        self.count_statement();
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        for index in 1..=statement.parameter_count() {
            // To SQLite, `$4` is a name. Its indexes follow the order of the names in the text.
            let name = statement.parameter_name(index);
            let number = name.and_then(|name| name.strip_prefix('$')?.parse::<usize>().ok());
            let value = number.and_then(|number| values.get(number.checked_sub(1)?));
            let Some(value) = value else {
                let cause = format!("parameter {index} of `{sql}` has no value");
                return Err(DatabaseError::other(cause));
            };
            value.check()?;
            let bound = match value {
                Value::Int(number) => statement.raw_bind_parameter(index, number),
                Value::Text(text) => statement.raw_bind_parameter(index, &**text),
                Value::Null => statement.raw_bind_parameter(index, rusqlite::types::Null),
            };
            bound.map_err(failed)?;
        }
        Ok(statement)
    }

    #[cfg(test)]
    fn count_statement(&mut self) {
        self.statements += 1;
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self, reason = "tests count statements here")]
    fn count_statement(&mut self) {}
}

#[async_trait]
impl Connection for SqliteConnection {
    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Sqlite
    }

    async fn execute(
        &mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<u64, DatabaseError> {
        let mut statement = self.prepare(sql, &values)?;
        let changed = statement.raw_execute().map_err(failed)?;
        Ok(changed.try_into().unwrap_or(u64::MAX))
    }

    async fn rows(
        &mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<Vec<Row>, DatabaseError> {
        self.query(sql, &values)
    }

    async fn run(&mut self, sql: &'static str) -> Result<(), DatabaseError> {
        self.run_batch(sql)
    }

    async fn begin(&mut self) -> Result<(), DatabaseError> {
        // A transaction that requests the lock at its first write may be refused in the middle.
        self.run_batch("BEGIN IMMEDIATE")
    }

    async fn roll_back(&mut self) -> Result<(), DatabaseError> {
        if self.connection.is_autocommit() {
            // The transaction was refused at its beginning, or SQLite has rolled it back.
            return Ok(());
        }
        self.run_batch("ROLLBACK")
    }

    async fn shrink(&mut self) -> Result<(), DatabaseError> {
        // Frees pages while its rows are read.
        self.query("PRAGMA incremental_vacuum(8000)", &[])?;
        Ok(())
    }

    async fn close(self: Box<Self>) {}

    #[cfg(test)]
    fn statement_count(&self) -> u64 {
        self.statements
    }
}

fn cell(value: ValueRef<'_>) -> Result<Cell, DatabaseError> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Int(number),
        ValueRef::Text(text) => {
            let text = str::from_utf8(text).map_err(DatabaseError::unreadable)?;
            Cell::Text(text.to_owned())
        }
        ValueRef::Real(_) | ValueRef::Blob(_) => Cell::Other,
    })
}

fn failed(error: rusqlite::Error) -> DatabaseError {
    // An extended code has the primary code in its lowest byte
    // (<https://sqlite.org/rescode.html>).
    let code = error.sqlite_error().map(|error| error.extended_code & 0xff);
    let kind = match code {
        Some(rusqlite::ffi::SQLITE_BUSY) => FailureKind::Locked,
        _ => FailureKind::Other,
    };
    DatabaseError::new(kind, error)
}
