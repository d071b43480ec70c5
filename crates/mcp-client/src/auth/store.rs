//! The trait for token stores, the stored values, and a store in memory.

pub(crate) mod file;

use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    config::{login::ClientAuth, redaction::redact_url},
    primitives::sync::lock_mutex,
};

/// Key of stored OAuth tokens. The tokens are used only for the authorization server, resource and
/// principal in this key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GrantKey {
    /// Issuer identifier of the authorization server that issued the tokens.
    pub issuer: String,
    /// Resource identifier of the MCP server for which the tokens are valid (RFC 8707).
    pub resource: String,
    /// Account of the login: the configured `account`, or else the client id of a
    /// `client_credentials` login, or else `default`.
    pub principal: String,
}

/// Tokens and other results of a login, as a token store saves them. `Debug` shows no secrets.
#[derive(Clone, Serialize, Deserialize, derive_more::Debug)]
pub struct StoredGrant {
    /// Configured URL of the MCP server.
    #[debug("{:?}", redact_url(server))]
    pub server: String,
    /// OAuth client that requested the tokens and can renew them.
    #[serde(flatten)]
    pub client: StoredClient,
    /// URL of the token endpoint, which renews the tokens.
    #[debug(skip)]
    pub token_endpoint: String,
    /// URL of the endpoint that revokes tokens, if the authorization server has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[debug(skip)]
    pub revocation_endpoint: Option<String>,
    /// Access and refresh token. `None` after the refresh token became invalid. The stored login is
    /// kept, because the next login uses its client and scopes again.
    #[serde(flatten)]
    pub tokens: Option<StoredTokens>,
    /// Scopes that the login requested.
    pub scopes: Vec<String>,
    /// Scopes that a call required but the tokens lack. The next login requests them too.
    #[serde(default)]
    pub wanted_scopes: Vec<String>,
    /// Time when the tokens were issued, in seconds since 1970.
    #[debug(skip)]
    pub issued_at: u64,
}

/// OAuth client that is registered with an authorization server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredClient {
    /// OAuth client id that identifies the client at the authorization server.
    #[serde(rename = "client_id")]
    pub id: String,
    /// Secret of a dynamically registered client. A secret from the configuration is not stored.
    #[serde(
        rename = "client_secret",
        default,
        skip_serializing_if = "Option::is_none",
        with = "secret_serde"
    )]
    pub secret: Option<SecretString>,
    /// Authentication method of the client at the token endpoint.
    pub auth_method: ClientAuth,
    /// Redirect URI that was registered for a dynamic client. `None` for other clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// How the client was registered.
    pub registration: Registration,
}

/// How an OAuth client was registered with an authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Registration {
    /// A person registered the client and configured its id.
    Configured,
    /// The client id is the URL of a Client ID Metadata Document.
    Document,
    /// The client registered itself dynamically (RFC 7591).
    Dynamic,
}

/// OAuth access token with its refresh token and expiry time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredTokens {
    /// Access token that authorizes requests to the MCP server.
    #[serde(
        rename = "access_token",
        serialize_with = "write_secret",
        deserialize_with = "read_secret"
    )]
    pub access: SecretString,
    /// Refresh token that renews the access token, if the authorization server issued one.
    #[serde(
        rename = "refresh_token",
        default,
        skip_serializing_if = "Option::is_none",
        with = "secret_serde"
    )]
    pub refresh: Option<SecretString>,
    /// Expiry time of the access token in seconds since 1970, if the authorization server sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

/// Store for OAuth tokens, in memory or persistent.
///
/// Several tasks use a store at the same time. Several processes may use a persistent store at the
/// same time.
#[async_trait]
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// Returns the stored logins (grants) for the URL of an MCP server and a principal, the latest
    /// first. The store has at most one grant per server URL, principal, issuer and resource.
    async fn find_grants(
        &self,
        server: &str,
        principal: &str,
    ) -> Result<Vec<(GrantKey, StoredGrant)>, StoreError>;

    /// Stores a login (grant), and replaces an earlier login with the same key.
    async fn save_grant(&self, key: &GrantKey, grant: &StoredGrant) -> Result<(), StoreError>;

    /// Removes the stored login (grant) with a key. Returns `false` if none was stored.
    async fn remove_grant(&self, key: &GrantKey) -> Result<bool, StoreError>;

    /// Locks the stored login (grant) with a key, and waits while another caller holds the lock. An
    /// OAuth session holds the lock while it changes the tokens, because a refresh token works only
    /// once. Dropping the returned lock releases it.
    async fn lock_grant(&self, key: &GrantKey) -> Result<StoreLock, StoreError>;
}

