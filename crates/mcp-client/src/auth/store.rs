//! The token store: the trait, the stored values and an implementation in memory.

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
    common::sync::lock,
    config::{login::ClientAuth, show::shown_url},
};

/// The key of stored tokens. Tokens are never used for another authorization server, resource or
/// principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GrantKey {
    /// The issuer identifier of the authorization server.
    pub issuer: String,
    /// The resource identifier of the MCP server (RFC 8707).
    pub resource: String,
    /// The configured `account`, the client of `client_credentials`, or `default`.
    pub principal: String,
}

/// The result of a login. `Debug` shows no secrets.
#[derive(Clone, Serialize, Deserialize)]
pub struct StoredGrant {
    /// The configured URL of the MCP server.
    pub server: String,
    /// The client.
    #[serde(flatten)]
    pub client: StoredClient,
    /// The token endpoint.
    pub token_endpoint: String,
    /// The revocation endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// The tokens. `None` if they are invalid; the rest is used by the next login.
    #[serde(flatten)]
    pub tokens: Option<StoredTokens>,
    /// The requested scopes.
    pub scopes: Vec<String>,
    /// Further scopes that a call needed. The next login requests them.
    #[serde(default)]
    pub wanted_scopes: Vec<String>,
    /// When the tokens were issued, in seconds since 1970.
    pub issued_at: u64,
}

/// A client of an authorization server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredClient {
    /// The client id.
    #[serde(rename = "client_id")]
    pub id: String,
    /// The secret of a dynamically registered client. A configured secret is not stored.
    #[serde(
        rename = "client_secret",
        default,
        skip_serializing_if = "Option::is_none",
        with = "secret"
    )]
    pub secret: Option<SecretString>,
    /// The client authentication.
    pub auth_method: ClientAuth,
    /// The redirect URI of a dynamically registered client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// How the client was registered.
    pub registration: Registration,
}

/// How a client was registered with an authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Registration {
    /// By a person, in the configuration.
    Configured,
    /// By a Client ID Metadata Document.
    Document,
    /// Dynamically (RFC 7591).
    Dynamic,
}

/// Tokens.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredTokens {
    /// The access token.
    #[serde(
        rename = "access_token",
        serialize_with = "expose",
        deserialize_with = "hide"
    )]
    pub access: SecretString,
    /// The refresh token.
    #[serde(
        rename = "refresh_token",
        default,
        skip_serializing_if = "Option::is_none",
        with = "secret"
    )]
    pub refresh: Option<SecretString>,
    /// When the access token expires, in seconds since 1970, if the server named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

/// Stores tokens.
///
/// Several tasks use a store, and several processes if it outlives the process.
#[async_trait]
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// Returns the grants for a server URL and a principal, the latest first. Each issuer has its
    /// own.
    async fn find(
        &self,
        server: &str,
        principal: &str,
    ) -> Result<Vec<(GrantKey, StoredGrant)>, StoreError>;

    /// Stores a grant and replaces an earlier one.
    async fn save(&self, key: &GrantKey, grant: &StoredGrant) -> Result<(), StoreError>;

    /// Removes a grant. Returns whether it existed.
    async fn remove(&self, key: &GrantKey) -> Result<bool, StoreError>;

    /// Locks the tokens for a renewal until the lock is dropped, because a refresh token works only
    /// once.
    async fn lock(&self, key: &GrantKey) -> Result<StoreLock, StoreError>;
}

/// A lock for the renewal of tokens. Dropping it releases the lock.
pub type StoreLock = Box<dyn Send + Sync>;

/// An error of a token store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Another process holds the lock.
    #[error("another process has held the lock of the tokens for too long (`{}`)", path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
    },
    /// An error of another implementation.
    #[error("the token store: {reason}")]
    Other {
        /// The reason, without secrets.
        reason: String,
    },
}

impl StoredTokens {
    /// Returns whether the token has expired or will expire within 30 seconds.
    pub(super) fn is_stale(&self) -> bool {
        const MARGIN: u64 = 30;
        self.expires_at
            .is_some_and(|end| end <= now().saturating_add(MARGIN))
    }
}

/// Returns the seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

impl fmt::Debug for StoredGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredGrant")
            .field("server", &shown_url(&self.server))
            .field("client", &self.client)
            .field("tokens", &self.tokens)
            .field("scopes", &self.scopes)
            .field("wanted_scopes", &self.wanted_scopes)
            .finish_non_exhaustive()
    }
}

/// Serializes secrets as plain text.
mod secret {
    use secrecy::{ExposeSecret, SecretString};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "serde passes it so")]
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

fn expose<S: Serializer>(secret: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose_secret())
}

fn hide<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(Into::into)
}

/// The stored form of a grant.
#[derive(Serialize, Deserialize)]
struct Record<K, G> {
    version: u32,
    #[serde(flatten)]
    key: K,
    #[serde(flatten)]
    grant: G,
}

const VERSION: u32 = 1;

/// Serializes a grant with all secrets, for a store.
pub fn to_record(key: &GrantKey, grant: &StoredGrant) -> SecretString {
    let version = VERSION;
    let record = Record {
        version,
        key,
        grant,
    };
    // Fails only for maps with keys that are not text.
    serde_json::to_string_pretty(&record)
        .unwrap_or_default()
        .into()
}

/// Parses the output of [`to_record`]. Returns `None` for anything else, also for another version.
pub fn from_record(text: &str) -> Option<(GrantKey, StoredGrant)> {
    let record: Record<GrantKey, StoredGrant> = serde_json::from_str(text).ok()?;
    (record.version == VERSION).then_some((record.key, record.grant))
}

/// Tokens in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    grants: Mutex<HashMap<GrantKey, StoredGrant>>,
    renewals: Mutex<HashMap<GrantKey, Arc<tokio::sync::Mutex<()>>>>,
}

pub(super) fn latest_first(found: &mut [(GrantKey, StoredGrant)]) {
    found.sort_by(|(key, grant), (other_key, other)| {
        let order = other.issued_at.cmp(&grant.issued_at);
        order.then_with(|| key.issuer.cmp(&other_key.issuer))
    });
}

#[async_trait]
impl TokenStore for MemoryStore {
    async fn find(
        &self,
        server: &str,
        principal: &str,
    ) -> Result<Vec<(GrantKey, StoredGrant)>, StoreError> {
        let mut found: Vec<_> = lock(&self.grants)
            .iter()
            .filter(|(key, grant)| key.principal == principal && grant.server == server)
            .map(|(key, grant)| (key.clone(), grant.clone()))
            .collect();
        latest_first(&mut found);
        Ok(found)
    }

    async fn save(&self, key: &GrantKey, grant: &StoredGrant) -> Result<(), StoreError> {
        lock(&self.grants).insert(key.clone(), grant.clone());
        Ok(())
    }

    async fn remove(&self, key: &GrantKey) -> Result<bool, StoreError> {
        Ok(lock(&self.grants).remove(key).is_some())
    }

    async fn lock(&self, key: &GrantKey) -> Result<StoreLock, StoreError> {
        let lock = {
            let mut renewals = lock(&self.renewals);
            renewals.entry(key.clone()).or_default().clone()
        };
        Ok(Box::new(lock.lock_owned().await))
    }
}
