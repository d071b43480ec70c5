//! One face for both databases: text and whole numbers in, text and whole numbers out, `$1` for parameters.

use std::{borrow::Cow, future::Future, io, time::Duration};

use sqlx::{
    Arguments, ColumnIndex, Database, Decode, Encode, Postgres, Sqlite, Type,
    postgres::{PgArguments, PgConnection, PgPool, PgRow},
    sqlite::{SqliteArguments, SqlitePool, SqliteRow},
};
use tokio::time::timeout;

use crate::sqlite::{Cell, File};

/// How long it may take to end a transaction or a connection in order. Dropping it ends it too.
pub(crate) const FAREWELL: Duration = Duration::from_secs(5);

/// A parameter.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Int(i64),
    Text(Cow<'a, str>),
    NoText,
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::NoText, Self::from)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl Value<'_> {
    fn cannot_be_stored(&self) -> bool {
        matches!(self, Self::Text(text) if has_nul(text))
    }
}

/// Whether a text cannot be stored, so that nothing can have it for an id.
pub(crate) fn has_nul(text: &str) -> bool {
    text.contains('\0')
}

/// The parameters of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::database::Value::from($value)),*] };
}
pub(crate) use values;

/// One statement for several numbers of rows, so that many rows take few statements, and few statements are
/// prepared.
#[derive(Debug)]
pub(crate) struct Rows {
    by_size: [(usize, String); 4],
}

impl Rows {
    /// `before`, then rows of `columns` parameters each, of which the first is `$first`, then `after`.
    pub(crate) fn new(before: &str, first: usize, columns: usize, after: &str) -> Self {
        let by_size = [256, 64, 8, 1].map(|size| {
            let rows: Vec<String> = (0..size)
                .map(|row| {
                    let first = first + row * columns;
                    let places: Vec<String> = (first..first + columns)
                        .map(|at| format!("${at}"))
                        .collect();
                    format!("({})", places.join(", "))
                })
                .collect();
            (size, format!("{before}{}{after}", rows.join(", ")))
        });
        Self { by_size }
    }

    /// The largest that takes no more than `left` rows: how many it takes, and the statement.
    pub(crate) fn fitting(&'static self, left: usize) -> (usize, &'static str) {
        let [.., smallest] = &self.by_size;
        let fitting = self.by_size.iter().find(|(size, _)| *size <= left);
        let (size, sql) = fitting.unwrap_or(smallest);
        (*size, sql)
    }

    /// The smallest that takes `left` rows at once, or else the largest. The rows that are too many are for the
    /// caller to fill with something that does nothing.
    pub(crate) fn spacious(&'static self, left: usize) -> (usize, &'static str) {
        let [largest, ..] = &self.by_size;
        let spacious = self.by_size.iter().rev().find(|(size, _)| *size >= left);
        let (size, sql) = spacious.unwrap_or(largest);
        (*size, sql)
    }
}

/// A row of a result.
pub(crate) enum Row {
    /// Of a reader.
    Sqlite(SqliteRow),
    /// Of the writer.
    Cells(Vec<Cell>),
    Postgres(PgRow),
}

impl Row {
    pub(crate) fn int(&self, column: usize) -> Result<i64, sqlx::Error> {
        match self {
            Self::Cells(cells) => cell(cells, column)?.int(),
            Self::Sqlite(_) | Self::Postgres(_) => self.get(column),
        }
    }

    /// A whole number that counts something.
    pub(crate) fn count(&self, column: usize) -> Result<u64, sqlx::Error> {
        Ok(u64::try_from(self.int(column)?).unwrap_or(0))
    }

    pub(crate) fn text(&self, column: usize) -> Result<String, sqlx::Error> {
        match self {
            Self::Cells(cells) => cell(cells, column)?.text(),
            Self::Sqlite(_) | Self::Postgres(_) => self.get(column),
        }
    }

    pub(crate) fn optional_text(&self, column: usize) -> Result<Option<String>, sqlx::Error> {
        match self {
            Self::Cells(cells) => cell(cells, column)?.optional_text(),
            Self::Sqlite(_) | Self::Postgres(_) => self.get(column),
        }
    }

    fn get<T>(&self, column: usize) -> Result<T, sqlx::Error>
    where
        T: for<'r> Decode<'r, Sqlite>
            + Type<Sqlite>
            + for<'r> Decode<'r, Postgres>
            + Type<Postgres>,
        usize: ColumnIndex<SqliteRow> + ColumnIndex<PgRow>,
    {
        use sqlx::Row as _;
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
            // They have no types.
            Self::Cells(_) => Err(sqlx::Error::ColumnIndexOutOfBounds {
                index: column,
                len: 0,
            }),
        }
    }
}

fn cell(cells: &[Cell], column: usize) -> Result<&Cell, sqlx::Error> {
    cells
        .get(column)
        .ok_or(sqlx::Error::ColumnIndexOutOfBounds {
            index: column,
            len: cells.len(),
        })
}

/// The connection of the writer. What is asked of a file blocks: it belongs on a thread that may be blocked.
pub(crate) enum Connection {
    Sqlite(File),
    /// With how long the server may take for anything. A connection that was cut without a word says nothing for a
    /// quarter of an hour.
    Postgres(PgConnection, Duration),
}

