//! Who has the store open, and whether they are alive.
//!
//! An instance is an open store of a process. It has a row in the database and a lock that lives exactly as long
//! as it does. An instance without its lock is dead: whoever finds that out in a transaction of writing removes
//! its row and with it its claim to runs. So the row says who *has* a run, the lock who *may be relieved* of it;
//! every transaction of an instance begins by looking for its own row.

mod advisory;
mod file;

use std::collections::HashSet;

use crate::{
    database::{Connection, Readers},
    place::{Place, locks_beside},
};

/// The lock of this instance, and a look at those of others.
pub(crate) enum Liveness {
    Files(file::Locks),
    Advisory(advisory::Locks),
}

/// A claim to be alive under a name that nobody had before.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) id: String,
    /// The number of its advisory lock on a PostgreSQL server.
    pub(crate) lock_key: i64,
}

impl Liveness {
    pub(crate) fn new(place: &Place) -> Self {
        match place {
            Place::Sqlite { path, .. } => Self::Files(file::Locks::new(locks_beside(path))),
            Place::Postgres { options, .. } => {
                Self::Advisory(advisory::Locks::new((**options).clone()))
            }
        }
    }

    /// Locks under a new name, and lets go of the old one. The caller writes the row.
    pub(crate) async fn claim(&self) -> Result<Claim, sqlx::Error> {
        match self {
            Self::Files(locks) => locks.claim().map_err(sqlx::Error::Io),
            Self::Advisory(locks) => locks.claim().await,
        }
    }

    /// The name of this instance now.
    pub(crate) fn me(&self) -> Option<String> {
        match self {
            Self::Files(locks) => locks.me(),
            Self::Advisory(locks) => locks.me(),
        }
    }

    /// Those of them that are not alive, as a reader sees it.
    pub(crate) async fn dead(
        &self,
        readers: &Readers,
        instances: &HashSet<String>,
    ) -> Result<HashSet<String>, sqlx::Error> {
        let is_dead: HashSet<String> = match self {
            Self::Files(locks) => {
                let mut dead = HashSet::new();
                for id in instances {
                    if locks.is_dead(id).map_err(sqlx::Error::Io)? {
                        dead.insert(id.clone());
                    }
                }
                dead
            }
            Self::Advisory(_) => {
                let alive = advisory::alive(readers).await?;
                instances.difference(&alive).cloned().collect()
            }
        };
        Ok(is_dead)
    }

    /// Removes the row of an instance if it is dead. On PostgreSQL this waits for a transaction that the
    /// instance is in the middle of.
    pub(crate) async fn remove_if_dead(
        &self,
        connection: &mut Connection,
        id: &str,
    ) -> Result<bool, sqlx::Error> {
        match self {
            Self::Files(locks) => {
                // Nobody comes or goes while this process holds the lock of writing.
                if !locks.is_dead(id).map_err(sqlx::Error::Io)? {
                    return Ok(false);
                }
                file::forget(connection, id).await?;
                Ok(true)
            }
            Self::Advisory(_) => advisory::remove_if_dead(connection, id).await,
        }
    }

    /// What its lock left behind, after its row is gone for good.
    pub(crate) fn sweep(&self, id: &str) {
        if let Self::Files(locks) = self {
            locks.sweep(id);
        }
    }

    /// What the locks of all that died left behind.
    pub(crate) fn sweep_all(&self) {
        if let Self::Files(locks) = self {
            locks.sweep_all();
        }
    }

    /// Looks soon whether the lock is still held.
    pub(crate) fn doubt(&self) {
        if let Self::Advisory(locks) = self {
            locks.doubt();
        }
    }

    /// Lets go of the lock: this instance is dead from now on.
    pub(crate) fn release(&self) {
        match self {
            Self::Files(locks) => locks.release(),
            Self::Advisory(locks) => locks.release(),
        }
    }
}
