//! The beginning and the end of an instance.

use async_trait::async_trait;

use crate::{
    database::{Connection, values},
    error::Refusal,
    transaction::Transaction,
    writer::{Follows, Write},
};

/// A write that changes nothing: it fails where the database is locked, full or read-only.
pub(crate) struct Ping;

#[async_trait]
impl Write for Ping {
    type Answer = ();
    const WHAT: &'static str = "write";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        const TOUCH: &str = "UPDATE instances SET began_at = began_at WHERE id = $1";
        let me = tx.me;
        tx.execute(TOUCH, values![me]).await?;
        Ok(())
    }
}

/// Removes the instances that are dead.
///
/// On PostgreSQL, those that still have runs are left to whoever takes up one of these: a server that was started
/// again has lost the locks of all instances, and most of them will be back in a moment. Everybody sees
/// their runs as interrupted all the same.
pub(crate) struct Bury;

#[async_trait]
impl Write for Bury {
    type Answer = ();
    const WHAT: &'static str = "find the runs that were interrupted";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        // In one order, whoever does it.
        const ALL: &str = "SELECT id FROM instances WHERE id <> $1 ORDER BY id";
        const WITHOUT_RUNS: &str = "SELECT i.id FROM instances i WHERE i.id <> $1
            AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.instance = i.id) ORDER BY i.id";
        let others = match tx.connection {
            Connection::Sqlite(_) => ALL,
            Connection::Postgres(..) => WITHOUT_RUNS,
        };
        for row in tx.rows(others, values![tx.me]).await? {
            tx.is_alive(&row.text(0)?).await?;
        }
        Ok(())
    }
}

/// Gives up everything that this instance has.
pub(crate) struct Leave;

#[async_trait]
impl Write for Leave {
    type Answer = ();
    const WHAT: &'static str = "close";
    const ALWAYS: bool = true;

    fn follows_events(&self) -> Follows<'_> {
        Follows::All
    }

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        const FORGET: &str = "DELETE FROM instances WHERE id = $1";
        let me = tx.me.to_owned();
        tx.let_go(&me).await?;
        tx.execute(FORGET, values![&me]).await?;
        tx.removed.push(me);
        Ok(())
    }
}
