//! Removal of old sessions and audit entries.

use std::time::Duration;

use async_trait::async_trait;
use switchboard_domain::SessionStoreError;

use crate::{
    Store,
    database::values,
    write::{
        queue::{EventOrder, Refusal, Write},
        transaction::Transaction,
    },
};

/// Limits of the age and number of sessions and audit entries.
///
/// A session with an unfinished run always stays. Without a limit, everything stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Maximum time since the last write to a session.
    pub unused_for: Option<Duration>,
    /// Maximum number of sessions of a principal. The most recently used ones stay.
    pub at_most: Option<u64>,
    /// Maximum age of an audit entry. Deleting a session does not delete its entries.
    pub audit_for: Option<Duration>,
}

/// The number of removed items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Sessions, with their messages, runs and events.
    pub sessions: u64,
    /// Audit entries.
    pub audit: u64,
}

/// Maximum number of sessions that one transaction removes, so that other writers wait briefly.
const SESSION_BATCH: i64 = 50;

/// Maximum number of audit entries that one transaction removes.
const AUDIT_BATCH: i64 = 2000;

impl Store {
    /// Removes the sessions and audit entries of all principals that exceed the limits.
    pub async fn prune(&self, retention: &Retention) -> Result<Pruned, SessionStoreError> {
        let mut pruned = Pruned::default();
        if let Some(age) = retention.unused_for {
            pruned.sessions += self.repeat(SESSION_BATCH, || Prune::Unused(age)).await?;
        }
        if let Some(most) = retention.at_most {
            pruned.sessions += self.repeat(SESSION_BATCH, || Prune::Beyond(most)).await?;
        }
        if let Some(age) = retention.audit_for {
            pruned.audit += self.repeat(AUDIT_BATCH, || Prune::Audit(age)).await?;
        }
        if pruned != Pruned::default() {
            self.queue().perform(Shrink).await?;
        }
        Ok(pruned)
    }

    async fn repeat(
        &self,
        batch: i64,
        prune: impl Fn() -> Prune,
    ) -> Result<u64, SessionStoreError> {
        let mut total = 0;
        loop {
            let removed = self.queue().perform(prune()).await?;
            total += removed;
            if removed < batch.unsigned_abs() {
                return Ok(total);
            }
        }
    }
}

enum Prune {
    Unused(Duration),
    Beyond(u64),
    Audit(Duration),
}

#[async_trait]
impl Write for Prune {
    type Output = u64;
    const OPERATION: &'static str = "remove old sessions and audit entries";

    fn event_order(&self) -> EventOrder<'_> {
        EventOrder::AfterAll
    }

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<u64, Refusal> {
        // Compares `used_us` again, because another process may use the session meanwhile.
        const UNUSED: &str = "DELETE FROM sessions WHERE (key, used_us) IN (
            SELECT s.key, s.used_us FROM sessions s WHERE s.used_us < $1
            AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.session = s.key AND r.state <> 'finished')
            ORDER BY s.used_us LIMIT $2)";
        const BEYOND: &str = "DELETE FROM sessions WHERE (key, used_us) IN (
            SELECT ranked.key, ranked.used_us FROM (
                SELECT key, used_us, ROW_NUMBER() OVER
                    (PARTITION BY tenant, person ORDER BY used_us DESC, key DESC) AS rank
                FROM sessions) AS ranked
            WHERE ranked.rank > $1 AND NOT EXISTS
                (SELECT 1 FROM runs r WHERE r.session = ranked.key AND r.state <> 'finished')
            LIMIT $2)";
        const AUDIT: &str = "DELETE FROM audit WHERE key IN
            (SELECT key FROM audit WHERE stored_us < $1 ORDER BY stored_us LIMIT $2)";
        let oldest = |age: &Duration| {
            let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
            tx.now.microseconds.saturating_sub(age)
        };
        let (sql, limit, batch) = match self {
            Self::Unused(age) => (UNUSED, oldest(age), SESSION_BATCH),
            Self::Beyond(most) => {
                let most = i64::try_from(*most).unwrap_or(i64::MAX);
                (BEYOND, most, SESSION_BATCH)
            }
            Self::Audit(age) => (AUDIT, oldest(age), AUDIT_BATCH),
        };
        Ok(tx.execute(sql, values![limit, batch]).await?)
    }
}

/// Makes a SQLite file smaller by its free pages. PostgreSQL does that without a request.
struct Shrink;

#[async_trait]
impl Write for Shrink {
    type Output = ();
    const OPERATION: &'static str = "shrink the file";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        tx.connection.shrink().await?;
        Ok(())
    }
}
