//! Configuration section `sessions`: storage and retention of conversations.

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer};

use super::field_parsing::deserialize_converted;

/// Storage and retention of conversations. A setting is `None` if it is not configured.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a map of settings")]
pub(crate) struct SessionsConfig {
    /// Location of the session store. `None` means a database file in the user's data folder.
    #[serde(deserialize_with = "deserialize_store")]
    pub(crate) store: Option<StoreLocation>,
    /// Whether `ask` saves its conversation even without the option `--session`.
    pub(crate) keep: Option<bool>,
    /// Number of days after which an unused session is deleted. `None` means never.
    pub(crate) keep_days: Option<NonZeroU32>,
    /// Maximum number of sessions of one user. If there are more, the least recently used ones are
    /// deleted.
    pub(crate) keep_sessions: Option<NonZeroU32>,
}

/// Location of the session store: a file or a database server.
#[derive(Clone)]
pub(crate) enum StoreLocation {
    /// Path of a SQLite database file.
    File(PathBuf),
    /// Address of a PostgreSQL database. It may contain a password, so it is a secret.
    Postgres(SecretString),
}

impl SessionsConfig {
    /// Returns the database address and the password in it, so that output can be redacted.
    pub(crate) fn database_address_secrets(&self) -> Vec<SecretString> {
        let Some(StoreLocation::Postgres(address)) = &self.store else {
            return Vec::new();
        };
        let parts = address.expose_secret().split_once("://");
        let login = parts.and_then(|(_, rest)| rest.rsplit_once('@'));
        let password = login.and_then(|(login, _)| login.split_once(':'));
        let password = password.map(|(_, password)| SecretString::from(password));
        let secrets = [Some(address.clone()), password];
        secrets.into_iter().flatten().collect()
    }

    /// Returns the time after which an unused session is deleted. `None` means never.
    pub(crate) fn unused_session_retention(&self) -> Option<Duration> {
        self.keep_days
            .map(|days| Duration::from_hours(u64::from(days.get()) * 24))
    }
}

fn deserialize_store<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<StoreLocation>, D::Error> {
    let expected = "a file, or an address with postgres://";
    deserialize_converted(deserializer, expected, |value| {
        let text = value.as_str()?.trim();
        match text.split_once("://") {
            Some(("postgres" | "postgresql", _)) => {
                Some(StoreLocation::Postgres(SecretString::from(text)))
            }
            None if !text.is_empty() => Some(StoreLocation::File(text.into())),
            _ => None,
        }
    })
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
