//! An in-memory SQLite database for one query of data files.

use std::time::{Duration, Instant};

use rusqlite::{
    Batch, Connection, Row, Statement,
    fallible_iterator::FallibleIterator as _,
    ffi,
    hooks::{AuthAction, AuthContext, Authorization},
    types::{ToSqlOutput, ValueRef},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{ColumnType, Table, max_shown_bytes, shorten_text};
use crate::sqlite::primary_result_code;

/// Number of SQLite virtual machine instructions between two checks of the time limit. SQLite
/// executes 1000 instructions in much less than a millisecond.
const PROGRESS_STEPS: i32 = 1000;
/// Maximum memory, in bytes, that all SQLite connections of this process may use together. A query
/// that needs more fails.
const MAX_HEAP: u64 = 512 << 20;

/// The limits of a query: number of rows, size of the result and run time.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryLimits {
    pub(super) rows: usize,
    /// Maximum size of all values, in bytes. The size is approximate.
    pub(super) bytes: usize,
    pub(super) time: Duration,
}

/// The rows that a query returned, until a limit of the query was reached.
#[derive(Debug)]
pub(super) struct QueryResult {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Value>>,
    /// Whether the query has more rows than the field `rows` contains, because a limit was reached.
    pub(super) truncated: bool,
}

/// An error of a data query, with a message for the model.
#[derive(Debug, thiserror::Error)]
pub(super) enum QueryError {
    #[error(
        "The query was stopped after {} seconds. Select less data or simplify the query.",
        .0.as_secs_f32()
    )]
    Timeout(Duration),
    #[error("The query needs too much memory. Select less data or simplify the query.")]
    Memory,
    /// The SQL text is refused: it must be exactly one query, which only reads and has no
    /// parameters. Contains the reason.
    #[error("Only one read-only query is allowed (SELECT, WITH or VALUES). {0}")]
    NotAllowed(&'static str),
    /// SQLite rejected the query or failed to execute it. Contains the message of SQLite.
    #[error("The query is invalid: {0}.")]
    Sql(String),
    /// The database failed for another reason.
    #[error("the database failed")]
    Database(#[from] rusqlite::Error),
}

/// Creates an in-memory database with the given tables and runs one query on it.
///
/// Returns within the time limit, unless a single SQL function runs for longer, because SQLite does
/// not interrupt functions. The authorizer allows only reading, so the query cannot open a file.
pub(super) fn run_query(
    tables: &[(String, Table)],
    sql: &str,
    limits: QueryLimits,
    stop: CancellationToken,
) -> Result<QueryResult, QueryError> {
    let deadline = Instant::now() + limits.time;
    let is_stopped = move || Instant::now() >= deadline || stop.is_cancelled();
    run_stoppable_query(tables, sql, limits, is_stopped).map_err(|error| match error {
        // SQLite returns `SQLITE_INTERRUPT` if `is_stopped` ended the query. `create_table` returns
        // an equal error if `is_stopped` ended the insertion of rows.
        QueryError::Database(error) => match primary_result_code(&error) {
            Some(ffi::SQLITE_INTERRUPT) => QueryError::Timeout(limits.time),
            Some(ffi::SQLITE_NOMEM) => QueryError::Memory,
            Some(ffi::SQLITE_AUTH) => {
                QueryError::NotAllowed("Files cannot be opened, and data cannot be changed.")
            }
            _ => match error {
                rusqlite::Error::SqlInputError { msg, .. } => QueryError::Sql(msg),
                rusqlite::Error::SqliteFailure(_, Some(message)) => QueryError::Sql(message),
                error => QueryError::Database(error),
            },
        },
        error => error,
    })
}

fn run_stoppable_query(
    tables: &[(String, Table)],
    sql: &str,
    limits: QueryLimits,
    is_stopped: impl Fn() -> bool + Clone + Send + 'static,
) -> Result<QueryResult, QueryError> {
    let mut connection = Connection::open_in_memory()?;
    connection.execute_batch(&format!(
        "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; \
         PRAGMA hard_heap_limit = {MAX_HEAP};"
    ))?;
    connection.progress_handler(PROGRESS_STEPS, Some(is_stopped.clone()))?;
    for (name, table) in tables {
        create_table(&mut connection, name, table, &is_stopped)?;
    }
    connection.authorizer(Some(authorize_sql_action))?;
    let mut statements = Batch::new(&connection, sql);
    let query = statements
        .next()?
        .ok_or(QueryError::NotAllowed("sql is empty."))?;
    if statements.next()?.is_some() {
        return Err(QueryError::NotAllowed(
            "The text contains a second statement.",
        ));
    }
    if query.parameter_count() > 0 {
        return Err(QueryError::NotAllowed(
            "Write values instead of parameters.",
        ));
    }
    if query.is_explain() != 0 || !query.readonly() || query.column_count() == 0 {
        return Err(QueryError::NotAllowed("This is a different statement."));
    }
    read_rows(query, limits)
}

/// Allows only reading of the in-memory tables. SQLite calls this function while it compiles a
/// statement.
fn authorize_sql_action(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Function { .. }
        | AuthAction::Recursive => Authorization::Allow,
        _ => Authorization::Deny,
    }
}

