//! The location and durability of a store.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

/// Maximum time of a transaction or a read, unless [`StoreOptions::timeout`] sets another one.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// The location and durability of a store. `Debug` does not show a URL, which may contain a
/// password.
#[derive(Clone)]
pub struct StoreOptions {
    pub(crate) location: Location,
    pub(crate) durability: Durability,
    pub(crate) timeout: Duration,
}

#[derive(Clone)]
pub(crate) enum Location {
    Sqlite(PathBuf),
    /// The whole URL is secret, since it has more than one place for a password.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "only the driver reads it")
    )]
    Postgres(String),
}

/// When SQLite acknowledges a write.
///
/// PostgreSQL has another setting, `synchronous_commit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When the disk has it. The write survives a power failure (`synchronous = FULL`).
    #[default]
    PowerLoss,
    /// When the operating system has it. The write survives the end of the process. A power failure
    /// may undo the last writes, in order (`synchronous = NORMAL`).
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
    /// Missing parts of the URL come from the variables of PostgreSQL clients (`PGPASSWORD`, …). A
    /// pooler in front of the server must keep sessions, because locks belong to them. Needs the
    /// feature `postgres`.
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

    /// Sets when SQLite acknowledges a write.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the maximum time of a read or a transaction on a PostgreSQL server; one minute by
    /// default.
    ///
    /// After that the connection counts as lost. A network may break without a notice.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the path of the file, if the location is a file.
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
        assert!(options.path().is_none());
    }
}
