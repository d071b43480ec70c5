//! The location and durability of a store.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

/// Maximum time of a PostgreSQL transaction or read, unless [`StoreOptions::timeout`] sets another.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// The location and durability of a session store. Its `Debug` output omits the URL, which may
/// contain a password.
#[derive(Clone)]
pub struct StoreOptions {
    pub(crate) location: Location,
    pub(crate) durability: Durability,
    pub(crate) timeout: Duration,
}

#[derive(Clone)]
pub(crate) enum Location {
    Sqlite(PathBuf),
    /// The connection URL. All of it is secret, because several of its parts may contain a
    /// password.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "only the driver reads it")
    )]
    Postgres(String),
}

/// The kind of failure that an acknowledged write to a SQLite store survives.
///
/// PostgreSQL ignores this option and uses its own setting `synchronous_commit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A write is acknowledged when its data is on disk. It survives a power failure
    /// (`synchronous = FULL`).
    #[default]
    PowerLoss,
    /// A write is acknowledged when the operating system has received it. It survives a crash of
    /// the process, but a power failure may undo the latest writes (`synchronous = NORMAL`).
    ProcessCrash,
}

impl StoreOptions {
    /// Returns the options for a SQLite file on a local disk.
    ///
    /// Opening creates a missing file with mode 0600, and a missing folder with mode 0700.
    pub fn sqlite(path: impl Into<PathBuf>) -> Self {
        Self::new(Location::Sqlite(path.into()))
    }

    /// Returns the options for a PostgreSQL database, such as
    /// `postgres://user:password@host/database?sslmode=verify-full`.
    ///
    /// Missing parts of the URL come from the environment variables of PostgreSQL clients
    /// (`PGPASSWORD`, …). A connection pooler must use session pooling, because each open store
    /// holds an advisory lock, which belongs to one database session. Needs the feature `postgres`.
    pub fn postgres(url: impl Into<String>) -> Self {
        Self::new(Location::Postgres(url.into()))
    }

    fn new(location: Location) -> Self {
        Self {
            location,
            durability: Durability::default(),
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// Sets whether SQLite acknowledges a write before or after it is on disk.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the maximum time of a read or a transaction on a PostgreSQL server; one minute by
    /// default.
    ///
    /// If an operation takes longer, its connection is treated as lost, because a broken network
    /// may report no error.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the path of the SQLite file, or `None` for PostgreSQL.
    pub fn sqlite_path(&self) -> Option<&Path> {
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
            Location::Postgres(_) => debug.field("postgres", &"[redacted]"),
        };
        debug
            .field("durability", &self.durability)
            .field("timeout", &self.timeout)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_a_url() {
        let options =
            StoreOptions::postgres("postgres://me:hunter2@db.example/all?password=hunter3");
        let shown = format!("{options:?}");
        assert!(
            !shown.contains("hunter") && !shown.contains("db.example"),
            "{shown}"
        );
        assert!(options.sqlite_path().is_none());
    }
}
