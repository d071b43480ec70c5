//! Where a store is, and how it writes.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

/// Where a store is, and how it writes. Its `Debug` shows no address of a server, which may hold a password.
#[derive(Clone)]
pub struct StoreOptions {
    pub(crate) location: Location,
    pub(crate) durability: Durability,
    pub(crate) patience: Duration,
}

/// How long a transaction or a read may take.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Clone)]
pub(crate) enum Location {
    Sqlite(PathBuf),
    /// The whole URL is a secret: passwords stand in more than one place of it.
    Postgres(String),
}

/// What SQLite waits for before a write is acknowledged. (A PostgreSQL server has its own setting,
/// `synchronous_commit`.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Until the disk has it: it outlives a power failure (`synchronous = FULL`).
    #[default]
    PowerLoss,
    /// Until the operating system has it: it outlives the end of the process, however it ends. A power failure
    /// may undo the last writes, and nothing else (`synchronous = NORMAL`).
    ProcessCrash,
}

impl StoreOptions {
    /// A file of SQLite. It is made where it is missing, for its user alone (mode 0600, in a folder of mode 0700
    /// that is made where it is missing). Must be on a disk of this machine.
    pub fn sqlite(path: impl Into<PathBuf>) -> Self {
        Self {
            location: Location::Sqlite(path.into()),
            durability: Durability::default(),
            patience: PATIENCE,
        }
    }

    /// A database of a PostgreSQL server, such as `postgres://user:password@host/database?sslmode=verify-full`.
    /// What the URL leaves out comes from the variables that all clients of PostgreSQL read (`PGPASSWORD`, …).
    ///
    /// The connections must be to the server itself, or through a pooler that keeps sessions: locks are bound to
    /// them.
    pub fn postgres(url: impl Into<String>) -> Self {
        Self {
            location: Location::Postgres(url.into()),
            durability: Durability::default(),
            patience: PATIENCE,
        }
    }

    /// What begins with `postgres://` or `postgresql://` is a server, anything else the path of a file.
    pub fn at(place: &str) -> Self {
        if place.starts_with("postgres://") || place.starts_with("postgresql://") {
            Self::postgres(place)
        } else {
            Self::sqlite(place)
        }
    }

    /// What SQLite waits for.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How long a PostgreSQL server may take for a read or a transaction, until its connection is given up as dead;
    /// a minute otherwise. The network may have cut it without a word.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match &self.location {
            Location::Sqlite(path) => Some(path),
            Location::Postgres(_) => None,
        }
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("StoreOptions");
        match &self.location {
            Location::Sqlite(path) => debug.field("sqlite", path),
            Location::Postgres(_) => debug.field("postgres", &"[secret]"),
        };
        debug
            .field("durability", &self.durability)
            .field("patience", &self.patience)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_never_shown() {
        let options = StoreOptions::at("postgres://me:hunter2@db.example/all?password=hunter3");
        let shown = format!("{options:?}");
        assert!(
            !shown.contains("hunter") && !shown.contains("db.example"),
            "{shown}"
        );
        assert!(options.path().is_none());
        let file = StoreOptions::at("postgres.db");
        assert_eq!(file.path(), Some(Path::new("postgres.db")));
    }
}