fn create_table(
    connection: &mut Connection,
    name: &str,
    table: &Table,
    is_stopped: impl Fn() -> bool,
) -> Result<(), QueryError> {
    let columns = table.columns.iter().map(|column| {
        let kind = match column.kind {
            ColumnType::Integer => " INTEGER",
            ColumnType::Real => " REAL",
            ColumnType::Text => " TEXT",
            ColumnType::Mixed => "",
        };
        format!("{}{kind}", quote_identifier(&column.name))
    });
    let mut columns: Vec<String> = columns.collect();
    if columns.is_empty() {
        // A table gets a placeholder column if it has none, because SQLite requires one.
        columns.push(quote_identifier("value"));
    }
    let name = quote_identifier(name);
    let transaction = connection.transaction()?;
    transaction.execute_batch(&format!("CREATE TABLE {name} ({})", columns.join(", ")))?;
    if !table.rows.is_empty() {
        let values = vec!["?"; columns.len()].join(", ");
        let mut insert = transaction.prepare(&format!("INSERT INTO {name} VALUES ({values})"))?;
        for row in &table.rows {
            if is_stopped() {
                return Err(interrupted_error());
            }
            insert.execute(rusqlite::params_from_iter(row.iter().map(SqlValue)))?;
        }
    }
    transaction.commit()?;
    Ok(())
}

fn interrupted_error() -> QueryError {
    let code = ffi::Error::new(ffi::SQLITE_INTERRUPT);
    QueryError::Database(rusqlite::Error::SqliteFailure(code, None))
}

/// A JSON value that is stored in SQLite. Arrays, objects and integers outside of the range of
/// `i64` are stored as text.
struct SqlValue<'a>(&'a Value);

impl rusqlite::ToSql for SqlValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Value::Bool(value) => ToSqlOutput::from(*value),
            Value::String(text) => ToSqlOutput::from(text.as_str()),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => ToSqlOutput::from(integer),
                (None, Some(real)) if number.is_f64() => ToSqlOutput::from(real),
                _ => ToSqlOutput::from(number.to_string()),
            },
            Value::Array(_) | Value::Object(_) => ToSqlOutput::from(self.0.to_string()),
        })
    }
}

fn quote_identifier(name: &str) -> String {
    // Zero bytes are removed, because they would end the name in SQLite.
    format!("\"{}\"", name.replace('\0', "").replace('"', "\"\""))
}

fn read_rows(mut query: Statement<'_>, limits: QueryLimits) -> Result<QueryResult, QueryError> {
    let columns: Vec<String> = query
        .column_names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let shown = max_shown_bytes(limits.bytes, columns.len());
    let mut result = QueryResult {
        columns,
        rows: Vec::new(),
        truncated: false,
    };
    let mut bytes = 0;
    let mut rows = query.raw_query();
    while let Some(row) = rows.next()? {
        if result.rows.len() == limits.rows || bytes > limits.bytes {
            result.truncated = true;
            break;
        }
        let columns = 0..result.columns.len();
        let row: Vec<Value> = columns
            .map(|column| read_value(row, column, shown))
            .collect::<Result<_, _>>()?;
        bytes += row.iter().map(estimate_value_size).sum::<usize>();
        result.rows.push(row);
    }
    Ok(result)
}

fn read_value(row: &Row<'_>, column: usize, shown: usize) -> rusqlite::Result<Value> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        // Infinite numbers become text, because JSON cannot represent them.
        ValueRef::Real(number) => serde_json::Number::from_f64(number)
            .map_or_else(|| number.to_string().into(), Value::from),
        // SQL functions can return text that is not valid UTF-8. Its invalid bytes are replaced by
        // U+FFFD.
        ValueRef::Text(text) => shorten_text(&String::from_utf8_lossy(text), shown).into(),
        ValueRef::Blob(bytes) => format!("(a blob of {} bytes)", bytes.len()).into(),
    })
}

fn estimate_value_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 4,
        _ => 8,
    }
}
