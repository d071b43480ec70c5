//! Stores on a PostgreSQL server.

mod advisory_locks;
mod connection;

use std::{env, str::FromStr as _, time::Duration};

use async_trait::async_trait;
use sqlx::{
    ConnectOptions as _,
    postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode},
};
use tokio::time::timeout;

use self::{
    advisory_locks::AdvisoryLocks,
    connection::{PostgresConnection, convert_row, database_error, to_pg_arguments, with_timeout},
};
use super::{Connection, Database, DatabaseError, FailureKind, InstanceLocks, Row, Value};
use crate::error::StoreOpenError;

/// Maximum number of connections for reading. A server allows 100 connections by default for all
/// its clients.
const MAX_READERS: u32 = 8;

/// Maximum time to open a connection. A read also waits at most for this time for a free
/// connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time to roll back or close before the connection is dropped instead.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A database on a PostgreSQL server. Its `Debug` output omits the connection options, because they
/// may contain a password.
#[derive(derive_more::Debug)]
#[debug("Postgres {{ .. }}")]
pub(crate) struct Postgres {
    options: PgConnectOptions,
    /// Maximum time of one statement or transaction. The limit is needed, because a broken network
    /// may report no error.
    timeout: Duration,
    readers: PgPool,
    locks: AdvisoryLocks,
}

impl Postgres {
    pub(super) fn new(url: &str, timeout: Duration) -> Result<Self, StoreOpenError> {
        // The error of `sqlx` is dropped, because it may quote a part of the URL with a password.
        let options = PgConnectOptions::from_str(url).map_err(|_| StoreOpenError::InvalidUrl)?;
        let mut options = enable_certificate_check(options, url).disable_statement_logging();
        if options.get_application_name().is_none() {
            options = options.application_name("switchboard");
        }
        let readers = PgPoolOptions::new()
            .max_connections(MAX_READERS)
            .acquire_timeout(CONNECT_TIMEOUT.min(timeout))
            .connect_lazy_with(options.clone());
        Ok(Self {
            locks: AdvisoryLocks::new(options.clone()),
            options,
            timeout,
            readers,
        })
    }

    async fn open_connection(&self) -> Result<PostgresConnection, DatabaseError> {
        // The future is boxed, because it is large and part of the future of every transaction.
        let connecting = Box::pin(self.options.connect());
        let connection = with_timeout(CONNECT_TIMEOUT.min(self.timeout), connecting).await?;
        Ok(PostgresConnection {
            connection,
            timeout: self.timeout,
        })
    }
}

#[async_trait]
impl Database for Postgres {
    async fn connect(&self) -> Result<Box<dyn Connection>, DatabaseError> {
        Ok(Box::new(self.open_connection().await?))
    }

    async fn read_rows(
        &self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError> {
        if values.iter().any(Value::contains_nul) {
            return Ok(Vec::new());
        }
        let arguments = to_pg_arguments(values)?;
        let mut connection = self.readers.acquire().await.map_err(database_error)?;
        let fetching = sqlx::query_with(sql, arguments).fetch_all(&mut *connection);
        let rows = with_timeout(self.timeout, fetching).await;
        if matches!(&rows, Err(error) if error.kind == FailureKind::ConnectionLost) {
            // The lost connection is removed from the pool, so that no other read uses it.
            drop(connection.detach());
        }
        rows?.iter().map(convert_row).collect()
    }

    async fn open_snapshot(&self) -> Result<Box<dyn Connection>, DatabaseError> {
        let mut connection = self.open_connection().await?;
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        connection.execute_batch(begin).await?;
        Ok(Box::new(connection))
    }

    async fn close(&self) {
        // Closing the pool waits for reads in progress, so it needs a time limit.
        let _ = timeout(CLOSE_TIMEOUT, self.readers.close()).await;
    }

    fn transaction_timeout(&self) -> Duration {
        self.timeout
    }

    fn instance_locks(&self) -> &dyn InstanceLocks {
        &self.locks
    }
}

/// Changes the TLS mode `require` to `verify-ca` if a root certificate is set, as `libpq` does.
fn enable_certificate_check(options: PgConnectOptions, url: &str) -> PgConnectOptions {
    const NAMES: [&str; 3] = ["sslrootcert", "ssl-root-cert", "ssl-ca"];
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let keys = query.split('&').map(|pair| pair.split('=').next());
    let names_certificate = keys.flatten().any(|key| NAMES.contains(&key));
    let is_unchecked = matches!(options.get_ssl_mode(), PgSslMode::Require);
    if is_unchecked && (names_certificate || env::var_os("PGSSLROOTCERT").is_some()) {
        options.ssl_mode(PgSslMode::VerifyCa)
    } else {
        options
    }
}
