//! The start and the end of an instance.

use async_trait::async_trait;

use super::{
    queue::{EventOrder, Refusal, Write},
    transaction::Transaction,
};
use crate::database::{DatabaseKind, values};

/// A write that changes nothing. Fails if the database is locked, full or read-only.
pub(crate) struct Ping;

#[async_trait]
impl Write for Ping {
    type Output = ();
    const OPERATION: &'static str = "write";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        const TOUCH: &str = "UPDATE instances SET started_at = started_at WHERE id = $1";
        let own_id = tx.own_id;
        tx.execute(TOUCH, values![own_id]).await?;
        Ok(())
    }
}

/// Removes dead instances.
///
/// On PostgreSQL, instances with runs stay until another instance takes one of these runs. A server
/// that was restarted has lost the locks of all instances, and most of them acquire theirs again in
/// a moment. Readers see the runs as interrupted in any case.
pub(crate) struct RemoveDeadInstances;

#[async_trait]
impl Write for RemoveDeadInstances {
    type Output = ();
    const OPERATION: &'static str = "find interrupted runs";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        // All processes use the same order, which avoids deadlocks.
        const ALL: &str = "SELECT id FROM instances WHERE id <> $1 ORDER BY id";
        #[cfg(feature = "postgres")]
        const WITHOUT_RUNS: &str = "SELECT i.id FROM instances i WHERE i.id <> $1
            AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.instance = i.id) ORDER BY i.id";
        let others = match tx.connection.kind() {
            DatabaseKind::Sqlite => ALL,
            #[cfg(feature = "postgres")]
            DatabaseKind::Postgres => WITHOUT_RUNS,
        };
        for row in tx.rows(others, values![tx.own_id]).await? {
            tx.is_alive(&row.text(0)?).await?;
        }
        Ok(())
    }
}

/// Interrupts the runs of this instance and removes its row.
pub(crate) struct RemoveOwnInstance;

#[async_trait]
impl Write for RemoveOwnInstance {
    type Output = ();
    const OPERATION: &'static str = "close";
    const ALWAYS: bool = true;

    fn event_order(&self) -> EventOrder<'_> {
        EventOrder::AfterAll
    }

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        const REMOVE: &str = "DELETE FROM instances WHERE id = $1";
        let own_id = tx.own_id.to_owned();
        tx.interrupt_runs(&own_id).await?;
        tx.execute(REMOVE, values![&own_id]).await?;
        tx.removed_instances.push(own_id);
        Ok(())
    }
}
