//! The form of the tables, and how an older one becomes the newest.

use sqlx::Error;

use crate::{
    OpenError,
    database::{Connection, values},
};

/// Each entry makes its version (from 1) of the one before: of SQLite, of PostgreSQL. What was released stays as
/// it is; a change is a new entry.
const VERSIONS: [(&str, &str); 3] = [
    (
        include_str!("../schema/sqlite/1.sql"),
        include_str!("../schema/postgres/1.sql"),
    ),
    (
        include_str!("../schema/sqlite/2.sql"),
        include_str!("../schema/postgres/2.sql"),
    ),
    (
        include_str!("../schema/sqlite/3.sql"),
        include_str!("../schema/postgres/3.sql"),
    ),
];

/// Any number; whoever brings a schema up to date holds the advisory lock of this one.
const LOCK: &str = "SELECT pg_advisory_xact_lock(6007394287342)";

/// Brings the tables up to date, in one transaction. Two processes may do so at once.
pub(crate) async fn update(connection: &mut Connection) -> Result<(), OpenError> {
    match connection {
        Connection::Sqlite(_) => connection.run("BEGIN IMMEDIATE").await.map_err(failed)?,
        Connection::Postgres(..) => {
            connection.run("BEGIN").await.map_err(failed)?;
            connection.run(LOCK).await.map_err(failed)?;
        }
    }
    let result = update_within(connection).await;
    let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = connection.run(end).await.map_err(failed);
    result.and(ended)
}

async fn update_within(connection: &mut Connection) -> Result<(), OpenError> {
    let found = version(connection).await.map_err(failed)?;
    let known = i64::try_from(VERSIONS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(OpenError::Newer { found, known });
    }
    if found == known {
        return Ok(());
    }
    let missing = usize::try_from(found).unwrap_or(0);
    for (sqlite, postgres) in VERSIONS.iter().skip(missing) {
        let sql = match connection {
            Connection::Sqlite(_) => sqlite,
            Connection::Postgres(..) => postgres,
        };
        connection.run(sql).await.map_err(failed)?;
    }
    let set = "UPDATE switchboard_schema SET version = $1";
    connection
        .execute(set, values![known])
        .await
        .map_err(failed)?;
    Ok(())
}

/// 0 in a database that is new.
async fn version(connection: &mut Connection) -> Result<i64, Error> {
    if !is_there(connection).await? {
        connection
            .run("CREATE TABLE IF NOT EXISTS switchboard_schema (version BIGINT NOT NULL)")
            .await?;
    }
    let read = "SELECT version FROM switchboard_schema";
    if let Some(row) = connection.row(read, values![]).await? {
        return row.int(0);
    }
    connection
        .run("INSERT INTO switchboard_schema (version) VALUES (0)")
        .await?;
    Ok(0)
}

/// Whether a server has the tables, for a user that may not make any: PostgreSQL asks for that right also where
/// there is nothing to be made. In the schema where they would be made, not in one that is looked at after it.
async fn is_there(connection: &mut Connection) -> Result<bool, Error> {
    const FIND: &str =
        "SELECT to_regclass(quote_ident(current_schema()) || '.switchboard_schema')::text";
    match connection {
        Connection::Sqlite(_) => Ok(false),
        Connection::Postgres(..) => {
            let row = connection.row(FIND, values![]).await?;
            let found = row.map(|row| row.optional_text(0)).transpose()?;
            Ok(found.flatten().is_some())
        }
    }
}

fn failed(source: Error) -> OpenError {
    OpenError::Database {
        source: source.into(),
    }
}
