//! Implementation of `SessionStore` for `Store`.

use std::sync::Arc;

use async_trait::async_trait;
use switchboard_domain::{
    IdKey, Message, Principal, Session, SessionId, SessionStore, SessionStoreError,
};
use uuid::Uuid;

use crate::{
    Store,
    database::{DatabaseError, Row, values},
    json_limits::serialize_messages,
    rows::{SESSION, read_message, read_session},
    write::{queue::WriteError, transaction::session_busy_error},
};

#[async_trait]
impl SessionStore for Store {
    async fn create_session(
        &self,
        owner: &Principal,
        session: &Session,
    ) -> Result<(), SessionStoreError> {
        let (owner, session) = (owner.clone(), session.clone());
        self.perform_write("create a session", async move |tx| {
            tx.create_session(&owner, &session, 0).await.map(drop)
        })
        .await
    }

    async fn find_session(
        &self,
        owner: &Principal,
        id: &SessionId,
    ) -> Result<Option<Session>, SessionStoreError> {
        let values = values![&id.0, &owner.tenant, &owner.user];
        let found = self.read_rows("find a session", SESSION, values, read_session);
        Ok(found.await?.pop())
    }

    async fn list_sessions(
        &self,
        owner: &Principal,
        limit: u32,
    ) -> Result<Vec<Session>, SessionStoreError> {
        const LIST: &str = "SELECT id, title, created_at, messages FROM sessions
            WHERE tenant = $1 AND person = $2 ORDER BY created_us DESC, key DESC LIMIT $3";
        let values = values![&owner.tenant, &owner.user, i64::from(limit)];
        self.read_rows("list sessions", LIST, values, read_session)
            .await
    }

    async fn load_messages(
        &self,
        owner: &Principal,
        id: &SessionId,
        from: u64,
    ) -> Result<Vec<Arc<Message>>, SessionStoreError> {
        // The first `SELECT` returns the row (-1, '') for every existing session. Without this row,
        // an empty session would look like a missing session.
        const READ: &str = "SELECT -1, '' FROM sessions
                WHERE id = $1 AND tenant = $2 AND person = $3
            UNION ALL
            SELECT m.position, m.message FROM messages m JOIN sessions s ON s.key = m.session
                WHERE s.id = $1 AND s.tenant = $2 AND s.person = $3 AND m.position >= $4
            ORDER BY 1";
        let values = values![&id.0, &owner.tenant, &owner.user, from];
        let convert = |row: &Row| match row.read_int(0)? {
            -1 => Ok(None),
            _ => read_message(row).map(Some),
        };
        let found = self
            .read_rows("read messages", READ, values, convert)
            .await?;
        if found.is_empty() {
            return Err(SessionStoreError::NotFound { id: id.clone() });
        }
        Ok(found.into_iter().flatten().collect())
    }

    async fn append_messages(
        &self,
        owner: &Principal,
        id: &SessionId,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<u64, SessionStoreError> {
        const OPERATION: &str = "append messages";
        let (owner, id) = (owner.clone(), id.clone());
        let messages = serialize_messages(OPERATION, messages)?;
        self.perform_write(OPERATION, async move |tx| {
            let session = tx.lock_idle_session(&owner, &id, after).await?;
            Ok(tx.replace_messages_from(session, after, &messages).await?)
        })
        .await
    }

    async fn rename_session(
        &self,
        owner: &Principal,
        id: &SessionId,
        title: &str,
    ) -> Result<(), SessionStoreError> {
        const RENAME: &str = "UPDATE sessions SET title = $2 WHERE key = $1";
        let (owner, id, title) = (owner.clone(), id.clone(), title.to_owned());
        self.perform_write("rename a session", async move |tx| {
            let key = tx.lock_session(&owner, &id).await?.key;
            tx.connection.execute(RENAME, values![key, &title]).await?;
            Ok(())
        })
        .await
    }

    async fn delete_session(
        &self,
        owner: &Principal,
        id: &SessionId,
    ) -> Result<(), SessionStoreError> {
        const DELETE: &str = "DELETE FROM sessions WHERE key = $1";
        let (owner, id) = (owner.clone(), id.clone());
        self.perform_write("delete a session", async move |tx| {
            let key = match tx.lock_session(&owner, &id).await {
                Err(WriteError::Refused(SessionStoreError::NotFound { .. })) => return Ok(()),
                session => session?.key,
            };
            if let Some((run, Some(instance))) = tx.find_unfinished_run(key).await?
                && tx.is_alive(&instance).await?
            {
                return Err(session_busy_error(&id, run).into());
            }
            tx.connection.execute(DELETE, values![key]).await?;
            Ok(())
        })
        .await
    }

    async fn load_session_id_key(&self) -> Result<IdKey, SessionStoreError> {
        const READ: &str = "SELECT value FROM secrets WHERE name = 'id_key'";
        const ADD: &str =
            "INSERT INTO secrets (name, value) VALUES ('id_key', $1) ON CONFLICT (name) DO NOTHING";
        let read_key = |row: &Row| row.read_text(0).map(IdKey::new);
        let found = self.read_rows("read the key of session ids", READ, values![], read_key);
        if let Some(key) = found.await?.pop() {
            return Ok(key);
        }
        self.perform_write("create the key of session ids", async move |tx| {
            // The key of session ids is two random version 4 UUIDs. Each of them has 122 bits from
            // a cryptographic random number generator.
            let random = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
            tx.connection.execute(ADD, values![&random]).await?;
            let row = tx.connection.query_row(READ, values![]).await?;
            let row = row.ok_or_else(|| DatabaseError::other_failure("the key is missing"))?;
            Ok(read_key(&row)?)
        })
        .await
    }

    /// Checks that the database can be read and written, by reading and writing one row. Fails if
    /// the database is locked, full or read-only, for example.
    async fn check_store_access(&self) -> Result<(), SessionStoreError> {
        const READ: &str = "SELECT version FROM store_version";
        const TOUCH: &str = "UPDATE instances SET started_at = started_at WHERE id = $1";
        self.read_rows("read", READ, values![], |_| Ok(())).await?;
        self.perform_write("write", async |tx| {
            tx.connection.execute(TOUCH, values![tx.own_id]).await?;
            Ok(())
        })
        .await
    }
}
