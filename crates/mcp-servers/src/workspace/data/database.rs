//! A database in memory for one query.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::TryStreamExt;
use serde_json::Value;
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions, Connection, Executor, Row as _, SqlSafeStr as _,
    SqliteConnection, Statement as _, TypeInfo as _, ValueRef as _, raw_sql,
    sqlite::{SqliteConnectOptions, SqliteRow},
};

use super::{ColumnType, Table, shortened_text, shown_of_each};

/// How many steps of SQLite's machine pass between two looks at the clock: far below a millisecond.
const STEPS: i32 = 1000;
/// How many bytes all of SQLite in this process may take: a query can ask for any amount.
const MOST_MEMORY: u64 = 512 << 20;
/// How many rows go into a table with one statement.
const ROWS_AT_ONCE: usize = 5000;

/// What limits an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) rows: usize,
    /// The size of all values together, roughly.
    pub(super) bytes: usize,
    pub(super) time: Duration,
}

/// What a query finds.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Value>>,
    /// There are more, which a limit left out.
    pub(super) truncated: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum QueryFault {
    /// It took too long.
    #[error("The query was stopped after {} seconds. Ask for less, or in another way.", .0.as_secs_f32())]
    Time(Duration),
    /// It took too much memory.
    #[error("The query needs too much memory. Ask for less, or in another way.")]
    Memory,
    /// The database does not understand it, or will not do it.
    #[error("The query is not possible: {0}.")]
    Sql(String),
    /// It failed for reasons that are not the query's.
    #[error("the database failed")]
    Database(sqlx::Error),
}

/// Stops a query, from wherever, when it is set.
pub(super) type Stop = Arc<AtomicBool>;

/// Puts tables into a database of their own and asks it one question, which `sql.rs` has looked at.
/// The answer is there, or the query stopped, within the time; only a single function that SQLite is
/// in the middle of is not interrupted.
pub(super) async fn ask(
    tables: &[(String, Table)],
    sql: String,
    limits: Limits,
    stop: Stop,
) -> Result<Found, QueryFault> {
    let deadline = Instant::now() + limits.time;
    let fault = |error| QueryFault::from(error, limits.time, deadline);
    let mut connection = connect(deadline, stop).await.map_err(fault)?;
    for (name, table) in tables {
        fill(&mut connection, name, table).await.map_err(fault)?;
    }
    let rows = run(&mut connection, sql, limits).await.map_err(fault);
    // Nothing is kept, so nothing can be lost.
    let _ = connection.close_hard().await;
    rows
}

async fn connect(deadline: Instant, stop: Stop) -> Result<SqliteConnection, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .in_memory(true)
        .statement_cache_capacity(0)
        .disable_statement_logging();
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let settings = format!(
        "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; \
         PRAGMA hard_heap_limit = {MOST_MEMORY};"
    );
    raw_sql(AssertSqlSafe(settings))
        .execute(&mut connection)
        .await?;
    let mut handle = connection.lock_handle().await?;
    handle.set_progress_handler(STEPS, move || {
        Instant::now() < deadline && !stop.load(Ordering::Relaxed)
    });
    drop(handle);
    Ok(connection)
}

