//! What is configured of a login, per server and for all of them.

use std::{fmt, sync::Arc, time::Duration};

use secrecy::SecretString;

use crate::auth::store::{MemoryStore, TokenStore};

/// How long a login may take where nothing else is said.
pub const DEFAULT_LOGIN_TIMEOUT: Duration = Duration::from_mins(5);

/// How one server is logged in to: the keys below `authorization:` in its configuration. Nothing has to
/// be set for a server that registers clients by itself. `Debug` shows no secrets.
#[derive(Clone, Default)]
pub struct AuthConfig {
    /// `grant`: who is logged in.
    pub grant: GrantType,
    /// `client_id`: the client that is registered with the authorization server beforehand.
    pub client_id: Option<String>,
    /// `client_secret`: what the client proves itself with, if it has a secret. It needs an `issuer`
    /// or a `metadata_url`.
    pub client_secret: Option<SecretString>,
    /// `private_key`: the same for `private_key_jwt` (RFC 7523), a key of P-256 or RSA as PEM of PKCS #8.
    pub private_key: Option<SecretString>,
    /// `token_endpoint_auth_method`: how; `None` takes what the authorization server supports.
    pub auth_method: Option<ClientAuth>,
    /// `client_metadata_url`: the address of a Client ID Metadata Document, which is the client's id
    /// where the authorization server supports that; wins over [`AuthOptions::client_metadata_url`].
    pub client_metadata_url: Option<String>,
    /// `scopes`: what to ask for, instead of what the server proposes for a start. What a call turns out
    /// to need is asked for as well.
    pub scopes: Option<Vec<String>>,
    /// `issuer`: the only authorization server to trust with this client.
    pub issuer: Option<String>,
    /// `metadata_url`: where the metadata of the authorization server are, for a server that does not
    /// say it.
    pub metadata_url: Option<String>,
    /// `account`: a name for whom the tokens are for, so that one server can be configured for two
    /// accounts.
    pub account: Option<String>,
    /// `redirect_port`: the port of 127.0.0.1 that the authorization server sends the browser back to,
    /// for clients that are registered with a fixed one. The path is `/callback`.
    pub redirect_port: Option<u16>,
}

/// Who is logged in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GrantType {
    /// A person, in a browser (`authorization_code` with PKCE).
    #[default]
    AuthorizationCode,
    /// The client itself (`client_credentials`); nobody is asked.
    ClientCredentials,
}

/// How a client proves itself at the token endpoint (RFC 7591, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// Not at all: a public client.
    None,
    /// The secret in an `Authorization` header.
    ClientSecretBasic,
    /// The secret in the body.
    ClientSecretPost,
    /// A signed statement.
    PrivateKeyJwt,
}

impl ClientAuth {
    /// All of them, by the names of the standard.
    pub(crate) const NAMES: [(&'static str, Self); 4] = [
        ("none", Self::None),
        ("client_secret_basic", Self::ClientSecretBasic),
        ("client_secret_post", Self::ClientSecretPost),
        ("private_key_jwt", Self::PrivateKeyJwt),
    ];

    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::NAMES
            .into_iter()
            .find_map(|(known, method)| (known == name).then_some(method))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }
}

impl AuthConfig {
    /// Whose tokens they are, as the store keys them.
    pub(super) fn principal(&self) -> &str {
        match (&self.account, self.grant, &self.client_id) {
            (Some(account), ..) => account,
            (None, GrantType::ClientCredentials, Some(client)) => client,
            _ => "default",
        }
    }

    /// Whether anything says that this server is logged in to.
    pub(super) fn is_set(&self) -> bool {
        self.grant == GrantType::ClientCredentials
            || self.client_id.is_some()
            || self.client_metadata_url.is_some()
            || self.scopes.is_some()
            || self.issuer.is_some()
            || self.metadata_url.is_some()
            || self.account.is_some()
    }

    /// Returns whether the MCP server would choose who receives the secret.
    pub(crate) fn lacks_issuer(&self) -> bool {
        self.client_secret.is_some() && self.issuer.is_none() && self.metadata_url.is_none()
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        self.client_secret.iter().chain(&self.private_key)
    }
}

impl fmt::Debug for AuthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthConfig")
            .field("grant", &self.grant)
            .field("client_id", &self.client_id)
            .field("client_secret", &self.client_secret.is_some())
            .field("private_key", &self.private_key.is_some())
            .field("auth_method", &self.auth_method)
            .field("client_metadata_url", &self.client_metadata_url)
            .field("scopes", &self.scopes)
            .field("issuer", &self.issuer)
            .field("metadata_url", &self.metadata_url)
            .field("account", &self.account)
            .field("redirect_port", &self.redirect_port)
            .finish()
    }
}

/// Is given the address of an authorization page, for a person to open it.
pub type OnUrl = Arc<dyn Fn(&str) + Send + Sync>;

/// How all servers are logged in to.
#[derive(Clone)]
pub struct AuthOptions {
    /// Where tokens are kept.
    pub store: Arc<dyn TokenStore>,
    /// Lets a host log in by itself when a server asks for it, also for more scopes in the middle of a
    /// call: it gives the address of the page to this, and waits. The wait counts towards the server's
    /// connect time-out or the call's deadline; a login that is made later counts for the next call.
    /// Who declined is not asked again until there was a [`login`](super::login). `None`: a server
    /// that asks for a login fails, and says so.
    pub on_url: Option<OnUrl>,
    /// How long a person has to log in.
    pub login_timeout: Duration,
    /// The address of a Client ID Metadata Document of this application.
    pub client_metadata_url: Option<String>,
    /// By which name this application registers itself; people see it on the authorization page.
    pub client_name: String,
}

impl AuthOptions {
    /// Tokens in this store, and nobody who could log in.
    pub fn with_store(store: Arc<dyn TokenStore>) -> Self {
        Self {
            store,
            on_url: None,
            login_timeout: DEFAULT_LOGIN_TIMEOUT,
            client_metadata_url: None,
            client_name: "Switchboard".to_owned(),
        }
    }
}

impl Default for AuthOptions {
    /// Tokens in memory only.
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
            .field("client_name", &self.client_name)
            .finish()
    }
}
