//! Login options that apply to all servers of a host.

use std::{sync::Arc, time::Duration};

use crate::auth::store::{MemoryStore, TokenStore};

/// Default time limit of a browser login.
const DEFAULT_LOGIN_TIMEOUT: Duration = Duration::from_mins(5);

/// Callback that receives the URL of an authorization page and must open this page for a person,
/// for example in a browser.
pub type OnUrl = Arc<dyn Fn(&str) + Send + Sync>;

/// OAuth login options that apply to all servers of an MCP host.
#[derive(Clone, derive_more::Debug)]
pub struct AuthOptions {
    /// Store for the OAuth tokens of all servers.
    pub store: Arc<dyn TokenStore>,
    /// Callback that opens an authorization page. With a callback, the host starts a login when a
    /// server requires one, or when a call needs more scopes. The login counts towards the server's
    /// connect time-out or the call's deadline. A login that takes longer continues, and the next
    /// call uses its tokens. After a person declined a login, the host starts no other until
    /// [`login`](super::login()) succeeds. With `None`, a server that needs a login by a person
    /// fails.
    #[debug("{}", on_url.is_some())]
    pub on_url: Option<OnUrl>,
    /// Time limit for a person to complete a login in the browser.
    pub login_timeout: Duration,
    /// URL of the application's Client ID Metadata Document, which serves as its OAuth client id.
    pub client_metadata_url: Option<String>,
}

impl AuthOptions {
    /// Creates options with a token store and without `on_url`, so the host starts no browser
    /// logins.
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
    /// Returns options whose tokens are lost when the process exits ([`MemoryStore`]).
    fn default() -> Self {
        Self::with_store(Arc::new(MemoryStore::default()))
    }
}
