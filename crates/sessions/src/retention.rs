//! Removal of sessions and audit records that exceed the limits of age or number.

use std::time::Duration;

use switchboard_domain::SessionStoreError;

use crate::{Store, database::values, write::transaction::Transaction};

/// Limits on the age and number of stored sessions.
///
/// Sessions with an unfinished run are never removed. A limit of `None` is not applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Maximum time since the last write to a session. Sessions whose last write is older are
    /// removed, and older audit records too.
    pub unused_for: Option<Duration>,
    /// Maximum number of sessions of each principal. If a principal has more, the sessions with the
    /// oldest last write are removed.
    pub at_most: Option<u64>,
}

/// Maximum number of sessions that one transaction removes, so that other writes wait only briefly.
const BATCH: u64 = 50;
/// Maximum number of audit records that one transaction removes.
const AUDIT_BATCH: u64 = 1_000;

// The column `used_us` contains the time of the last use of a session. The outer `DELETE` compares
// it again, because another process may have used the session after the inner query selected it.
const DELETE_UNUSED: &str = "DELETE FROM sessions WHERE (key, used_us) IN (
    SELECT s.key, s.used_us FROM sessions s WHERE s.used_us < $1
    AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.session = s.key AND r.state <> 'finished')
    ORDER BY s.used_us LIMIT $2)";
const DELETE_BEYOND: &str = "DELETE FROM sessions WHERE (key, used_us) IN (
    SELECT ranked.key, ranked.used_us FROM (
        SELECT key, used_us, ROW_NUMBER() OVER
            (PARTITION BY tenant, person ORDER BY used_us DESC, key DESC) AS rank
        FROM sessions) AS ranked
    WHERE ranked.rank > $1 AND NOT EXISTS
        (SELECT 1 FROM runs r WHERE r.session = ranked.key AND r.state <> 'finished')
    LIMIT $2)";
const DELETE_AUDIT: &str = "DELETE FROM audit WHERE id IN (
    SELECT a.id FROM audit a WHERE a.at_us < $1 ORDER BY a.at_us LIMIT $2)";

impl Store {
    /// Removes the sessions and audit records of all principals that exceed the limits. Returns the
    /// number of removed sessions.
    pub async fn prune_sessions(&self, retention: &Retention) -> Result<u64, SessionStoreError> {
        let (mut removed, mut removed_records) = (0, 0);
        if let Some(age) = retention.unused_for {
            let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
            let oldest = move |tx: &Transaction<'_>| tx.now.microseconds.saturating_sub(age);
            removed += self.delete_rows(DELETE_UNUSED, BATCH, oldest).await?;
            removed_records = self.delete_rows(DELETE_AUDIT, AUDIT_BATCH, oldest).await?;
        }
        if let Some(most) = retention.at_most {
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            removed += self
                .delete_rows(DELETE_BEYOND, BATCH, move |_| most)
                .await?;
        }
        if removed + removed_records > 0 {
            // On SQLite, this write returns free pages of the file to the operating system. On
            // PostgreSQL, it does nothing.
            let shrunk = self.perform_write("shrink the file", async |tx| {
                Ok(tx.connection.shrink_file().await?)
            });
            shrunk.await?;
        }
        Ok(removed)
    }

    async fn delete_rows(
        &self,
        delete: &'static str,
        batch: u64,
        limit: impl Fn(&Transaction<'_>) -> i64 + Copy + Send + 'static,
    ) -> Result<u64, SessionStoreError> {
        let mut total = 0;
        loop {
            let removed = self.perform_write("remove old data", async move |tx| {
                let values = values![limit(tx), batch];
                Ok(tx.connection.execute(delete, values).await?)
            });
            let removed = removed.await?;
            total += removed;
            if removed < batch {
                return Ok(total);
            }
        }
    }
}
