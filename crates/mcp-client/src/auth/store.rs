//! Where tokens are kept: the port, what is kept, and an implementation in memory.

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

use crate::auth::settings::ClientAuth;

/// What tokens belong to. Those of one authorization server are never given to another, nor those of
/// one resource or person.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GrantKey {
    /// The issuer identifier of the authorization server.
    pub issuer: String,
    /// The resource identifier of the MCP server (RFC 8707).
    pub resource: String,
    /// For whom: the configured `account`, the client of `client_credentials`, or `default`.
    pub principal: String,
}

/// What a login left behind. `Debug` shows no secrets.
#[derive(Clone)]
pub struct StoredGrant {
    /// The address of the MCP server as it is configured.
    pub server: String,
    /// As which client.
    pub client: StoredClient,
    /// Where tokens are renewed.
    pub token_endpoint: String,
    /// Where tokens are revoked.
    pub revocation_endpoint: Option<String>,
    /// `None` when they have become useless; the rest stays for the next login.
    pub tokens: Option<StoredTokens>,
    /// The scopes that were asked for.
    pub scopes: Vec<String>,
    /// Further scopes that a call needed, for the next login to ask for.
    pub wanted_scopes: Vec<String>,
    /// When the tokens were issued, in seconds since 1970.
    pub issued_at: u64,
}

/// A client of an authorization server.
#[derive(Clone)]
pub struct StoredClient {
    /// Its id.
    pub id: String,
    /// Its secret, if it was registered dynamically; that of a configured client is not kept.
    pub secret: Option<SecretString>,
    /// How it proves itself.
    pub auth_method: ClientAuth,
    /// Where it is sent back to, if it was registered dynamically.
    pub redirect_uri: Option<String>,
    /// How it came to be.
    pub registration: Registration,
}

/// How a client came to be known to an authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Registration {
    /// By a person, beforehand.
    Configured,
    /// By a Client ID Metadata Document.
    Document,
    /// By RFC 7591.
    Dynamic,
}

/// The tokens themselves.
#[derive(Clone)]
pub struct StoredTokens {
    /// Goes with every request.
    pub access: SecretString,
    /// Gets a new access token.
    pub refresh: Option<SecretString>,
    /// When the access token ends, in seconds since 1970, if that was said.
    pub expires_at: Option<u64>,
}

/// Keeps tokens.
///
/// An implementation must be safe to be used by several tasks, and where it outlives the process, by
/// several processes.
#[async_trait]
pub trait TokenStore: fmt::Debug + Send + Sync {
    /// Everything that is kept for this address and principal, the latest first. Of several issuers
    /// there are several.
    async fn find(
        &self,
        server: &str,
        principal: &str,
    ) -> Result<Vec<(GrantKey, StoredGrant)>, StoreError>;

    /// Keeps it instead of what was there.
    async fn save(&self, key: &GrantKey, grant: &StoredGrant) -> Result<(), StoreError>;

    /// Forgets it; says whether it was there.
    async fn remove(&self, key: &GrantKey) -> Result<bool, StoreError>;

    /// Waits for its turn to renew these tokens, until the lock is dropped: a refresh token works
    /// once, so only one may use it.
    async fn lock(&self, key: &GrantKey) -> Result<StoreLock, StoreError>;
}

/// A turn to renew tokens; dropping it ends the turn.
pub struct StoreLock {
    _held: Box<dyn Send + Sync>,
}

impl StoreLock {
    /// The lock that is held as long as this value is.
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self {
            _held: Box::new(held),
        }
    }
}

impl fmt::Debug for StoreLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreLock").finish_non_exhaustive()
    }
}

/// Why tokens cannot be kept or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Another process holds the tokens.
    #[error("another process has been renewing the same tokens for too long (`{}`)", path.display())]
    Busy {
        /// The file that it holds.
        path: PathBuf,
    },
    /// Another implementation's error.
    #[error("the token store: {reason}")]
    Other {
        /// Its text; without secrets.
        reason: String,
    },
}

impl StoredTokens {
    /// Whether it is to be renewed before it is used: it has ended, or does so within half a minute.
    pub(super) fn is_stale(&self) -> bool {
        const MARGIN: u64 = 30;
        self.expires_at
            .is_some_and(|end| end <= now().saturating_add(MARGIN))
    }
}

/// Seconds since 1970.
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

/// A key and its grant as text, the form in which stores keep them.
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

/// A key and its grant as JSON, for a store to keep: with all secrets.
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
    // Fails for maps with keys that are no text only.
    serde_json::to_string_pretty(&record)
        .unwrap_or_default()
        .into()
}

/// The opposite of [`to_record`]; `None` for anything else, also for a later version of it.
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

/// Turns of the tasks of one process, by key.
#[derive(Default)]
pub(super) struct Turns(Mutex<HashMap<GrantKey, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    pub(super) async fn wait(&self, key: &GrantKey) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.entry(key.clone()).or_default().clone()
        };
        turn.lock_owned().await
    }
}

/// Tokens in memory, gone with the process.
#[derive(Default)]
pub struct MemoryStore {
    grants: Mutex<HashMap<GrantKey, StoredGrant>>,
    turns: Turns,
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
        Ok(StoreLock::new(self.turns.wait(key).await))
    }
}
