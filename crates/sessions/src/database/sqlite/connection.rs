//! One connection to a SQLite file.

use std::{path::Path, time::Duration};

use async_trait::async_trait;
use rusqlite::{CachedStatement, OpenFlags, types::ValueRef};

use crate::database::{Cell, Connection, DatabaseError, DatabaseKind, FailureKind, Row, Value};

/// Maximum number of prepared statements in the cache of a connection. This crate has fewer
/// statements.
const STATEMENT_CACHE: usize = 128;

/// A connection to a SQLite file. Its methods block until SQLite has finished.
pub(super) struct SqliteConnection {
    connection: rusqlite::Connection,
}

impl SqliteConnection {
    /// Opens a connection and sets `pragmas`. Without pragmas, the connection is read-only.
    pub(super) fn open(
        path: &Path,
        pragmas: &[(&str, &str)],
        busy_timeout: Duration,
    ) -> Result<Self, DatabaseError> {
        let access = match pragmas {
            [] => OpenFlags::SQLITE_OPEN_READ_ONLY,
            _ => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
        let connection =
            rusqlite::Connection::open_with_flags(path, flags).map_err(database_error)?;
        connection
            .busy_timeout(busy_timeout)
            .map_err(database_error)?;
        connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
        for (name, value) in pragmas {
            let set = format!("PRAGMA {name} = {value}");
            connection.execute_batch(&set).map_err(database_error)?;
        }
        Ok(Self { connection })
    }

    pub(super) fn query(
        &mut self,
        sql: &'static str,
        values: &[Value],
    ) -> Result<Vec<Row>, DatabaseError> {
        let mut statement = self.prepare(sql, values)?;
        let columns = statement.column_count();
        let mut found = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(database_error)? {
            let cells =
                (0..columns).map(|column| to_cell(row.get_ref(column).map_err(database_error)?));
            found.push(Row(cells.collect::<Result<_, _>>()?));
        }
        Ok(found)
    }

    pub(super) fn run_batch(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.connection.execute_batch(sql).map_err(database_error)
    }

    fn prepare(
        &mut self,
        sql: &'static str,
        values: &[Value],
    ) -> Result<CachedStatement<'_>, DatabaseError> {
        let mut statement = self
            .connection
            .prepare_cached(sql)
            .map_err(database_error)?;
        for (number, value) in (1..).zip(values) {
            value.check_storable()?;
            // SQLite treats `$4` as a name, so the index of the parameter must be looked up.
            let index = statement.parameter_index(&format!("${number}"));
            let Some(index) = index.map_err(database_error)? else {
                continue;
            };
            let bound = match value {
                Value::Int(number) => statement.raw_bind_parameter(index, number),
                Value::Text(text) => statement.raw_bind_parameter(index, text.as_str()),
                Value::Null => statement.raw_bind_parameter(index, rusqlite::types::Null),
            };
            bound.map_err(database_error)?;
        }
        Ok(statement)
    }
}

#[async_trait]
impl Connection for SqliteConnection {
    fn database_kind(&self) -> DatabaseKind {
        DatabaseKind::Sqlite
    }

    async fn execute(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<u64, DatabaseError> {
        let mut statement = self.prepare(sql, &values)?;
        let changed = statement.raw_execute().map_err(database_error)?;
        Ok(changed.try_into().unwrap_or(u64::MAX))
    }

    async fn query_rows(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError> {
        self.query(sql, &values)
    }

    async fn execute_batch(&mut self, sql: &'static str) -> Result<(), DatabaseError> {
        self.run_batch(sql)
    }

    async fn begin(&mut self) -> Result<(), DatabaseError> {
        // `IMMEDIATE` acquires the write lock at the start of the transaction. Without it, the
        // first write acquires the lock, and SQLite could refuse this write.
        self.run_batch("BEGIN IMMEDIATE")
    }

    async fn roll_back(&mut self) -> Result<(), DatabaseError> {
        if self.connection.is_autocommit() {
            // No transaction is open: SQLite refused to begin it or has rolled it back already.
            return Ok(());
        }
        self.run_batch("ROLLBACK")
    }

    async fn shrink_file(&mut self) -> Result<(), DatabaseError> {
        // The pragma frees pages only while its result rows are read, so all rows are read.
        self.query("PRAGMA incremental_vacuum(8000)", &[])?;
        Ok(())
    }
}

fn to_cell(value: ValueRef<'_>) -> Result<Cell, DatabaseError> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Int(number),
        ValueRef::Text(text) => {
            let text = str::from_utf8(text).map_err(DatabaseError::unreadable_data)?;
            Cell::Text(text.to_owned())
        }
        ValueRef::Real(_) | ValueRef::Blob(_) => Cell::Other,
    })
}

fn database_error(error: rusqlite::Error) -> DatabaseError {
    // The lowest byte of an extended error code is the primary code
    // (<https://sqlite.org/rescode.html>).
    let code = error.sqlite_error().map(|error| error.extended_code & 0xff);
    let kind = match code {
        Some(rusqlite::ffi::SQLITE_BUSY) => FailureKind::Locked,
        _ => FailureKind::Other,
    };
    DatabaseError::new(kind, error)
}
