//! `sessions`: storage and retention of conversations.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::{document::Fields, error::Problem};

/// Storage and retention of conversations. `None` is not configured.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionsConfig {
    /// The store. `None` is a file in the user's data folder.
    pub(crate) store: Option<StorePlace>,
    /// Whether `ask` saves conversations without `--session`.
    pub(crate) keep: Option<bool>,
    /// Days after which an unused session is deleted. `None` is never.
    pub(crate) keep_days: Option<u32>,
    /// Maximum number of sessions. The newest ones are kept.
    pub(crate) keep_sessions: Option<u32>,
}

/// The location of the session store.
#[derive(Clone)]
pub(crate) enum StorePlace {
    /// A SQLite file.
    File(PathBuf),
    /// The address of a PostgreSQL database, with a possible password.
    Postgres(SecretString),
}

impl fmt::Debug for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Postgres(_) => f.debug_tuple("Postgres").finish_non_exhaustive(),
        }
    }
}

impl SessionsConfig {
    /// Merges `over`, which takes precedence.
    #[must_use]
    pub(super) fn merged_with(self, over: Self) -> Self {
        Self {
            store: over.store.or(self.store),
            keep: over.keep.or(self.keep),
            keep_days: over.keep_days.or(self.keep_days),
            keep_sessions: over.keep_sessions.or(self.keep_sessions),
        }
    }

    /// Returns the address of a database and the password in it, for redaction.
    pub(crate) fn secrets(&self) -> Vec<SecretString> {
        let Some(StorePlace::Postgres(address)) = &self.store else {
            return Vec::new();
        };
        let text = address.expose_secret();
        let login = text
            .split_once("://")
            .and_then(|(_, rest)| rest.rsplit_once('@'))
            .map(|(login, _)| login);
        let password = login.and_then(|login| login.split_once(':'));
        let password = password.map(|(_, password)| SecretString::from(password));
        [Some(address.clone()), password]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Returns the retention of unused sessions.
    pub(crate) fn unused_for(&self) -> Option<Duration> {
        self.keep_days
            .map(|days| Duration::from_hours(u64::from(days) * 24))
    }
}

/// Reads the section. A file is relative to the folder of the configuration `file`.
pub(super) fn read(value: &Value, file: &Path) -> Result<SessionsConfig, Problem> {
    let known = ["store", "keep", "keep_days", "keep_sessions"];
    let fields = Fields::of(value, "sessions", &known)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let expected = "a file, or an address with postgres://";
    let store = fields.read("store", expected, |value| {
        let text = value.as_str()?.trim();
        match text.split_once("://") {
            Some(("postgres" | "postgresql", _)) => {
                Some(StorePlace::Postgres(SecretString::from(text)))
            }
            Some(_) => None,
            None if text.is_empty() => None,
            None => Some(StorePlace::File(folder.join(text))),
        }
    })?;
    Ok(SessionsConfig {
        store,
        keep: fields.flag("keep")?,
        keep_days: fields.count("keep_days")?,
        keep_sessions: fields.count("keep_sessions")?,
    })
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
