//! The SQLite databases behind bundled servers: in memory, or in a file that is created and filled
//! once and is told from other programs' files.

use std::{path::Path, time::Duration};

use sqlx::{
    AssertSqlSafe, SqlitePool, raw_sql,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use crate::{DataProblem, ServerError};

/// How long a statement waits for another process that holds the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a server keeps in its database.
pub(crate) struct Layout {
    /// `PRAGMA application_id` of its files, which `schema` sets.
    pub(crate) application_id: i64,
    /// `PRAGMA user_version` of this layout, which `schema` sets.
    pub(crate) version: i64,
    /// Creates the tables.
    pub(crate) schema: &'static str,
    /// Fills them.
    pub(crate) seed: &'static str,
}

/// Opens the database, and creates and fills it if it is new.
pub(crate) async fn open(layout: &Layout, file: Option<&Path>) -> Result<SqlitePool, ServerError> {
    match file {
        None => open_with(layout, SqliteConnectOptions::new().in_memory(true))
            .await
            .map_err(|problem| ServerError::Memory {
                reason: problem.to_string(),
            }),
        Some(path) => open_file(layout, path)
            .await
            .map_err(|problem| ServerError::Data {
                path: path.to_owned(),
                problem,
            }),
    }
}

async fn open_file(layout: &Layout, path: &Path) -> Result<SqlitePool, DataProblem> {
    // SQLite says "unable to open database file" to both.
    if path.is_dir() {
        return Err(DataProblem::Folder);
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    if let Some(folder) = folder
        && !folder.is_dir()
    {
        return Err(DataProblem::NoFolder {
            folder: folder.to_owned(),
        });
    }
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .busy_timeout(PATIENCE);
    open_with(layout, options).await
}

async fn open_with(
    layout: &Layout,
    options: SqliteConnectOptions,
) -> Result<SqlitePool, DataProblem> {
    // One connection, kept for good: a database in memory lives and dies with its connection, and
    // SQLite writes one transaction at a time anyway.
    let pool = SqlitePoolOptions::new()
        .min_connections(1)
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .connect_with(options)
        .await?;
    prepare(layout, &pool).await?;
    Ok(pool)
}

async fn prepare(layout: &Layout, pool: &SqlitePool) -> Result<(), DataProblem> {
    // Takes the write lock before looking: two servers that start on one new file must not both
    // fill it. And a file that cannot be written is better refused now than at the first ticket.
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    let (application_id, version): (i64, i64) = sqlx::query_as(
        "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version",
    )
    .fetch_one(&mut *transaction)
    .await?;
    if application_id == layout.application_id {
        if version > layout.version {
            return Err(DataProblem::Newer {
                found: version,
                known: layout.version,
            });
        }
        // SQLite opens a protected file for reading without a word, so only a write shows it.
        let same = AssertSqlSafe(format!("PRAGMA user_version = {version}"));
        raw_sql(same).execute(&mut *transaction).await?;
        transaction.commit().await?;
        return Ok(());
    }
    let tables: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM sqlite_schema")
        .fetch_one(&mut *transaction)
        .await?;
    if application_id != 0 || version != 0 || tables != 0 {
        return Err(DataProblem::Foreign);
    }
    raw_sql(layout.schema).execute(&mut *transaction).await?;
    raw_sql(layout.seed).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// Whether another process holds the file.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(5 | 6))
}

/// SQLite's result code without the details in its upper bits, see <https://sqlite.org/rescode.html>.
fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code = error.as_database_error()?.code()?;
    code.parse::<i32>().ok().map(|code| code & 0xff)
}

impl From<sqlx::Error> for DataProblem {
    fn from(error: sqlx::Error) -> Self {
        const PERM: i32 = 3;
        const BUSY: i32 = 5;
        const LOCKED: i32 = 6;
        const READONLY: i32 = 8;
        const CANTOPEN: i32 = 14;
        const AUTH: i32 = 23;
        const NOTADB: i32 = 26;
        match primary_code(&error) {
            Some(NOTADB) => Self::NotADatabase,
            // A folder that is missing has been told apart before.
            Some(PERM | READONLY | CANTOPEN | AUTH) => Self::NotWritable,
            Some(BUSY | LOCKED) => Self::Busy,
            _ => Self::Other {
                reason: error.to_string(),
            },
        }
    }
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
