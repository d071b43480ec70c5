//! Instance locks: PostgreSQL advisory locks, each on a connection that ends with its process.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use sqlx::{
    ConnectOptions as _,
    postgres::{PgConnectOptions, PgConnection},
};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    task::AbortHandle,
    time::timeout,
};
use uuid::Uuid;

use super::connection::database_error;
use crate::database::{
    Connection, Database, DatabaseError, InstanceClaim, InstanceLocks, lock_mutex, values,
};

/// Interval of checks whether the connection that holds the advisory lock still works.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum time of one check of the connection that holds the lock. An attempt to acquire a lost
/// lock again has the same maximum time.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// TCP settings with which the server detects a lost client machine within half a minute.
const KEEPALIVES: [(&str, &str); 3] = [
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "4"),
];

/// SQL condition that is true if a connection holds the advisory lock of an instance. `i` is the
/// row of the instance in the table `instances`.
macro_rules! is_locked {
    () => {
        "EXISTS (SELECT 1 FROM pg_locks l
            WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND ((l.classid::bigint << 32) | l.objid::bigint) = i.lock_key)"
    };
}

pub(super) struct AdvisoryLocks {
    shared: Arc<SharedLockState>,
    /// The task that checks the connection of the lock and, if it is lost, acquires the lock again.
    /// `None` before the first lock and after the release.
    keeper: Mutex<Option<AbortHandle>>,
}

struct SharedLockState {
    options: PgConnectOptions,
    claim: Mutex<Option<InstanceClaim>>,
    /// The connection that holds the lock of this instance. `None` while the connection is lost.
    holder: AsyncMutex<Option<PgConnection>>,
    check_soon: Notify,
}

impl AdvisoryLocks {
    pub(super) fn new(options: PgConnectOptions) -> Self {
        Self {
            shared: Arc::new(SharedLockState {
                options,
                claim: Mutex::new(None),
                holder: AsyncMutex::new(None),
                check_soon: Notify::new(),
            }),
            keeper: Mutex::new(None),
        }
    }
}

#[async_trait]
impl InstanceLocks for AdvisoryLocks {
    async fn acquire_new_lock(&self) -> Result<InstanceClaim, DatabaseError> {
        let claim = self
            .shared
            .acquire_new_advisory_lock()
            .await
            .map_err(database_error)?;
        let mut keeper = lock_mutex(&self.keeper);
        if keeper.is_none() {
            let shared = Arc::clone(&self.shared);
            *keeper =
                Some(tokio::spawn(async move { shared.keep_lock_held().await }).abort_handle());
        }
        Ok(claim)
    }

    fn own_id(&self) -> Option<String> {
        let claim = lock_mutex(&self.shared.claim);
        claim.as_ref().map(|claim| claim.id.clone())
    }

    async fn is_dead(&self, database: &dyn Database, id: &str) -> Result<bool, DatabaseError> {
        const FIND: &str = concat!(
            "SELECT i.id FROM instances i WHERE i.id = $1 AND ",
            is_locked!()
        );
        Ok(database.read_rows(FIND, values![id]).await?.is_empty())
    }

    async fn remove_dead_instance(
        &self,
        connection: &mut dyn Connection,
        id: &str,
    ) -> Result<bool, DatabaseError> {
        const REMOVE: &str = concat!(
            "DELETE FROM instances i WHERE i.id = $1 AND NOT ",
            is_locked!()
        );
        Ok(connection.execute(REMOVE, values![id]).await? > 0)
    }

    fn request_lock_check(&self) {
        self.shared.check_soon.notify_one();
    }

    fn release_lock(&self) {
        if let Some(keeper) = lock_mutex(&self.keeper).take() {
            keeper.abort();
        }
        *lock_mutex(&self.shared.claim) = None;
        // `try_lock` fails if the aborted task still uses the connection. Then the connection is
        // closed when the task and this value have been dropped.
        if let Ok(mut holder) = self.shared.holder.try_lock() {
            *holder = None;
        }
    }
}

impl Drop for AdvisoryLocks {
    fn drop(&mut self) {
        self.release_lock();
    }
}

impl SharedLockState {
    async fn acquire_new_advisory_lock(&self) -> Result<InstanceClaim, sqlx::Error> {
        let mut holder = self.holder.lock().await;
        // Closing the connection releases the old lock.
        *holder = None;
        let mut connection = self.connect().await?;
        loop {
            let id = Uuid::now_v7();
            // The lock key is the random half of the id, as a non-negative number.
            let lock_key = i64::try_from(id.as_u64_pair().1 >> 1).unwrap_or(i64::MAX);
            if try_lock(&mut connection, lock_key).await? {
                let claim = InstanceClaim {
                    id: id.to_string(),
                    lock_key,
                };
                *lock_mutex(&self.claim) = Some(claim.clone());
                *holder = Some(connection);
                return Ok(claim);
            }
        }
    }

    /// Checks the connection that holds the lock again and again, until this future is dropped.
    ///
    /// If the connection is lost, acquires the same lock on a new connection. Meanwhile, another
    /// instance may find this instance dead and remove its row from `instances`. The writer thread
    /// detects the missing row in its next transaction.
    async fn keep_lock_held(&self) {
        loop {
            let _ = timeout(CHECK_INTERVAL, self.check_soon.notified()).await;
            let mut holder = self.holder.lock().await;
            if let Some(connection) = holder.as_mut() {
                let ping = sqlx::Connection::ping(connection);
                if matches!(timeout(CHECK_TIMEOUT, ping).await, Ok(Ok(()))) {
                    continue;
                }
            }
            *holder = None;
            let lock_key = lock_mutex(&self.claim).as_ref().map(|claim| claim.lock_key);
            let Some(lock_key) = lock_key else { continue };
            // The server releases the lock of the lost connection only when it detects the loss.
            // `relock` fails until then.
            let relock = async {
                let mut connection = self.connect().await?;
                let is_locked = try_lock(&mut connection, lock_key).await?;
                Ok::<_, sqlx::Error>(is_locked.then_some(connection))
            };
            if let Ok(Ok(Some(connection))) = timeout(CHECK_TIMEOUT, relock).await {
                *holder = Some(connection);
            }
        }
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let options = self.options.clone().options(KEEPALIVES);
        // The future is boxed, because it is large and part of the future of every transaction.
        Box::pin(options.connect()).await
    }
}

async fn try_lock(connection: &mut PgConnection, lock_key: i64) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
        .bind(lock_key)
        .fetch_one(connection)
        .await
}
