//! The token store trait, the stored values and an implementation in memory.

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
    config::{login::ClientAuth, show::redact_url},
    primitives::sync::lock_mutex,
};

/// Key of stored tokens. Tokens are never sent to another authorization server or resource, and
/// never used for another principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GrantKey {
    /// The issuer identifier of the authorization server.
    pub issuer: String,
    /// The resource identifier of the MCP server (RFC 8707).
    pub resource: String,
    /// Configured `account`, or the client id for `client_credentials`, or `default`.
    pub principal: String,
}

/// Stored result of a login. `Debug` shows no secrets.
#[derive(Clone, Serialize, Deserialize)]
pub struct StoredGrant {
    /// Configured URL of the MCP server.
    pub server: String,
    /// OAuth client that requested the tokens.
    #[serde(flatten)]
    pub client: StoredClient,
    /// URL of the token endpoint.
    pub token_endpoint: String,
    /// URL of the revocation endpoint, if the authorization server has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// Access and refresh token. `None` if they are invalid; the next login still uses the other
    /// fields.
    #[serde(flatten)]
    pub tokens: Option<StoredTokens>,
    /// Scopes that the login requested.
    pub scopes: Vec<String>,
    /// Further scopes that a call required. The next login requests them too.
    #[serde(default)]
    pub wanted_scopes: Vec<String>,
    /// Time when the tokens were issued, in seconds since 1970.
    pub issued_at: u64,
}

/// OAuth client that is registered with an authorization server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredClient {
    /// OAuth client id.
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
    /// Authentication method of the client at the token endpoint.
    pub auth_method: ClientAuth,
    /// Redirect URI of a dynamically registered client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// Way in which the client was registered.
    pub registration: Registration,
}

/// Way in which an OAuth client was registered with an authorization server.
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

/// Access token with its refresh token and expiry time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredTokens {
    /// Access token for requests to the MCP server.
    #[serde(
        rename = "access_token",
        serialize_with = "serialize_secret",
        deserialize_with = "deserialize_secret"
    )]
    pub access: SecretString,
    /// Refresh token, if the authorization server issued one.
    #[serde(
        rename = "refresh_token",
        default,
        skip_serializing_if = "Option::is_none",
        with = "secret"
    )]
    pub refresh: Option<SecretString>,
    /// Expiry time of the access token in seconds since 1970, if the authorization server sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

/// Store for OAuth tokens.
///
/// Several tasks use a store concurrently, and also several processes if the store is persistent.
#[async_trait]
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// Returns the grants for a server URL and a principal, the latest first. There is one grant
    /// per issuer.
    async fn find_grants(
        &self,
        server: &str,
        principal: &str,
    ) -> Result<Vec<(GrantKey, StoredGrant)>, StoreError>;

    /// Stores a grant. Replaces an earlier grant with the same key.
    async fn save(&self, key: &GrantKey, grant: &StoredGrant) -> Result<(), StoreError>;

    /// Removes the grant with this key. Returns whether it existed.
    async fn remove(&self, key: &GrantKey) -> Result<bool, StoreError>;

    /// Locks a grant while its tokens are renewed, because a refresh token works only once.
    /// Dropping the returned lock releases it.
    async fn lock_grant(&self, key: &GrantKey) -> Result<StoreLock, StoreError>;
}

/// Lock of a grant during the renewal of its tokens. Dropping it releases the lock.
pub type StoreLock = Box<dyn Send + Sync>;

/// Error of a token store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file of the store cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Another process held the lock for longer than the time-out.
    #[error("another process has held the lock of the tokens for too long (`{}`)", path.display())]
    Busy {
        /// Path of the lock file.
        path: PathBuf,
    },
    /// Another implementation of [`TokenStore`] failed.
    #[error("the token store: {reason}")]
    Other {
        /// Description of the failure, without secrets.
        reason: String,
    },
}

impl StoredTokens {
    /// Returns whether the access token has expired or will expire within 30 seconds.
    pub(super) fn is_stale(&self) -> bool {
        const MARGIN: u64 = 30;
        self.expires_at
            .is_some_and(|end| end <= unix_seconds_now().saturating_add(MARGIN))
    }
}

/// Returns the current time in seconds since 1970.
pub(super) fn unix_seconds_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

impl fmt::Debug for StoredGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredGrant")
            .field("server", &redact_url(&self.server))
            .field("client", &self.client)
            .field("tokens", &self.tokens)
            .field("scopes", &self.scopes)
            .field("wanted_scopes", &self.wanted_scopes)
            .finish_non_exhaustive()
    }
}

/// Serde functions that serialize a secret as plain text.
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

fn serialize_secret<S: Serializer>(
    secret: &SecretString,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose_secret())
}

fn deserialize_secret<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(Into::into)
}

/// Serialized form of a grant together with its key.
#[derive(Serialize, Deserialize)]
struct Record<K, G> {
    version: u32,
    #[serde(flatten)]
    key: K,
    #[serde(flatten)]
    grant: G,
}

const VERSION: u32 = 1;

/// Serializes a grant with all its secrets for a token store.
pub fn to_record(key: &GrantKey, grant: &StoredGrant) -> SecretString {
    let version = VERSION;
    let record = Record {
        version,
        key,
        grant,
    };
    // Serialization cannot fail: it fails only for maps with keys that are not text.
    serde_json::to_string_pretty(&record)
        .unwrap_or_default()
        .into()
}

/// Parses the output of [`to_record`]. Returns `None` for other text and for other format versions.
pub fn from_record(text: &str) -> Option<(GrantKey, StoredGrant)> {
    let record: Record<GrantKey, StoredGrant> = serde_json::from_str(text).ok()?;
    (record.version == VERSION).then_some((record.key, record.grant))
}

/// Token store in memory. Its tokens are lost when the process exits.
#[derive(Debug, Default)]
pub struct MemoryStore {
    grants: Mutex<HashMap<GrantKey, StoredGrant>>,
    renewals: Mutex<HashMap<GrantKey, Arc<tokio::sync::Mutex<()>>>>,
}

pub(super) fn sort_latest_first(found: &mut [(GrantKey, StoredGrant)]) {
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
        sort_latest_first(&mut found);
        Ok(found)
    }

    async fn save(&self, key: &GrantKey, grant: &StoredGrant) -> Result<(), StoreError> {
        lock_mutex(&self.grants).insert(key.clone(), grant.clone());
        Ok(())
    }

    async fn remove(&self, key: &GrantKey) -> Result<bool, StoreError> {
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
