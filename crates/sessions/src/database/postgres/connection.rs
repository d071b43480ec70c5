//! One connection to a PostgreSQL server.

use std::{future::Future, time::Duration};

use async_trait::async_trait;
use sqlx::{
    Arguments as _, Column as _, Row as _, TypeInfo as _,
    postgres::{PgArguments, PgConnection, PgRow},
};
use tokio::time::timeout;

use super::CLOSE_TIMEOUT;
use crate::database::{Cell, Connection, DatabaseError, DatabaseKind, FailureKind, Row, Value};

pub(super) struct PostgresConnection {
    pub(super) connection: PgConnection,
    /// Maximum time of one statement. If a statement takes longer, the connection counts as lost.
    pub(super) timeout: Duration,
}

#[async_trait]
impl Connection for PostgresConnection {
    fn database_kind(&self) -> DatabaseKind {
        DatabaseKind::Postgres
    }

    async fn execute(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<u64, DatabaseError> {
        let query = sqlx::query_with(sql, to_pg_arguments(values)?);
        let done = with_timeout(self.timeout, query.execute(&mut self.connection)).await?;
        Ok(done.rows_affected())
    }

    async fn query_rows(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError> {
        let query = sqlx::query_with(sql, to_pg_arguments(values)?);
        let rows = with_timeout(self.timeout, query.fetch_all(&mut self.connection)).await?;
        rows.iter().map(convert_row).collect()
    }

    async fn execute_batch(&mut self, sql: &'static str) -> Result<(), DatabaseError> {
        let statements = sqlx::raw_sql(sql);
        with_timeout(self.timeout, statements.execute(&mut self.connection)).await?;
        Ok(())
    }

    async fn begin(&mut self) -> Result<(), DatabaseError> {
        self.execute_batch("BEGIN").await
    }

    async fn roll_back(&mut self) -> Result<(), DatabaseError> {
        let rolled_back = timeout(CLOSE_TIMEOUT, self.execute_batch("ROLLBACK")).await;
        rolled_back.unwrap_or_else(|_| Err(DatabaseError::timed_out()))
    }

    async fn close(self: Box<Self>) {
        // An error is ignored: all acknowledged writes are committed, so closing loses no data.
        let _ = timeout(CLOSE_TIMEOUT, sqlx::Connection::close(self.connection)).await;
    }
}

/// Waits for a database operation, at most for `time`. A time-out counts as a lost connection.
pub(super) async fn with_timeout<T>(
    time: Duration,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, DatabaseError> {
    match timeout(time, work).await {
        Ok(done) => done.map_err(database_error),
        Err(_) => Err(DatabaseError::timed_out()),
    }
}

pub(super) fn to_pg_arguments(values: Vec<Value>) -> Result<PgArguments, DatabaseError> {
    let mut arguments = PgArguments::default();
    for value in values {
        value.check_storable()?;
        let added = match value {
            Value::Int(number) => arguments.add(number),
            Value::Text(text) => arguments.add(text),
            Value::Null => arguments.add(None::<String>),
        };
        added.map_err(DatabaseError::other_failure)?;
    }
    Ok(arguments)
}

pub(super) fn convert_row(row: &PgRow) -> Result<Row, DatabaseError> {
    let cells = row.columns().iter().map(|column| {
        let at = column.ordinal();
        let cell = match column.type_info().name() {
            "INT8" => row
                .try_get(at)
                .map(|number: Option<i64>| number.map(Cell::Int)),
            "TEXT" => row
                .try_get(at)
                .map(|text: Option<String>| text.map(Cell::Text)),
            _ => return Ok(Cell::Other),
        };
        Ok(cell.map_err(database_error)?.unwrap_or(Cell::Null))
    });
    cells.collect::<Result<_, _>>().map(Row)
}

pub(super) fn database_error(error: sqlx::Error) -> DatabaseError {
    DatabaseError::new(classify_error(&error), error)
}

/// Classifies an error of the driver. The codes are listed at
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn classify_error(error: &sqlx::Error) -> FailureKind {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed => FailureKind::ConnectionLost,
        sqlx::Error::PoolTimedOut => FailureKind::Overloaded,
        sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => FailureKind::Unreadable,
        sqlx::Error::Database(error) => match error.code().as_deref() {
            // The codes are `idle_in_transaction_session_timeout` and `transaction_timeout`. The
            // server closes the connection after these time-outs.
            Some("25P03" | "25P04") => FailureKind::ConnectionLost,
            // The codes are `serialization_failure` and `deadlock_detected`.
            Some("40001" | "40P01") => FailureKind::Conflict,
            // The code is `lock_not_available`: another transaction held the lock for too long.
            Some("55P03") => FailureKind::Locked,
            // The code is `read_only_sql_transaction`, which for example a standby server returns.
            Some("25006") => FailureKind::Overloaded,
            // Class 08 is connection exceptions. Class 57P is a server that shuts down.
            Some(code) if code.starts_with("08") || code.starts_with("57P") => {
                FailureKind::ConnectionLost
            }
            // Class 53 is insufficient resources, such as memory or connections.
            Some(code) if code.starts_with("53") => FailureKind::Overloaded,
            _ => FailureKind::Other,
        },
        _ => FailureKind::Other,
    }
}