/// Lock that prevents concurrent changes of a stored login. Dropping it releases the lock.
pub type StoreLock = Box<dyn Send + Sync>;

/// Error of a [`TokenStore`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file of the store cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        /// Path of the file or folder that could not be accessed.
        path: PathBuf,
        /// Error of the operating system for this file.
        source: std::io::Error,
    },
    /// Another process, or another task of this process, held the lock of a stored login for longer
    /// than the time-out (one minute).
    #[error(
        "timed out waiting for the token lock `{}`, which another process holds",
        path.display()
    )]
    Busy {
        /// Path of the lock file of the stored login.
        path: PathBuf,
    },
    /// A [`TokenStore`] outside of this crate failed.
    #[error("the token store failed: {reason}")]
    Other {
        /// Description of the failure, which must not contain secrets.
        reason: String,
    },
}

impl StoredTokens {
    /// Returns whether the token has expired or expires within 30 seconds, so it must be renewed.
    pub(super) fn needs_renewal(&self) -> bool {
        const MARGIN: u64 = 30;
        self.expires_at
            .is_some_and(|end| end <= unix_seconds_now().saturating_add(MARGIN))
    }
}

pub(super) fn unix_seconds_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Serde functions that store a secret as plain text, because `SecretString` does not serialize.
mod secret_serde {
    use secrecy::{ExposeSecret, SecretString};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "serde requires this signature")]
    pub(super) fn serialize<S: Serializer>(
        secret: &Option<SecretString>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let secret = secret.as_ref().map(ExposeSecret::expose_secret);
        secret.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<SecretString>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.map(Into::into))
    }
}

fn write_secret<S: Serializer>(secret: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose_secret())
}

fn read_secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(Into::into)
}

/// JSON record of a stored login (grant) with its key and a format version.
#[derive(Serialize, Deserialize)]
struct GrantRecord<K, G> {
    version: u32,
    #[serde(flatten)]
    key: K,
    #[serde(flatten)]
    grant: G,
}

const VERSION: u32 = 1;

/// Serializes a stored login (grant) to JSON for a token store. The text contains all its secrets.
pub fn serialize_grant(key: &GrantKey, grant: &StoredGrant) -> SecretString {
    let record = GrantRecord {
        version: VERSION,
        key,
        grant,
    };
    // Serialization cannot fail here: serde_json rejects only maps whose keys are not text.
    serde_json::to_string_pretty(&record)
        .unwrap_or_default()
        .into()
}

/// Parses a record that [`serialize_grant`] created. Returns `None` for other text and for another
/// format version.
pub fn parse_grant(text: &str) -> Option<(GrantKey, StoredGrant)> {
    let record: GrantRecord<GrantKey, StoredGrant> = serde_json::from_str(text).ok()?;
    (record.version == VERSION).then_some((record.key, record.grant))
}

/// Token store in memory, for example for tests. Its tokens are lost when the process exits.
#[derive(Debug, Default)]
pub struct MemoryStore {
    grants: Mutex<HashMap<GrantKey, StoredGrant>>,
    renewals: Mutex<HashMap<GrantKey, Arc<tokio::sync::Mutex<()>>>>,
}

pub(super) fn sort_grants_newest_first(found: &mut [(GrantKey, StoredGrant)]) {
    found.sort_by(|(key, grant), (other_key, other)| {
        let order = other.issued_at.cmp(&grant.issued_at);
        order.then_with(|| key.issuer.cmp(&other_key.issuer))
    });
}

#[async_trait]
impl TokenStore for MemoryStore {
    async fn find_grants(
        &self,
        server: &str,
        principal: &str,
    ) -> Result<Vec<(GrantKey, StoredGrant)>, StoreError> {
        let mut found: Vec<_> = lock_mutex(&self.grants)
            .iter()
            .filter(|(key, grant)| key.principal == principal && grant.server == server)
            .map(|(key, grant)| (key.clone(), grant.clone()))
            .collect();
        sort_grants_newest_first(&mut found);
        Ok(found)
    }

    async fn save_grant(&self, key: &GrantKey, grant: &StoredGrant) -> Result<(), StoreError> {
        lock_mutex(&self.grants).insert(key.clone(), grant.clone());
        Ok(())
    }

    async fn remove_grant(&self, key: &GrantKey) -> Result<bool, StoreError> {
        Ok(lock_mutex(&self.grants).remove(key).is_some())
    }

    async fn lock_grant(&self, key: &GrantKey) -> Result<StoreLock, StoreError> {
        let lock = {
            let mut renewals = lock_mutex(&self.renewals);
            renewals.entry(key.clone()).or_default().clone()
        };
        Ok(Box::new(lock.lock_owned().await))
    }
}
