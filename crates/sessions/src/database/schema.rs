//! The tables of a store and their version.

use super::{Connection, DatabaseError, DatabaseKind, values};
use crate::error::OpenError;

/// The version of the tables in `schema/`. Tables of earlier forms have no `store_version`.
const VERSION: i64 = 1;

/// A store of any version has this table.
const CREATE_VERSION: &str = "CREATE TABLE store_version (version BIGINT NOT NULL)";

/// Creates the tables in a new database, and checks their version in another one.
///
/// Changes nothing if the check fails. Two processes may call this at the same time.
pub(crate) async fn prepare(connection: &mut dyn Connection) -> Result<(), OpenError> {
    connection.begin().await.map_err(open_failed)?;
    let result = prepare_in_transaction(connection).await;
    let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = connection.run(end).await.map_err(open_failed);
    result.and(ended)
}

async fn prepare_in_transaction(connection: &mut dyn Connection) -> Result<(), OpenError> {
    #[cfg(feature = "postgres")]
    if connection.kind() == DatabaseKind::Postgres {
        // Any number. Processes that prepare the same database wait for each other.
        let lock = "SELECT pg_advisory_xact_lock(6007394287342)";
        connection.run(lock).await.map_err(open_failed)?;
    }
    if has_table(connection, "store_version")
        .await
        .map_err(open_failed)?
    {
        let read = "SELECT version FROM store_version";
        let row = connection.row(read, values![]).await.map_err(open_failed)?;
        let found = row.map_or(Ok(0), |row| row.int(0)).map_err(open_failed)?;
        return match found {
            VERSION => Ok(()),
            _ => Err(OpenError::UnknownVersion {
                found,
                known: VERSION,
            }),
        };
    }
    if has_table(connection, "switchboard_schema")
        .await
        .map_err(open_failed)?
    {
        return Err(OpenError::EarlierForm);
    }
    create_tables(connection).await.map_err(open_failed)
}

async fn create_tables(connection: &mut dyn Connection) -> Result<(), DatabaseError> {
    let tables = match connection.kind() {
        DatabaseKind::Sqlite => include_str!("../../schema/sqlite.sql"),
        #[cfg(feature = "postgres")]
        DatabaseKind::Postgres => include_str!("../../schema/postgres.sql"),
    };
    connection.run(tables).await?;
    connection.run(CREATE_VERSION).await?;
    let insert = "INSERT INTO store_version (version) VALUES ($1)";
    connection.execute(insert, values![VERSION]).await?;
    Ok(())
}

async fn has_table(connection: &mut dyn Connection, name: &str) -> Result<bool, DatabaseError> {
    let find = match connection.kind() {
        DatabaseKind::Sqlite => "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = $1",
        // Searches only the schema for new tables, not the whole search path.
        #[cfg(feature = "postgres")]
        DatabaseKind::Postgres => {
            "SELECT relname::text FROM pg_class
                WHERE oid = to_regclass(quote_ident(current_schema()) || '.' || $1)"
        }
    };
    Ok(connection.row(find, values![name]).await?.is_some())
}

fn open_failed(source: DatabaseError) -> OpenError {
    OpenError::Database {
        source: source.into(),
    }
}
