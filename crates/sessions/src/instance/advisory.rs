//! Instances of PostgreSQL: an advisory lock each, on a connection of its own, which ends with the connection.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

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

use super::Claim;
use crate::database::{Connection, Readers, values};

/// How often the connection that holds the lock is asked for a sign of life.
const EVERY: Duration = Duration::from_secs(2);

/// How long it may take with that.
const PATIENCE: Duration = Duration::from_secs(5);

/// So that a server finds out within half a minute that a machine is gone, not within hours. Over a socket of the
/// machine itself these have no effect.
const KEEPALIVES: [(&str, &str); 3] = [
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "4"),
];

/// Whether the lock of the instance `i` is held by anybody.
macro_rules! held {
    () => {
        "EXISTS (SELECT 1 FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND ((l.classid::bigint << 32) | l.objid::bigint) = i.lock_key)"
    };
}

pub(crate) struct Locks {
    shared: Arc<Shared>,
    keeper: Mutex<Option<AbortHandle>>,
}

struct Shared {
    options: PgConnectOptions,
    claim: Mutex<Option<Claim>>,
    /// The connection that holds the lock; none while it is lost.
    holder: AsyncMutex<Option<PgConnection>>,
    doubt: Notify,
}

impl Locks {
    pub(crate) fn new(options: PgConnectOptions) -> Self {
        Self {
            shared: Arc::new(Shared {
                options,
                claim: Mutex::new(None),
                holder: AsyncMutex::new(None),
                doubt: Notify::new(),
            }),
            keeper: Mutex::new(None),
        }
    }

    pub(crate) async fn claim(&self) -> Result<Claim, sqlx::Error> {
        let claim = self.shared.claim_anew().await?;
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if keeper.is_none() {
            let shared = Arc::clone(&self.shared);
            *keeper = Some(tokio::spawn(async move { shared.keep().await }).abort_handle());
        }
        Ok(claim)
    }

    pub(crate) fn me(&self) -> Option<String> {
        self.shared.claim().as_ref().map(|claim| claim.id.clone())
    }

    pub(crate) fn doubt(&self) {
        self.shared.doubt.notify_one();
    }

    pub(crate) fn release(&self) {
        let keeper = self
            .keeper
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(keeper) = keeper {
            keeper.abort();
        }
        *self.shared.claim() = None;
        // If the keeper has it just now, it goes with the keeper.
        if let Ok(mut holder) = self.shared.holder.try_lock() {
            *holder = None;
        }
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        self.release();
    }
}

impl Shared {
    async fn claim_anew(&self) -> Result<Claim, sqlx::Error> {
        let mut holder = self.holder.lock().await;
        // A connection of its own: it must not hold the old lock any longer.
        *holder = None;
        let mut connection = self.connect().await?;
        loop {
            let id = Uuid::now_v7();
            // The random half, as a number that is not negative.
            let lock_key = i64::try_from(id.as_u64_pair().1 >> 1).unwrap_or(i64::MAX);
            if try_lock(&mut connection, lock_key).await? {
                let claim = Claim {
                    id: id.to_string(),
                    lock_key,
                };
                *self.claim() = Some(claim.clone());
                *holder = Some(connection);
                return Ok(claim);
            }
        }
    }

    /// Keeps the lock for as long as this is polled. When the connection is lost, the same lock is taken again
    /// on another one: whoever did not look in between has seen nothing, and whoever took this instance for dead
    /// has removed its row, which the writer finds out.
    async fn keep(&self) {
        loop {
            // Woken early where a write has failed.
            let _ = timeout(EVERY, self.doubt.notified()).await;
            let mut holder = self.holder.lock().await;
            if let Some(connection) = holder.as_mut() {
                let sign_of_life = sqlx::Connection::ping(connection);
                if matches!(timeout(PATIENCE, sign_of_life).await, Ok(Ok(()))) {
                    continue;
                }
            }
            *holder = None;
            let lock_key = self.claim().as_ref().map(|claim| claim.lock_key);
            let Some(lock_key) = lock_key else { continue };
            // If the server still has the old connection, the lock is free when it finds out about it.
            let again = async {
                let mut connection = self.connect().await?;
                let held = try_lock(&mut connection, lock_key).await?;
                Ok::<_, sqlx::Error>(held.then_some(connection))
            };
            if let Ok(Ok(Some(connection))) = timeout(PATIENCE, again).await {
                *holder = Some(connection);
            }
        }
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let options = self.options.clone().options(KEEPALIVES);
        // It is large, and stands in what every transaction is made of.
        Box::pin(options.connect()).await
    }

    fn claim(&self) -> MutexGuard<'_, Option<Claim>> {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn try_lock(connection: &mut PgConnection, lock_key: i64) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
        .bind(lock_key)
        .fetch_one(connection)
        .await
}

/// Every instance that is alive.
pub(crate) async fn alive(readers: &Readers) -> Result<HashSet<String>, sqlx::Error> {
    let alive = concat!("SELECT i.id FROM instances i WHERE ", held!());
    let rows = readers.rows(alive, values![]).await?;
    rows.iter().map(|row| row.text(0)).collect()
}

pub(crate) async fn remove_if_dead(
    connection: &mut Connection,
    id: &str,
) -> Result<bool, sqlx::Error> {
    let remove = concat!("DELETE FROM instances i WHERE i.id = $1 AND NOT ", held!());
    let removed = connection.execute(remove, values![id]).await?;
    Ok(removed > 0)
}