impl Connection {
    /// How many rows it changed.
    pub(crate) async fn execute(
        &mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<u64, sqlx::Error> {
        match self {
            Self::Sqlite(file) => file.execute(sql, &values),
            Self::Postgres(connection, patience) => {
                let arguments = arguments::<PgArguments>(values)?;
                let executing = sqlx::query_with(sql, arguments).execute(connection);
                Ok(within(*patience, executing).await?.rows_affected())
            }
        }
    }

    pub(crate) async fn rows(
        &mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<Vec<Row>, sqlx::Error> {
        match self {
            Self::Sqlite(file) => {
                let rows = file.rows(sql, &values)?;
                Ok(rows.into_iter().map(Row::Cells).collect())
            }
            Self::Postgres(connection, patience) => {
                let arguments = arguments::<PgArguments>(values)?;
                let fetching = sqlx::query_with(sql, arguments).fetch_all(connection);
                let rows = within(*patience, fetching).await?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
        }
    }

    pub(crate) async fn row(
        &mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<Option<Row>, sqlx::Error> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Statements without parameters and results, such as those of a transaction.
    pub(crate) async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(file) => file.run(sql)?,
            Self::Postgres(connection, patience) => {
                within(*patience, sqlx::raw_sql(sql).execute(connection)).await?;
            }
        }
        Ok(())
    }

    /// Undoes the transaction. If that fails, dropping the connection does.
    pub(crate) async fn roll_back(&mut self) -> Result<(), sqlx::Error> {
        if matches!(self, Self::Sqlite(file) if !file.is_in_transaction()) {
            // It was refused at its beginning.
            return Ok(());
        }
        within(FAREWELL, self.run("ROLLBACK")).await
    }

    /// Makes the file of SQLite smaller by a part of the pages that are free.
    pub(crate) fn give_back(&mut self) -> Result<(), sqlx::Error> {
        if let Self::Sqlite(file) = self {
            // It goes on for as long as somebody asks for its next row.
            file.rows("PRAGMA incremental_vacuum(8000)", &[])?;
        }
        Ok(())
    }

    /// Closes it in order, as far as that goes.
    pub(crate) async fn close(self) {
        use sqlx::Connection as _;
        match self {
            Self::Sqlite(file) => drop(file),
            // Whatever a closing connection says, everything that was acknowledged is committed.
            Self::Postgres(connection, _) => {
                let _ = within(FAREWELL, connection.close()).await;
            }
        }
    }
}

/// Does no longer wait than that.
pub(crate) async fn within<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let done = timeout(patience, work).await;
    done.unwrap_or_else(|_| Err(sqlx::Error::Io(io::ErrorKind::TimedOut.into())))
}

/// Connections that only read.
#[derive(Debug, Clone)]
pub(crate) enum Readers {
    Sqlite(SqlitePool),
    /// With how long the server may take for one read.
    Postgres(PgPool, Duration),
}

impl Readers {
    /// The values are keys: with a text that cannot be stored, nothing is found.
    pub(crate) async fn rows(
        &self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<Vec<Row>, sqlx::Error> {
        if values.iter().any(Value::cannot_be_stored) {
            return Ok(Vec::new());
        }
        match self {
            Self::Sqlite(pool) => {
                let arguments = arguments::<SqliteArguments>(values)?;
                let rows = sqlx::query_with(sql, arguments).fetch_all(pool).await?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            Self::Postgres(pool, patience) => {
                let arguments = arguments::<PgArguments>(values)?;
                let mut connection = pool.acquire().await?;
                let fetching = sqlx::query_with(sql, arguments).fetch_all(&mut *connection);
                let rows = within(*patience, fetching).await;
                if matches!(rows, Err(sqlx::Error::Io(_))) {
                    // Nobody is to wait for it once more.
                    drop(connection.detach());
                }
                Ok(rows?.into_iter().map(Row::Postgres).collect())
            }
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            // Those that are in use are waited for.
            Self::Postgres(pool, _) => {
                let _ = timeout(FAREWELL, pool.close()).await;
            }
        }
    }
}

pub(crate) fn arguments<A>(values: Vec<Value<'_>>) -> Result<A, sqlx::Error>
where
    A: Arguments,
    A::Database: Database,
    i64: for<'t> Encode<'t, A::Database> + Type<A::Database>,
    String: for<'t> Encode<'t, A::Database> + Type<A::Database>,
    Option<String>: for<'t> Encode<'t, A::Database> + Type<A::Database>,
{
    let mut arguments = A::default();
    for value in values {
        match value {
            Value::Int(number) => arguments.add(number),
            // PostgreSQL has no such text. SQLite would take it; then the two would differ.
            Value::Text(text) if has_nul(&text) => {
                Err("text with the character NUL cannot be stored".into())
            }
            Value::Text(text) => arguments.add(text.into_owned()),
            Value::NoText => arguments.add(None::<String>),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

/// Whether the connection is of no further use, and a new one may do better.
pub(crate) fn connection_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        // Classes 08 (connection) and 57P (the server ends), and time-outs of a session.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            code.starts_with("08") || code.starts_with("57P") || code == "25P03" || code == "25P04"
        }),
        _ => false,
    }
}

/// Whether a server may soon do what it would not do, and did not begin with: it has no connection or no memory
/// left, or only reads for now.
pub(crate) fn may_pass(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    // Of PostgreSQL; SQLite's codes are shorter.
    let code = error.code();
    code.is_some_and(|code| code.len() == 5 && (code.starts_with("53") || code == "25006"))
}

/// Returns whether another writer kept a lock for too long.
pub(crate) fn is_locked(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    error.code().is_some_and(|code| match code.parse::<i32>() {
        // Of SQLite, which has an extended code above the lowest byte. Those of PostgreSQL have five characters.
        Ok(number) if code.len() < 5 => number & 0xff == rusqlite::ffi::SQLITE_BUSY,
        // PostgreSQL: lock_not_available.
        _ => code == "55P03",
    })
}

/// Whether two transactions stood in each other's way, so that the same again may do.
pub(crate) fn collided(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    // Serialization failure and deadlock of PostgreSQL; SQLite's codes are numbers.
    error
        .code()
        .is_some_and(|code| code == "40001" || code == "40P01")
}
