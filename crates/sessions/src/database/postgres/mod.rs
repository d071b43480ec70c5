//! Stores on a PostgreSQL server.

mod advisory_locks;
mod connection;

use std::{env, fmt, str::FromStr as _, time::Duration};

use async_trait::async_trait;
use sqlx::{
    ConnectOptions as _,
    postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode},
};
use tokio::time::timeout;

use self::{
    advisory_locks::AdvisoryLocks,
    connection::{PostgresConnection, arguments, failed, row, with_timeout},
};
use super::{Connection, Database, DatabaseError, FailureKind, InstanceLocks, Row, Value};
use crate::error::OpenError;

/// Maximum number of connections that read. A server has 100 connections by default for all its
/// clients.
const MAX_READERS: u32 = 8;

/// Maximum time to open a connection, and to wait for a connection that reads.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time to end a transaction or a connection. Dropping the connection ends it too.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A database of a server.
pub(crate) struct Postgres {
    options: PgConnectOptions,
    /// Maximum time of one statement or transaction. A network may break without a notice.
    timeout: Duration,
    readers: PgPool,
    locks: AdvisoryLocks,
}

/// Shows nothing of the URL, which may contain a password.
impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}

impl Postgres {
    pub(super) fn new(url: &str, timeout: Duration) -> Result<Self, OpenError> {
        // The error of the library may quote a part of the URL.
        let options = PgConnectOptions::from_str(url).map_err(|_| OpenError::InvalidUrl)?;
        let mut options = checking_certificates(options, url).disable_statement_logging();
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

    async fn open(&self) -> Result<PostgresConnection, DatabaseError> {
        // Boxed, because the future is large and part of the future of every transaction.
        let connecting = Box::pin(self.options.connect());
        let connection = with_timeout(CONNECT_TIMEOUT.min(self.timeout), connecting).await?;
        Ok(PostgresConnection::new(connection, self.timeout))
    }
}

#[async_trait]
impl Database for Postgres {
    async fn connect(&self) -> Result<Box<dyn Connection>, DatabaseError> {
        Ok(Box::new(self.open().await?))
    }

    async fn read(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Row>, DatabaseError> {
        if values.iter().any(Value::cannot_be_stored) {
            return Ok(Vec::new());
        }
        let arguments = arguments(values)?;
        let mut connection = self.readers.acquire().await.map_err(failed)?;
        let fetching = sqlx::query_with(sql, arguments).fetch_all(&mut *connection);
        let rows = with_timeout(self.timeout, fetching).await;
        if matches!(&rows, Err(error) if error.is(FailureKind::ConnectionLost)) {
            // No other read should wait for this connection.
            drop(connection.detach());
        }
        rows?.iter().map(row).collect()
    }

    async fn snapshot(&self) -> Result<Box<dyn Connection>, DatabaseError> {
        let mut connection = self.open().await?;
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        connection.run(begin).await?;
        Ok(Box::new(connection))
    }

    async fn close(&self) {
        // Waits for the connections in use.
        let _ = timeout(CLOSE_TIMEOUT, self.readers.close()).await;
    }

    fn transaction_timeout(&self) -> Duration {
        self.timeout
    }

    fn locks(&self) -> &dyn InstanceLocks {
        &self.locks
    }
}

/// Makes `require` check the certificate if the user names one, as PostgreSQL's own clients do.
fn checking_certificates(options: PgConnectOptions, url: &str) -> PgConnectOptions {
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
