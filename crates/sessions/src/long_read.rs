//! One long read, which sees the store as it was when it began.

use std::time::Duration;

use futures_core::stream::BoxStream;
use futures_util::StreamExt as _;
use sqlx::{
    postgres::{PgArguments, PgConnection},
    sqlite::{SqliteArguments, SqliteConnection},
};

use crate::database::{FAREWELL, Row, Value, arguments, within};

/// A connection for a long read.
pub(crate) enum LongRead {
    Sqlite(SqliteConnection),
    /// With how long the server may take for anything.
    Postgres(PgConnection, Duration),
}

impl LongRead {
    pub(crate) async fn rows(
        &mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<Vec<Row>, sqlx::Error> {
        let mut rows = self.stream(sql, values)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().await? {
            all.push(row);
        }
        Ok(all)
    }

    pub(crate) async fn row(
        &mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<Option<Row>, sqlx::Error> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Rows one after the other: no more of them is in memory than is looked at. Not to be used again for anything
    /// else if this is not read to its end.
    pub(crate) fn stream<'c>(
        &'c mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<Rowstream<'c>, sqlx::Error> {
        Ok(match self {
            Self::Sqlite(connection) => {
                let arguments = arguments::<SqliteArguments>(values)?;
                let rows = sqlx::query_with(sql, arguments).fetch(connection);
                let rows = rows.map(|row| row.map(Row::Sqlite)).boxed();
                let patience = None;
                Rowstream { rows, patience }
            }
            Self::Postgres(connection, patience) => {
                let arguments = arguments::<PgArguments>(values)?;
                let rows = sqlx::query_with(sql, arguments).fetch(connection);
                let rows = rows.map(|row| row.map(Row::Postgres)).boxed();
                let patience = Some(*patience);
                Rowstream { rows, patience }
            }
        })
    }

    /// Begins what is seen of the store.
    pub(crate) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(connection) => {
                sqlx::raw_sql("BEGIN").execute(connection).await?;
            }
            Self::Postgres(connection, patience) => {
                let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
                within(*patience, sqlx::raw_sql(begin).execute(connection)).await?;
            }
        }
        Ok(())
    }

    /// Closes it in order, as far as that goes.
    pub(crate) async fn close(self) {
        use sqlx::Connection as _;
        // It has written nothing.
        let _ = match self {
            Self::Sqlite(connection) => connection.close().await,
            Self::Postgres(connection, _) => within(FAREWELL, connection.close()).await,
        };
    }
}

/// The rows of a result as they come.
pub(crate) struct Rowstream<'c> {
    rows: BoxStream<'c, Result<Row, sqlx::Error>>,
    /// How long the server may take for the next one.
    patience: Option<Duration>,
}

impl Rowstream<'_> {
    pub(crate) async fn next(&mut self) -> Result<Option<Row>, sqlx::Error> {
        let next = async { self.rows.next().await.transpose() };
        match self.patience {
            Some(patience) => within(patience, next).await,
            None => next.await,
        }
    }
}
