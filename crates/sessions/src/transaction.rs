//! What an operation sees of the transaction that it is done in.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use switchboard_domain::{Message, Principal, SessionId, SessionStoreError};

use crate::{
    database::{Connection, Row, Rows, Value, has_nul, values},
    depth,
    error::storage,
    instance::Liveness,
};

/// The time of a transaction.
#[derive(Debug, Clone)]
pub(crate) struct Now {
    /// RFC 3339 in UTC, always with six digits behind the second: such texts sort by time.
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

    /// The same for a time that was given; a text that is no time sorts as now.
    pub(crate) fn microseconds_of(&self, given: &str) -> i64 {
        given
            .parse::<Timestamp>()
            .map_or(self.microseconds, Timestamp::as_microsecond)
    }
}

/// A session whose row is locked until the end of the transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockedSession {
    pub(crate) key: i64,
    pub(crate) messages: u64,
}

/// A run that is not over.
#[derive(Debug)]
pub(crate) struct Unfinished {
    pub(crate) id: String,
    /// Who has it, if it is running.
    pub(crate) instance: Option<String>,
}

/// A transaction of the writer. It is an operation's own until that is done; then it is kept or undone.
pub(crate) struct Transaction<'a> {
    pub(crate) connection: &'a mut Connection,
    pub(crate) liveness: &'a Liveness,
    /// This instance.
    pub(crate) me: &'a str,
    pub(crate) now: &'a Now,
    /// The instances that were found dead.
    pub(crate) removed: &'a mut Vec<String>,
}

impl Transaction<'_> {
    pub(crate) async fn execute(
        &mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<u64, sqlx::Error> {
        self.connection.execute(sql, values).await
    }

    pub(crate) async fn row(
        &mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<Option<Row>, sqlx::Error> {
        self.connection.row(sql, values).await
    }

    pub(crate) async fn rows(
        &mut self,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<Vec<Row>, sqlx::Error> {
        self.connection.rows(sql, values).await
    }

    /// Finds a session and locks it: what is read of it afterwards stays so. It counts as used.
    pub(crate) async fn session(
        &mut self,
        owner: &Principal,
        id: &SessionId,
    ) -> Result<Option<LockedSession>, sqlx::Error> {
        const LOCK: &str = "UPDATE sessions SET used_us = $4
            WHERE id = $1 AND tenant = $2 AND person = $3 RETURNING key, messages";
        if [&id.0, &owner.tenant, &owner.user]
            .into_iter()
            .any(|text| has_nul(text))
        {
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

    /// The run of a session that is not over; there is one at most.
    pub(crate) async fn unfinished(
        &mut self,
        session: i64,
    ) -> Result<Option<Unfinished>, sqlx::Error> {
        const FIND: &str =
            "SELECT id, instance FROM runs WHERE session = $1 AND state <> 'finished'";
        let row = self.row(FIND, values![session]).await?;
        row.map(|row| {
            Ok(Unfinished {
                id: row.text(0)?,
                instance: row.optional_text(1)?,
            })
        })
        .transpose()
    }

    /// Writes messages behind those that a session has, and counts them.
    pub(crate) async fn add_messages(
        &mut self,
        session: LockedSession,
        messages: &[String],
    ) -> Result<u64, sqlx::Error> {
        const COUNT: &str = "UPDATE sessions SET messages = $2 WHERE key = $1";
        let total = session.messages + messages.len() as u64;
        if !messages.is_empty() {
            self.insert_messages(session.key, session.messages, messages)
                .await?;
            self.execute(COUNT, values![session.key, total]).await?;
        }
        Ok(total)
    }

    /// Writes messages of a session, which are counted elsewhere.
    pub(crate) async fn insert_messages(
        &mut self,
        session: i64,
        from: u64,
        messages: &[String],
    ) -> Result<(), sqlx::Error> {
        static ADD: LazyLock<Rows> = LazyLock::new(|| {
            Rows::new(
                "INSERT INTO messages (session, position, message) VALUES ",
                1,
                3,
                "",
            )
        });
        self.insert(&ADD, session, from, messages).await
    }

    /// Removes the messages of a session behind the first `keep` ones.
    pub(crate) async fn cut_messages(
        &mut self,
        session: LockedSession,
        keep: u64,
    ) -> Result<LockedSession, sqlx::Error> {
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
        rows: &'static Rows,
        key: i64,
        from: u64,
        texts: &[String],
    ) -> Result<(), sqlx::Error> {
        let mut position = from;
        let mut rest = texts;
        while !rest.is_empty() {
            let (size, sql) = rows.fitting(rest.len());
            let (now, later) = rest.split_at(size);
            let mut parameters = Vec::with_capacity(size * 3);
            for text in now {
                parameters.extend(values![key, position, text]);
                position += 1;
            }
            self.execute(sql, parameters).await?;
            rest = later;
        }
        Ok(())
    }

    /// Whether an instance is alive. If it is not, its runs are interrupted from now on.
    pub(crate) async fn is_alive(&mut self, instance: &str) -> Result<bool, sqlx::Error> {
        if instance == self.me {
            return Ok(true);
        }
        if !self
            .liveness
            .remove_if_dead(self.connection, instance)
            .await?
        {
            return Ok(true);
        }
        self.let_go(instance).await?;
        self.removed.push(instance.to_owned());
        Ok(false)
    }

    /// Takes its runs and unfinished imports from an instance.
    pub(crate) async fn let_go(&mut self, instance: &str) -> Result<(), sqlx::Error> {
        const RUNS: &str = "UPDATE runs SET state = 'interrupted', instance = NULL
            WHERE instance = $1 AND state = 'running'";
        const IMPORTS: &str = "DELETE FROM sessions WHERE tenant IS NULL AND instance = $1";
        self.execute(RUNS, values![instance]).await?;
        self.execute(IMPORTS, values![instance]).await?;
        Ok(())
    }
}

/// Messages as they are stored.
pub(crate) fn texts(
    operation: &'static str,
    messages: &[Arc<Message>],
) -> Result<Vec<String>, SessionStoreError> {
    let texts = messages.iter().map(|message| {
        let text = serde_json::to_string(message).map_err(|error| storage(operation, error))?;
        depth::check("a message", &text)?;
        Ok(text)
    });
    texts.collect()
}
