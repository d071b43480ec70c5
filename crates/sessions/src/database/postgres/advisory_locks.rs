//! Locks of instances as advisory locks, each on its own connection, which ends with the process.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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

use super::connection::failed;
use crate::database::{Connection, Database, DatabaseError, InstanceClaim, InstanceLocks, values};

/// Interval of checks of the connection that holds the lock.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum time of one check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Lets a server notice a lost machine within half a minute. Has no effect on a local socket.
const KEEPALIVES: [(&str, &str); 3] = [
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "4"),
];

/// Condition in SQL that some connection holds the lock of instance `i`.
macro_rules! is_locked {
    () => {
        "EXISTS (SELECT 1 FROM pg_locks l
            WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND ((l.classid::bigint << 32) | l.objid::bigint) = i.lock_key)"
    };
}

pub(super) struct AdvisoryLocks {
    shared: Arc<Shared>,
    /// The task that keeps the lock.
    keeper: Mutex<Option<AbortHandle>>,
}

struct Shared {
    options: PgConnectOptions,
    claim: Mutex<Option<InstanceClaim>>,
    /// The connection that holds the lock. `None` while it is lost.
    holder: AsyncMutex<Option<PgConnection>>,
    check_soon: Notify,
}

impl AdvisoryLocks {
    pub(super) fn new(options: PgConnectOptions) -> Self {
        Self {
            shared: Arc::new(Shared {
                options,
                claim: Mutex::new(None),
                holder: AsyncMutex::new(None),
                check_soon: Notify::new(),
            }),
            keeper: Mutex::new(None),
        }
    }

    fn keeper(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl InstanceLocks for AdvisoryLocks {
    async fn claim(&self) -> Result<InstanceClaim, DatabaseError> {
        let claim = self.shared.claim_new().await.map_err(failed)?;
        let mut keeper = self.keeper();
        if keeper.is_none() {
            let shared = Arc::clone(&self.shared);
            *keeper = Some(tokio::spawn(async move { shared.keep().await }).abort_handle());
        }
        Ok(claim)
    }

    fn own_id(&self) -> Option<String> {
        self.shared.claim().as_ref().map(|claim| claim.id.clone())
    }

    async fn is_dead(&self, database: &dyn Database, id: &str) -> Result<bool, DatabaseError> {
        const FIND: &str = concat!(
            "SELECT i.id FROM instances i WHERE i.id = $1 AND ",
            is_locked!()
        );
        Ok(database.read(FIND, values![id]).await?.is_empty())
    }

    async fn remove_if_dead(
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

    fn check_soon(&self) {
        self.shared.check_soon.notify_one();
    }

    fn release(&self) {
        if let Some(keeper) = self.keeper().take() {
            keeper.abort();
        }
        *self.shared.claim() = None;
        // If the keeper uses the connection now, it ends with the keeper.
        if let Ok(mut holder) = self.shared.holder.try_lock() {
            *holder = None;
        }
    }
}

impl Drop for AdvisoryLocks {
    fn drop(&mut self) {
        self.release();
    }
}

impl Shared {
    async fn claim_new(&self) -> Result<InstanceClaim, sqlx::Error> {
        let mut holder = self.holder.lock().await;
        // Releases the old lock.
        *holder = None;
        let mut connection = self.connect().await?;
        loop {
            let id = Uuid::now_v7();
            // The random half of the id, as a number that is not negative.
            let lock_key = i64::try_from(id.as_u64_pair().1 >> 1).unwrap_or(i64::MAX);
            if try_lock(&mut connection, lock_key).await? {
                let claim = InstanceClaim {
                    id: id.to_string(),
                    lock_key,
                };
                *self.claim() = Some(claim.clone());
                *holder = Some(connection);
                return Ok(claim);
            }
        }
    }

    /// Keeps the lock for as long as this is polled.
    ///
    /// When the connection is lost, acquires the same lock on a new one. If another instance found
    /// this one dead meanwhile, it has removed its row, and the writer notices that.
    async fn keep(&self) {
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
            let lock_key = self.claim().as_ref().map(|claim| claim.lock_key);
            let Some(lock_key) = lock_key else { continue };
            // The server may still have the old connection. The lock is free when it notices.
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
        // Boxed, because the future is large and part of the future of every transaction.
        Box::pin(options.connect()).await
    }

    fn claim(&self) -> MutexGuard<'_, Option<InstanceClaim>> {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn try_lock(connection: &mut PgConnection, lock_key: i64) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
        .bind(lock_key)
        .fetch_one(connection)
        .await
}
