//! Sessions and their messages.

use async_trait::async_trait;
use switchboard_domain::{Principal, Session, SessionId, SessionStoreError};

use super::{
    queue::{EventOrder, Refusal, Write},
    transaction::Transaction,
};
use crate::database::values;

pub(crate) struct Create {
    pub(crate) owner: Principal,
    pub(crate) session: Session,
}

#[async_trait]
impl Write for Create {
    type Output = ();
    const OPERATION: &'static str = "create a session";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        create(tx, &self.owner, &self.session, 0).await.map(|_| ())
    }
}

/// Creates a session that counts `messages` messages, and returns its key.
pub(crate) async fn create(
    tx: &mut Transaction<'_>,
    owner: &Principal,
    session: &Session,
    messages: usize,
) -> Result<i64, Refusal> {
    const ADD: &str = "INSERT INTO sessions
        (id, tenant, person, title, created_at, created_us, used_us, messages)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING RETURNING key";
    let values = values![
        &session.id.0,
        &owner.tenant,
        &owner.user,
        &session.title,
        &session.created_at,
        tx.now.microseconds_of(&session.created_at),
        tx.now.microseconds,
        messages as u64,
    ];
    let Some(row) = tx.row(ADD, values).await? else {
        let id = session.id.clone();
        return Err(SessionStoreError::Exists { id }.into());
    };
    Ok(row.int(0)?)
}

pub(crate) struct Append {
    pub(crate) owner: Principal,
    pub(crate) id: SessionId,
    pub(crate) after: u64,
    pub(crate) messages: Vec<String>,
}

#[async_trait]
impl Write for Append {
    type Output = u64;
    const OPERATION: &'static str = "append messages";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<u64, Refusal> {
        let Some(session) = tx.session(&self.owner, &self.id).await? else {
            return Err(not_found(&self.id));
        };
        if let Some(run) = tx.unfinished(session.key).await? {
            return Err(busy(&self.id, run.id));
        }
        if session.messages != self.after {
            return Err(conflict(&self.id, self.after, session.messages));
        }
        Ok(tx.add_messages(session, &self.messages).await?)
    }
}

pub(crate) struct Rename {
    pub(crate) owner: Principal,
    pub(crate) id: SessionId,
    pub(crate) title: String,
}

#[async_trait]
impl Write for Rename {
    type Output = ();
    const OPERATION: &'static str = "rename a session";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        const RENAME: &str = "UPDATE sessions SET title = $2 WHERE key = $1";
        let Some(session) = tx.session(&self.owner, &self.id).await? else {
            return Err(not_found(&self.id));
        };
        tx.execute(RENAME, values![session.key, &self.title])
            .await?;
        Ok(())
    }
}

pub(crate) struct Delete {
    pub(crate) owner: Principal,
    pub(crate) id: SessionId,
}

#[async_trait]
impl Write for Delete {
    type Output = ();
    const OPERATION: &'static str = "delete a session";

    fn event_order(&self) -> EventOrder<'_> {
        EventOrder::AfterAll
    }

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        const DELETE: &str = "DELETE FROM sessions WHERE key = $1";
        let Some(session) = tx.session(&self.owner, &self.id).await? else {
            return Ok(());
        };
        if let Some(run) = tx.unfinished(session.key).await?
            && let Some(instance) = run.instance
            && tx.is_alive(&instance).await?
        {
            return Err(busy(&self.id, run.id));
        }
        tx.execute(DELETE, values![session.key]).await?;
        Ok(())
    }
}

pub(crate) fn not_found(id: &SessionId) -> Refusal {
    Refusal::Refused(SessionStoreError::NotFound { id: id.clone() })
}

pub(crate) fn busy(session: &SessionId, run: String) -> Refusal {
    let session = session.clone();
    Refusal::Refused(SessionStoreError::Busy { session, run })
}

pub(crate) fn conflict(id: &SessionId, expected: u64, actual: u64) -> Refusal {
    Refusal::Refused(SessionStoreError::Conflict {
        id: id.clone(),
        expected,
        actual,
    })
}
