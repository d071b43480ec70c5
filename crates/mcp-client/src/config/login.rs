//! The login of one server.

use std::fmt;

use secrecy::SecretString;

/// The login of one server: the keys below `authorization:` in its configuration. A server that
/// registers clients dynamically needs none of them. `Debug` shows no secrets.
#[derive(Clone, Default)]
pub struct AuthConfig {
    /// `grant`: the grant type.
    pub grant: GrantType,
    /// `client_id`: a client that is registered with the authorization server.
    pub client_id: Option<String>,
    /// `client_secret`: the secret of the client. It needs an `issuer` or a `metadata_url`.
    pub client_secret: Option<SecretString>,
    /// `private_key`: the key for `private_key_jwt` (RFC 7523), P-256 or RSA, as PEM of PKCS #8.
    pub private_key: Option<SecretString>,
    /// `token_endpoint_auth_method`: the client authentication. `None` uses a supported one.
    pub auth_method: Option<ClientAuth>,
    /// `client_metadata_url`: the URL of a Client ID Metadata Document, which is the client id if
    /// the authorization server supports it. Replaces
    /// [`AuthOptions::client_metadata_url`](crate::auth::AuthOptions::client_metadata_url).
    pub client_metadata_url: Option<String>,
    /// `scopes`: the scopes of the first login instead of the server's proposal. Scopes that a call
    /// needs are requested too.
    pub scopes: Option<Vec<String>>,
    /// `issuer`: the only trusted authorization server for this client.
    pub issuer: Option<String>,
    /// `metadata_url`: the URL of the metadata of the authorization server, for a server that does
    /// not name it.
    pub metadata_url: Option<String>,
    /// `account`: the principal of the tokens, so that one server can have two accounts.
    pub account: Option<String>,
    /// `redirect_port`: the port on 127.0.0.1 for the redirect, for clients with a fixed one. The
    /// path is `/callback`.
    pub redirect_port: Option<u16>,
}

/// The OAuth grant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GrantType {
    /// The login of a person in a browser (`authorization_code` with PKCE).
    #[default]
    AuthorizationCode,
    /// The login of the client itself (`client_credentials`).
    ClientCredentials,
}

/// The client authentication at the token endpoint (RFC 7591, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// None: a public client.
    None,
    /// The secret in an `Authorization` header.
    ClientSecretBasic,
    /// The secret in the body.
    ClientSecretPost,
    /// A signed assertion.
    PrivateKeyJwt,
}

impl ClientAuth {
    /// All methods with their standard names.
    pub(crate) const NAMES: [(&'static str, Self); 4] = [
        ("none", Self::None),
        ("client_secret_basic", Self::ClientSecretBasic),
        ("client_secret_post", Self::ClientSecretPost),
        ("private_key_jwt", Self::PrivateKeyJwt),
    ];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .into_iter()
            .find_map(|(known, method)| (known == name).then_some(method))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }
}

impl AuthConfig {
    /// Returns the principal of the tokens in the store.
    pub(crate) fn principal(&self) -> &str {
        match (&self.account, self.grant, &self.client_id) {
            (Some(account), ..) => account,
            (None, GrantType::ClientCredentials, Some(client)) => client,
            _ => "default",
        }
    }

    /// Returns whether a login is configured.
    pub(crate) fn is_set(&self) -> bool {
        self.grant == GrantType::ClientCredentials
            || self.client_id.is_some()
            || self.client_metadata_url.is_some()
            || self.scopes.is_some()
            || self.issuer.is_some()
            || self.metadata_url.is_some()
            || self.account.is_some()
    }

    /// Returns whether the MCP server could choose who receives the client secret.
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
