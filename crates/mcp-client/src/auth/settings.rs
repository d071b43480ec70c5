//! The login options of all servers.

use std::{fmt, sync::Arc, time::Duration};

use crate::auth::store::{MemoryStore, TokenStore};

/// The default of [`AuthOptions::login_timeout`].
const DEFAULT_LOGIN_TIMEOUT: Duration = Duration::from_mins(5);

/// Receives the URL of an authorization page, which a person must open.
pub type OnUrl = Arc<dyn Fn(&str) + Send + Sync>;

/// The login options of all servers.
#[derive(Clone)]
pub struct AuthOptions {
    /// The token store.
    pub store: Arc<dyn TokenStore>,
    /// Lets the host start a login when a server asks for it, also for more scopes during a call.
    /// The wait counts towards the server's connect time-out or the call's deadline; a later login
    /// is used by the next call. After a declined login the host starts none until
    /// [`login`](super::login) succeeds. `None`: a server that needs a login fails.
    pub on_url: Option<OnUrl>,
    /// The time limit of a login.
    pub login_timeout: Duration,
    /// The URL of a Client ID Metadata Document of this application.
    pub client_metadata_url: Option<String>,
}

impl AuthOptions {
    /// Creates options with this store and without automatic logins.
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
    /// Returns options with tokens in memory.
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
