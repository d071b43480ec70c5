//! The token store: the trait, the stored values and an implementation in memory.

pub(crate) mod file;

use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::config::login::ClientAuth;

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
#[derive(Clone)]
pub struct StoredGrant {
    /// The configured URL of the MCP server.
    pub server: String,
    /// The client.
    pub client: StoredClient,
    /// The token endpoint.
    pub token_endpoint: String,
    /// The revocation endpoint.
    pub revocation_endpoint: Option<String>,
    /// The tokens. `None` if they are invalid; the rest is used by the next login.
    pub tokens: Option<StoredTokens>,
    /// The requested scopes.
    pub scopes: Vec<String>,
    /// Further scopes that a call needed. The next login requests them.
    pub wanted_scopes: Vec<String>,
    /// When the tokens were issued, in seconds since 1970.
    pub issued_at: u64,
}

/// A client of an authorization server.
#[derive(Clone)]
pub struct StoredClient {
    /// The client id.
    pub id: String,
    /// The secret of a dynamically registered client. A configured secret is not stored.
    pub secret: Option<SecretString>,
    /// The client authentication.
    pub auth_method: ClientAuth,
    /// The redirect URI of a dynamically registered client.
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
#[derive(Clone)]
pub struct StoredTokens {
    /// The access token.
    pub access: SecretString,
    /// The refresh token.
    pub refresh: Option<SecretString>,
    /// When the access token expires, in seconds since 1970, if the server named it.
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
pub struct StoreLock {
    _guard: Box<dyn Send + Sync>,
}

impl StoreLock {
    /// Wraps a guard.
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self {
            _guard: Box::new(guard),
        }
    }
}

impl fmt::Debug for StoreLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreLock").finish_non_exhaustive()
    }
}

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
            .field("server", &crate::config::show::shown_url(&self.server))
            .field("client", &self.client)
            .field("tokens", &self.tokens)
            .field("scopes", &self.scopes)
            .field("wanted_scopes", &self.wanted_scopes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for StoredClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredClient")
            .field("id", &self.id)
            .field("auth_method", &self.auth_method)
            .field("registration", &self.registration)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for StoredTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTokens")
            .field("refresh", &self.refresh.is_some())
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// The stored form of a grant.
#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    #[serde(flatten)]
    key: GrantKey,
    server: String,
    token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revocation_endpoint: Option<String>,
    client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    auth_method: ClientAuth,
    registration: Registration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redirect_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    access_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    issued_at: u64,
    scopes: Vec<String>,
    #[serde(default)]
    wanted_scopes: Vec<String>,
}

const VERSION: u32 = 1;

/// Serializes a grant with all secrets, for a store.
pub fn to_record(key: &GrantKey, grant: &StoredGrant) -> SecretString {
    let plain = |secret: &SecretString| secret.expose_secret().to_owned();
    let tokens = grant.tokens.as_ref();
    let record = Record {
        version: VERSION,
        key: key.clone(),
        server: grant.server.clone(),
        token_endpoint: grant.token_endpoint.clone(),
        revocation_endpoint: grant.revocation_endpoint.clone(),
        client_id: grant.client.id.clone(),
        client_secret: grant.client.secret.as_ref().map(plain),
        auth_method: grant.client.auth_method,
        registration: grant.client.registration,
        redirect_uri: grant.client.redirect_uri.clone(),
        access_token: tokens.map(|tokens| plain(&tokens.access)),
        refresh_token: tokens.and_then(|tokens| tokens.refresh.as_ref().map(plain)),
        expires_at: tokens.and_then(|tokens| tokens.expires_at),
        issued_at: grant.issued_at,
        scopes: grant.scopes.clone(),
        wanted_scopes: grant.wanted_scopes.clone(),
    };
    // Fails only for maps with keys that are not text.
    serde_json::to_string_pretty(&record)
        .unwrap_or_default()
        .into()
}

/// Parses the output of [`to_record`]. Returns `None` for anything else, also for another version.
pub fn from_record(text: &str) -> Option<(GrantKey, StoredGrant)> {
    let record: Record = serde_json::from_str(text).ok()?;
    if record.version != VERSION {
        return None;
    }
    let grant = StoredGrant {
        server: record.server,
        client: StoredClient {
            id: record.client_id,
            secret: record.client_secret.map(Into::into),
            auth_method: record.auth_method,
            redirect_uri: record.redirect_uri,
            registration: record.registration,
        },
        token_endpoint: record.token_endpoint,
        revocation_endpoint: record.revocation_endpoint,
        tokens: record.access_token.map(|access| StoredTokens {
            access: access.into(),
            refresh: record.refresh_token.map(Into::into),
            expires_at: record.expires_at,
        }),
        scopes: record.scopes,
        wanted_scopes: record.wanted_scopes,
        issued_at: record.issued_at,
    };
    Some((record.key, grant))
}

/// Locks of the tasks of one process, by key.
#[derive(Default)]
pub(super) struct TaskLocks(Mutex<HashMap<GrantKey, Arc<tokio::sync::Mutex<()>>>>);

impl TaskLocks {
    pub(super) async fn lock(&self, key: &GrantKey) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            locks.entry(key.clone()).or_default().clone()
        };
        lock.lock_owned().await
    }
}

/// Tokens in memory.
#[derive(Default)]
pub struct MemoryStore {
    grants: Mutex<HashMap<GrantKey, StoredGrant>>,
    locks: TaskLocks,
}

impl MemoryStore {
    fn lock_grants(&self) -> std::sync::MutexGuard<'_, HashMap<GrantKey, StoredGrant>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("grants", &self.lock_grants().len())
            .finish_non_exhaustive()
    }
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
        let mut found: Vec<_> = self
            .lock_grants()
            .iter()
            .filter(|(key, grant)| key.principal == principal && grant.server == server)
            .map(|(key, grant)| (key.clone(), grant.clone()))
            .collect();
        latest_first(&mut found);
        Ok(found)
    }

    async fn save(&self, key: &GrantKey, grant: &StoredGrant) -> Result<(), StoreError> {
        self.lock_grants().insert(key.clone(), grant.clone());
        Ok(())
    }

    async fn remove(&self, key: &GrantKey) -> Result<bool, StoreError> {
        Ok(self.lock_grants().remove(key).is_some())
    }

    async fn lock(&self, key: &GrantKey) -> Result<StoreLock, StoreError> {
        Ok(StoreLock::new(self.locks.lock(key).await))
    }
}
