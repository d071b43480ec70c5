//! What is forgotten after a while.

use std::time::Duration;

use async_trait::async_trait;
use switchboard_domain::SessionStoreError;

use crate::{
    Store,
    database::values,
    error::Refusal,
    transaction::Transaction,
    writer::{Follows, Write},
};

/// What is kept, and for how long. A session with a run that is not over is kept in any case, and without a
/// limit everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Sessions that nobody wrote to for so long go.
    pub unused_for: Option<Duration>,
    /// Of each principal, only so many sessions stay: those that were used last.
    pub at_most: Option<u64>,
    /// Entries of the audit go after so long. They do not go with their session.
    pub audit_for: Option<Duration>,
}

/// How much was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Sessions, with their messages, runs and events.
    pub sessions: u64,
    /// Entries of the audit.
    pub audit: u64,
}

/// How many sessions and how many entries go in one transaction, so that others need not wait for long.
const SESSIONS: i64 = 50;
const ENTRIES: i64 = 2000;

impl Store {
    /// Forgets what need not be kept any more, of all principals.
    pub async fn prune(&self, retention: &Retention) -> Result<Pruned, SessionStoreError> {
        let mut pruned = Pruned::default();
        if let Some(age) = retention.unused_for {
            pruned.sessions += self.repeat(SESSIONS, || Prune::Unused(age)).await?;
        }
        if let Some(most) = retention.at_most {
            pruned.sessions += self.repeat(SESSIONS, || Prune::Beyond(most)).await?;
        }
        if let Some(age) = retention.audit_for {
            pruned.audit += self.repeat(ENTRIES, || Prune::Audit(age)).await?;
        }
        if pruned != Pruned::default() {
            self.queue().perform(GiveBack).await?;
        }
        Ok(pruned)
    }

    async fn repeat(
        &self,
        slice: i64,
        prune: impl Fn() -> Prune,
    ) -> Result<u64, SessionStoreError> {
        let mut total = 0;
        loop {
            let removed = self.queue().perform(prune()).await?;
            total += removed;
            if removed < slice.unsigned_abs() {
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
    type Answer = u64;
    const WHAT: &'static str = "forget what is old";

    fn follows_events(&self) -> Follows<'_> {
        Follows::All
    }

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<u64, Refusal> {
        // `used_us` again: a session that another process uses meanwhile is none of these any more.
        const UNUSED: &str = "DELETE FROM sessions WHERE (key, used_us) IN (
            SELECT s.key, s.used_us FROM sessions s WHERE s.tenant IS NOT NULL AND s.used_us < $1
            AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.session = s.key AND r.state <> 'finished')
            ORDER BY s.used_us LIMIT $2)";
        const BEYOND: &str = "DELETE FROM sessions WHERE (key, used_us) IN (
            SELECT ranked.key, ranked.used_us FROM (
                SELECT key, used_us, ROW_NUMBER() OVER
                    (PARTITION BY tenant, person ORDER BY used_us DESC, key DESC) AS place
                FROM sessions WHERE tenant IS NOT NULL) AS ranked
            WHERE ranked.place > $1 AND NOT EXISTS
                (SELECT 1 FROM runs r WHERE r.session = ranked.key AND r.state <> 'finished')
            LIMIT $2)";
        const AUDIT: &str = "DELETE FROM audit WHERE key IN
            (SELECT key FROM audit WHERE stored_us < $1 ORDER BY stored_us LIMIT $2)";
        let before = |age: &Duration| {
            let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
            tx.now.microseconds.saturating_sub(age)
        };
        let (sql, limit, slice) = match self {
            Self::Unused(age) => (UNUSED, before(age), SESSIONS),
            Self::Beyond(most) => {
                let most = i64::try_from(*most).unwrap_or(i64::MAX);
                (BEYOND, most, SESSIONS)
            }
            Self::Audit(age) => (AUDIT, before(age), ENTRIES),
        };
        Ok(tx.execute(sql, values![limit, slice]).await?)
    }
}

/// Makes the file of SQLite smaller by the pages that are free now. PostgreSQL does that by itself.
struct GiveBack;

#[async_trait]
impl Write for GiveBack {
    type Answer = ();
    const WHAT: &'static str = "make the file smaller";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        tx.connection.give_back()?;
        Ok(())
    }
}
