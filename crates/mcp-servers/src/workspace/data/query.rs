//! The tool `data_query`, which runs SQL over data files.

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    Table,
    database::{self, QueryError, QueryLimits, QueryResult},
    load_table, unique_names,
};
use crate::{
    text::format_quantity,
    tool::{BundledTool, ToolError, ToolOutput, ToolResult, default_number},
    workspace::root::{Root, path::Access},
};

/// Maximum size of all rows of a query result, in bytes. The size is approximate.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum number of data files that one query can use.
const MAX_FILES: usize = 8;
/// Maximum number of concurrent queries. A query counts until SQLite has returned, even if its call
/// was cancelled before.
const MAX_QUERIES: usize = 2;
/// Maximum wait for SQLite after the time limit of a query. Then the call returns an error,
/// although SQLite may still be running.
const END_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Input {
    /// One SELECT statement of SQLite. Each file is a table named after the file: sales for
    /// data/sales.csv. Characters other than letters, digits and _ become _.
    #[schemars(length(min = 1, max = 20000))]
    sql: String,
    /// The paths of the data files.
    #[schemars(length(min = 1, max = 8))]
    files: Vec<String>,
    /// Maximum number of rows to return.
    #[serde(default = "default_number::<100>")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::workspace) struct Output {
    columns: Vec<String>,
    /// One list of values for each row, in the order of the columns.
    rows: Vec<Vec<Value>>,
    /// Whether the query has more rows, which are not in `rows`.
    truncated: bool,
    /// The tables that the query could use.
    tables: Vec<QueryTable>,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::workspace) struct QueryTable {
    name: String,
    path: String,
    columns: Vec<String>,
    records: usize,
}

pub(in crate::workspace) fn data_query_tool(root: &Arc<Root>, time: Duration) -> BundledTool {
    let state = (root.clone(), time, Arc::new(Semaphore::new(MAX_QUERIES)));
    BundledTool::new(
        "data_query",
        "Query data",
        "Runs one SQL query (SELECT, SQLite) over data files (CSV, TSV, JSON, JSON Lines): \
         counts, sums, filters, joins. The files are only read.",
        state,
        run_tool,
    )
}

async fn run_tool(
    (root, time, permits): (Arc<Root>, Duration, Arc<Semaphore>),
    input: Input,
) -> ToolResult<Output> {
    let Ok(Ok(permit)) = timeout(time, permits.acquire_owned()).await else {
        return Err("Other queries are still running. Try again in a moment.".into());
    };
    let files = input.files;
    let (tables, described) = root
        .run_blocking(move |root| load_tables(root, &files))
        .await?;
    let limits = QueryLimits {
        rows: input.limit,
        bytes: MAX_BYTES,
        time,
    };
    let stop = CancellationToken::new();
    // Dropping this guard stops the query, for example if the client cancels the call.
    let _guard = stop.clone().drop_guard();
    let sql = input.sql;
    let query = tokio::task::spawn_blocking(move || {
        let result = database::run_query(&tables, &sql, limits, stop);
        drop(permit);
        result
    });
    match timeout(time + END_TIMEOUT, query).await {
        Ok(Ok(Ok(rows))) => Ok(build_output(rows, described)),
        Ok(Ok(Err(error))) => Err(to_tool_error(error, &described)),
        Ok(Err(error)) => {
            tracing::error!(%error, "a data query panicked");
            Err("The query failed.".into())
        }
        Err(_) => Err(to_tool_error(QueryError::Timeout(time), &described)),
    }
}

type NamedTables = Vec<(String, Table)>;

/// Reads the data files. Returns the tables with their names in SQL, and a description of each
/// table for the model.
fn load_tables(root: &Root, files: &[String]) -> Result<(NamedTables, Vec<QueryTable>), ToolError> {
    if files.len() > MAX_FILES {
        return Err(format!("At most {MAX_FILES} files are allowed in one query.").into());
    }
    // The total size of all files may be twice the maximum size of one file.
    let mut left = root.max_file_bytes.saturating_mul(2);
    let mut loaded: Vec<(String, Table)> = Vec::new();
    for file in files {
        let path = root.parse_path(file, Access::Read)?;
        if loaded.iter().any(|(known, _)| *known == path.to_string()) {
            continue;
        }
        let (table, size) = load_table(root, &path, left.min(root.max_file_bytes))?;
        left = left.saturating_sub(size);
        loaded.push((path.to_string(), table));
    }
    let names = unique_names(loaded.iter().map(|(path, _)| table_name(path)));
    let loaded = names.into_iter().zip(loaded);
    let described = loaded.map(|(name, (path, table))| {
        let columns = table.columns.iter().map(|column| column.name.clone());
        let described = QueryTable {
            name: name.clone(),
            path,
            columns: columns.collect(),
            records: table.rows.len(),
        };
        ((name, table), described)
    });
    Ok(described.unzip())
}

/// Converts a file path to a table name: `data/Sales 2026.csv` becomes `Sales_2026`.
fn table_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let name = stem.replace(|it: char| !it.is_alphanumeric() && it != '_', "_");
    let begins_with_digit = name.starts_with(|it: char| it.is_numeric());
    // SQLite reserves names with the prefix `sqlite_`.
    let is_reserved = name.to_lowercase().starts_with("sqlite_");
    if begins_with_digit || is_reserved {
        format!("t_{name}")
    } else {
        name
    }
}

fn to_tool_error(error: QueryError, tables: &[QueryTable]) -> ToolError {
    match error {
        QueryError::Database(error) => ToolError::Database(error),
        QueryError::Sql(_) => {
            let describe = |it: &QueryTable| format!("{} ({})", it.name, it.columns.join(", "));
            let tables: Vec<_> = tables.iter().map(describe).collect();
            ToolError::from(format!("{error} Available tables: {}.", tables.join("; ")))
        }
        error => ToolError::Refused(error.to_string()),
    }
}

fn build_output(result: QueryResult, tables: Vec<QueryTable>) -> ToolOutput<Output> {
    let columns = result.columns.join(", ");
    let mut text = match result.rows.len() {
        0 => format!("No rows. Columns: {columns}."),
        number => format!("{}, as lists of {columns}:", format_quantity(number, "row")),
    };
    for row in &result.rows {
        text.push('\n');
        text.push_str(&serde_json::to_string(row).unwrap_or_default());
    }
    if result.truncated {
        text.push_str("\nMore rows exist. Select fewer rows, or another order.");
    }
    let data = Output {
        columns: result.columns,
        rows: result.rows,
        truncated: result.truncated,
        tables,
    };
    ToolOutput { text, data }
}