async fn fill(
    connection: &mut SqliteConnection,
    name: &str,
    table: &Table,
) -> Result<(), sqlx::Error> {
    let columns = table.columns.iter().map(|column| {
        let kind = match column.kind {
            ColumnType::Integer => " INTEGER",
            ColumnType::Real => " REAL",
            ColumnType::Text => " TEXT",
            ColumnType::Mixed => "",
        };
        format!("{}{kind}", quoted(&column.name))
    });
    let mut columns: Vec<String> = columns.collect();
    if columns.is_empty() {
        // A table needs one.
        columns.push(quoted("value"));
    }
    let name = quoted(name);
    let create = format!("CREATE TABLE {name} ({})", columns.join(", "));
    raw_sql(AssertSqlSafe(create))
        .execute(&mut *connection)
        .await?;
    let values = (0..table.columns.len()).map(|index| format!("json_extract(value, '$[{index}]')"));
    let values: Vec<String> = values.collect();
    let insert = format!(
        "INSERT INTO {name} SELECT {} FROM json_each(?)",
        values.join(", ")
    );
    for rows in table.rows.chunks(ROWS_AT_ONCE) {
        let rows: Vec<Vec<Value>> = rows
            .iter()
            .map(|row| row.iter().map(plain).collect())
            .collect();
        let rows = Value::from(rows).to_string();
        sqlx::query(AssertSqlSafe(insert.clone()))
            .bind(rows)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// What SQLite has no type for goes in as text: values with values in them as JSON, and integers
/// that it would round.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) => Value::String(value.to_string()),
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            Value::String(number.to_string())
        }
        other => other.clone(),
    }
}

fn quoted(name: &str) -> String {
    // SQLite ends a text at a zero.
    format!("\"{}\"", name.replace('\0', "").replace('"', "\"\""))
}

async fn run(
    connection: &mut SqliteConnection,
    sql: String,
    limits: Limits,
) -> Result<Found, sqlx::Error> {
    raw_sql("PRAGMA query_only = ON")
        .execute(&mut *connection)
        .await?;
    // Before it runs: an answer without rows has columns, too.
    let statement = (&mut *connection)
        .prepare(AssertSqlSafe(sql).into_sql_str())
        .await?;
    let columns = statement.columns().iter();
    let columns: Vec<String> = columns.map(|column| column.name().to_owned()).collect();
    let mut found = statement.query().fetch(&mut *connection);
    let shown = shown_of_each(limits.bytes, columns.len());
    let mut rows = Vec::new();
    let mut bytes = 0;
    while let Some(row) = found.try_next().await? {
        if rows.len() == limits.rows || bytes > limits.bytes {
            return Ok(Found {
                columns,
                rows,
                truncated: true,
            });
        }
        let row = values(&row, shown)?;
        bytes += row.iter().map(size).sum::<usize>();
        rows.push(row);
    }
    Ok(Found {
        columns,
        rows,
        truncated: false,
    })
}

fn values(row: &SqliteRow, shown: usize) -> Result<Vec<Value>, sqlx::Error> {
    let places = 0..row.len();
    places.map(|index| value(row, index, shown)).collect()
}

fn value(row: &SqliteRow, index: usize, shown: usize) -> Result<Value, sqlx::Error> {
    let raw = row.try_get_raw(index)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    let kind = raw.type_info().name().to_owned();
    Ok(match kind.as_str() {
        "INTEGER" => row.try_get_unchecked::<i64, _>(index)?.into(),
        "REAL" => {
            let number: f64 = row.try_get_unchecked(index)?;
            // JSON has no infinity.
            serde_json::Number::from_f64(number)
                .map_or_else(|| number.to_string().into(), Value::from)
        }
        "BLOB" => {
            let bytes: &[u8] = row.try_get_unchecked(index)?;
            format!("(a blob of {} bytes)", bytes.len()).into()
        }
        _ => {
            // Functions can make text that is no UTF-8.
            let bytes: &[u8] = row.try_get_unchecked(index)?;
            shortened_text(&String::from_utf8_lossy(bytes), shown).into()
        }
    })
}

fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 4,
        _ => 8,
    }
}

impl QueryFault {
    fn from(error: sqlx::Error, time: Duration, deadline: Instant) -> Self {
        const INTERRUPT: i32 = 9;
        const NOMEM: i32 = 7;
        let sqlx::Error::Database(told) = &error else {
            return Self::Database(error);
        };
        let code = told.code().and_then(|code| code.parse::<i32>().ok());
        match code.map(|code| code & 0xff) {
            Some(INTERRUPT) if Instant::now() >= deadline => Self::Time(time),
            Some(NOMEM) => Self::Memory,
            _ => Self::Sql(told.message().to_owned()),
        }
    }
}
