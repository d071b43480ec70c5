//! The login options of all servers.

use std::{fmt, sync::Arc, time::Duration};

use crate::auth::store::{MemoryStore, TokenStore};

/// Default of [`AuthOptions::login_timeout`].
const DEFAULT_LOGIN_TIMEOUT: Duration = Duration::from_mins(5);

/// Callback that receives the URL of an authorization page, which a person must open.
pub type OnUrl = Arc<dyn Fn(&str) + Send + Sync>;

/// Login options of an MCP host for all servers.
#[derive(Clone)]
pub struct AuthOptions {
    /// Store for OAuth tokens.
    pub store: Arc<dyn TokenStore>,
    /// Callback with which the host starts a login when a server requires one, or when a call needs
    /// more scopes. The login counts towards the server's connect time-out or the call's deadline.
    /// If it takes longer, the next call uses its result. After a declined login, the host starts
    /// no other until [`login`](super::login()) succeeds. With `None`, a server that needs a login
    /// fails.
    pub on_url: Option<OnUrl>,
    /// Time limit of a login.
    pub login_timeout: Duration,
    /// URL of the Client ID Metadata Document of the application.
    pub client_metadata_url: Option<String>,
}

impl AuthOptions {
    /// Creates options with the given token store and without automatic logins.
    pub fn with_store(store: Arc<dyn TokenStore>) -> Self {
        Self {
            store,
            on_url: None,
            login_timeout: DEFAULT_LOGIN_TIMEOUT,
            client_metadata_url: None,
        }
    }
}

impl Default for AuthOptions {
    /// Returns options with a [`MemoryStore`].
    fn default() -> Self {
        Self::with_store(Arc::new(MemoryStore::default()))
    }
}

impl fmt::Debug for AuthOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthOptions")
            .field("store", &self.store)
            .field("on_url", &self.on_url.is_some())
            .field("login_timeout", &self.login_timeout)
            .field("client_metadata_url", &self.client_metadata_url)
            .finish()
    }
}
