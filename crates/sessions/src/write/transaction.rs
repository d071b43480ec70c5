//! The transaction of a write.

use std::sync::LazyLock;

use jiff::Timestamp;
use switchboard_domain::{Principal, SessionId};

use crate::database::{
    BatchStatement, Connection, DatabaseError, InstanceLocks, Row, Value, has_nul, values,
};

/// The time of a transaction.
#[derive(Debug, Clone)]
pub(crate) struct Now {
    /// RFC 3339 in UTC, always with six digits of the second, so that such texts sort by time.
    pub(crate) text: String,
    pub(crate) microseconds: i64,
}

impl Now {
    pub(crate) fn read() -> Self {
        let now = Timestamp::now();
        Self {
            text: format!("{now:.6}"),
            microseconds: now.as_microsecond(),
        }
    }

    /// Returns the microseconds of an RFC 3339 time; of now if the text is not a time.
    pub(crate) fn microseconds_of(&self, time: &str) -> i64 {
        time.parse::<Timestamp>()
            .map_or(self.microseconds, Timestamp::as_microsecond)
    }
}

/// A session whose row is locked until the end of the transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockedSession {
    pub(crate) key: i64,
    pub(crate) messages: u64,
}

/// A run that is not finished.
#[derive(Debug)]
pub(crate) struct UnfinishedRun {
    pub(crate) id: String,
    /// The instance that has it, if it is running.
    pub(crate) instance: Option<String>,
}

/// A transaction of the writer. Each write has it alone until it returns.
pub(crate) struct Transaction<'a> {
    pub(crate) connection: &'a mut dyn Connection,
    pub(crate) locks: &'a dyn InstanceLocks,
    /// The id of this instance.
    pub(crate) own_id: &'a str,
    pub(crate) now: &'a Now,
    /// Instances whose rows this transaction removes.
    pub(crate) removed_instances: &'a mut Vec<String>,
}

impl Transaction<'_> {
    pub(crate) async fn execute(
        &mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<u64, DatabaseError> {
        self.connection.execute(sql, values).await
    }

    pub(crate) async fn row(
        &mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<Option<Row>, DatabaseError> {
        self.connection.row(sql, values).await
    }

    pub(crate) async fn rows(
        &mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<Vec<Row>, DatabaseError> {
        self.connection.rows(sql, values).await
    }

    /// Finds a session, locks its row until the end of the transaction, and marks it as used.
    pub(crate) async fn session(
        &mut self,
        owner: &Principal,
        id: &SessionId,
    ) -> Result<Option<LockedSession>, DatabaseError> {
        const LOCK: &str = "UPDATE sessions SET used_us = $4
            WHERE id = $1 AND tenant = $2 AND person = $3 RETURNING key, messages";
        let keys = [&id.0, &owner.tenant, &owner.user];
        if keys.into_iter().any(|key| has_nul(key)) {
            return Ok(None);
        }
        let now = self.now.microseconds;
        let values = values![&id.0, &owner.tenant, &owner.user, now];
        let row = self.row(LOCK, values).await?;
        row.map(|row| {
            Ok(LockedSession {
                key: row.int(0)?,
                messages: row.count(1)?,
            })
        })
        .transpose()
    }

    /// Returns the unfinished run of a session. There is at most one.
    pub(crate) async fn unfinished(
        &mut self,
        session: i64,
    ) -> Result<Option<UnfinishedRun>, DatabaseError> {
        const FIND: &str =
            "SELECT id, instance FROM runs WHERE session = $1 AND state <> 'finished'";
        let row = self.row(FIND, values![session]).await?;
        row.map(|row| {
            Ok(UnfinishedRun {
                id: row.text(0)?,
                instance: row.optional_text(1)?,
            })
        })
        .transpose()
    }

    /// Appends messages to a session and returns their number afterwards.
    pub(crate) async fn add_messages(
        &mut self,
        session: LockedSession,
        messages: &[String],
    ) -> Result<u64, DatabaseError> {
        const COUNT: &str = "UPDATE sessions SET messages = $2 WHERE key = $1";
        let total = session.messages + messages.len() as u64;
        if !messages.is_empty() {
            self.insert_messages(session.key, session.messages, messages)
                .await?;
            self.execute(COUNT, values![session.key, total]).await?;
        }
        Ok(total)
    }

    /// Inserts messages of a session from position `from`. Does not change the session's count.
    pub(crate) async fn insert_messages(
        &mut self,
        session: i64,
        from: u64,
        messages: &[String],
    ) -> Result<(), DatabaseError> {
        static ADD: LazyLock<BatchStatement> = LazyLock::new(|| {
            BatchStatement::new(
                "INSERT INTO messages (session, position, message) VALUES ",
                1,
                3,
                "",
            )
        });
        self.insert(&ADD, session, from, messages).await
    }

    /// Removes all messages of a session except the first `keep`.
    pub(crate) async fn truncate_messages(
        &mut self,
        session: LockedSession,
        keep: u64,
    ) -> Result<LockedSession, DatabaseError> {
        const CUT: &str = "DELETE FROM messages WHERE session = $1 AND position >= $2";
        const COUNT: &str = "UPDATE sessions SET messages = $2 WHERE key = $1";
        self.execute(CUT, values![session.key, keep]).await?;
        self.execute(COUNT, values![session.key, keep]).await?;
        Ok(LockedSession {
            messages: keep,
            ..session
        })
    }

    /// Inserts rows of (key, position, text).
    pub(crate) async fn insert(
        &mut self,
        statement: &'static BatchStatement,
        key: i64,
        from: u64,
        texts: &[String],
    ) -> Result<(), DatabaseError> {
        let mut position = from;
        let mut rest = texts;
        while !rest.is_empty() {
            let (size, sql) = statement.at_most(rest.len());
            let (batch, later) = rest.split_at(size);
            let mut parameters = Vec::with_capacity(size * 3);
            for text in batch {
                parameters.extend(values![key, position, text]);
                position += 1;
            }
            self.execute(sql, parameters).await?;
            rest = later;
        }
        Ok(())
    }

    /// Returns whether an instance is alive. If it is dead, interrupts its runs.
    pub(crate) async fn is_alive(&mut self, instance: &str) -> Result<bool, DatabaseError> {
        if instance == self.own_id {
            return Ok(true);
        }
        let removed = self.locks.remove_if_dead(self.connection, instance).await?;
        if removed {
            self.interrupt_runs(instance).await?;
            self.removed_instances.push(instance.to_owned());
        }
        Ok(!removed)
    }

    /// Interrupts the runs of an instance.
    pub(crate) async fn interrupt_runs(&mut self, instance: &str) -> Result<(), DatabaseError> {
        const INTERRUPT: &str = "UPDATE runs SET state = 'interrupted', instance = NULL
            WHERE instance = $1 AND state = 'running'";
        self.execute(INTERRUPT, values![instance]).await?;
        Ok(())
    }
}
