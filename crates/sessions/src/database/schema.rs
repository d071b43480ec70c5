//! Creation of the tables of a session store, and the check of their version.

use super::{Connection, DatabaseError, DatabaseKind, values};
use crate::error::StoreOpenError;

/// Version of the tables in `schema/`. Databases before version 1 have no table `store_version`.
const VERSION: i64 = 3;

/// SQL that creates the tables that version 2 and each later version add to the version before.
const UPDATES: [&str; 2] = [
    include_str!("../../schema/version_2.sql"),
    include_str!("../../schema/version_3.sql"),
];

/// SQL that creates the table with the version number of the other tables. Every database since
/// version 1 has this table.
const CREATE_VERSION: &str = "CREATE TABLE store_version (version BIGINT NOT NULL)";

/// Creates the tables in a new database. Checks their version in an existing one.
///
/// Changes nothing if the check fails. Two processes may call this at the same time.
pub(crate) async fn prepare_tables(connection: &mut dyn Connection) -> Result<(), StoreOpenError> {
    connection.begin().await?;
    let result = create_or_check_tables(connection).await;
    let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = connection.execute_batch(end).await;
    result.and(ended.map_err(StoreOpenError::from))
}

async fn create_or_check_tables(connection: &mut dyn Connection) -> Result<(), StoreOpenError> {
    #[cfg(feature = "postgres")]
    if connection.database_kind() == DatabaseKind::Postgres {
        // Only one process at a time prepares a database. The others wait for this advisory lock,
        // whose number is arbitrary.
        let lock = "SELECT pg_advisory_xact_lock(6007394287342)";
        connection.execute_batch(lock).await?;
    }
    if has_table(connection, "store_version").await? {
        let read = "SELECT version FROM store_version";
        let row = connection.query_row(read, values![]).await?;
        let found = row.map_or(Ok(0), |row| row.read_int(0))?;
        let done = usize::try_from(found.saturating_sub(1)).ok();
        let updates = done.and_then(|done| UPDATES.get(done..));
        let updates = updates.ok_or(StoreOpenError::UnknownVersion {
            found,
            known: VERSION,
        })?;
        if !updates.is_empty() {
            for update in updates {
                connection.execute_batch(update).await?;
            }
            let update = "UPDATE store_version SET version = $1";
            connection.execute(update, values![VERSION]).await?;
        }
        return Ok(());
    }
    if has_table(connection, "switchboard_schema").await? {
        return Err(StoreOpenError::EarlierForm);
    }
    Ok(create_tables(connection).await?)
}

async fn create_tables(connection: &mut dyn Connection) -> Result<(), DatabaseError> {
    let tables = match connection.database_kind() {
        DatabaseKind::Sqlite => include_str!("../../schema/sqlite.sql"),
        #[cfg(feature = "postgres")]
        DatabaseKind::Postgres => include_str!("../../schema/postgres.sql"),
    };
    connection.execute_batch(tables).await?;
    for update in UPDATES {
        connection.execute_batch(update).await?;
    }
    connection.execute_batch(CREATE_VERSION).await?;
    let insert = "INSERT INTO store_version (version) VALUES ($1)";
    connection.execute(insert, values![VERSION]).await?;
    Ok(())
}

async fn has_table(connection: &mut dyn Connection, name: &str) -> Result<bool, DatabaseError> {
    let find = match connection.database_kind() {
        DatabaseKind::Sqlite => "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = $1",
        // Only the schema in which tables would be created is searched, not the whole search path.
        #[cfg(feature = "postgres")]
        DatabaseKind::Postgres => {
            "SELECT relname::text FROM pg_class
                WHERE oid = to_regclass(quote_ident(current_schema()) || '.' || $1)"
        }
    };
    Ok(connection.query_row(find, values![name]).await?.is_some())
}

impl From<DatabaseError> for StoreOpenError {
    fn from(error: DatabaseError) -> Self {
        let source = error.into();
        Self::Database { source }
    }
}
