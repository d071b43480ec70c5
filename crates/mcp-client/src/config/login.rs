//! Login settings of one server.

use secrecy::SecretString;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::config::{
    error::ConfigError,
    read::{self, deserialize_converted},
};

/// OAuth settings of one server: the keys below `authorization:` in its configuration. All are
/// optional if clients can register dynamically. `Debug` shows no secrets.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthConfig {
    /// `grant`: the OAuth grant type, which determines whether a person or the client logs in.
    pub grant: GrantType,
    /// `client_id`: id of an OAuth client that is registered with the authorization server.
    #[serde(deserialize_with = "read::deserialize_text")]
    pub client_id: Option<String>,
    /// `client_secret`: secret of the OAuth client. Requires an `issuer` or a `metadata_url`.
    #[serde(deserialize_with = "read::deserialize_text")]
    pub client_secret: Option<SecretString>,
    /// `private_key`: key that signs client assertions (`private_key_jwt`, RFC 7523). A P-256 or
    /// RSA key as PKCS #8 in PEM format.
    #[serde(deserialize_with = "read::deserialize_text")]
    pub private_key: Option<SecretString>,
    /// `token_endpoint_auth_method`: how the client authenticates itself. `None` selects a method
    /// that the authorization server supports.
    #[serde(rename = "token_endpoint_auth_method")]
    pub auth_method: Option<ClientAuth>,
    /// `client_metadata_url`: URL of a Client ID Metadata Document. The URL is the client id if the
    /// authorization server supports such documents. Overrides
    /// [`AuthOptions::client_metadata_url`](crate::auth::AuthOptions::client_metadata_url).
    #[serde(deserialize_with = "deserialize_client_id_url")]
    pub client_metadata_url: Option<String>,
    /// `scopes`: OAuth scopes that every login requests, instead of the scopes that the server
    /// proposes. Scopes that a call needs are requested in addition.
    #[serde(deserialize_with = "deserialize_scopes")]
    pub scopes: Option<Vec<String>>,
    /// `issuer`: issuer of the only authorization server that may receive the client's credentials.
    #[serde(deserialize_with = "read::deserialize_url")]
    pub issuer: Option<String>,
    /// `metadata_url`: URL of the authorization-server metadata, if the MCP server does not
    /// announce it.
    #[serde(deserialize_with = "read::deserialize_url")]
    pub metadata_url: Option<String>,
    /// `account`: name of the stored login. Different names allow two logins to one server URL.
    #[serde(deserialize_with = "read::deserialize_text")]
    pub account: Option<String>,
    /// `redirect_port`: port of the redirect URI `http://127.0.0.1:PORT/callback`, for clients that
    /// are registered with a fixed port. Defaults to any free port.
    #[serde(deserialize_with = "deserialize_port")]
    pub redirect_port: Option<u16>,
}

/// OAuth grant type, which determines whether a person or the client logs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantType {
    /// A person logs in with a browser (`authorization_code` with PKCE).
    #[default]
    AuthorizationCode,
    /// The client logs in with its own credentials (`client_credentials`).
    ClientCredentials,
}

/// Method with which an OAuth client authenticates itself at the token endpoint (RFC 7591).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// The client does not authenticate itself (public client).
    None,
    /// The client sends its secret in an `Authorization` header.
    ClientSecretBasic,
    /// The client sends its secret in the request body.
    ClientSecretPost,
    /// The client sends an assertion that it signs with its private key.
    PrivateKeyJwt,
}

impl ClientAuth {
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
    /// Returns the principal of the stored login: the configured `account`, or else the client id
    /// for the grant `client_credentials`, or else `default`.
    pub(crate) fn token_principal(&self) -> &str {
        match (&self.account, self.grant, &self.client_id) {
            (Some(account), ..) => account,
            (None, GrantType::ClientCredentials, Some(client)) => client,
            _ => "default",
        }
    }

    /// Returns whether the configuration contains an OAuth setting, such as `client_id` or
    /// `scopes`, which shows that the server uses OAuth.
    pub(crate) fn has_oauth_settings(&self) -> bool {
        self.grant == GrantType::ClientCredentials
            || self.client_id.is_some()
            || self.client_metadata_url.is_some()
            || self.scopes.is_some()
            || self.issuer.is_some()
            || self.metadata_url.is_some()
            || self.account.is_some()
    }

    /// Returns whether a `client_secret` is set without the authorization server that may receive
    /// it. The MCP server could then choose the receiver.
    pub(crate) fn lacks_issuer(&self) -> bool {
        self.client_secret.is_some() && self.issuer.is_none() && self.metadata_url.is_none()
    }

    /// Returns an error if a login setting is missing that another one requires: the `client_id`,
    /// or the `issuer` for a `client_secret`.
    pub(super) fn check_settings(&self, path: &str) -> Result<(), ConfigError> {
        let needs_client = self.grant == GrantType::ClientCredentials
            || self.client_secret.is_some()
            || self.private_key.is_some();
        if needs_client && self.client_id.is_none() {
            let reason = "requires a `client_id`: set the id of a client that is registered with \
                          the authorization server";
            return Err(ConfigError::invalid_value(path, reason));
        }
        if self.lacks_issuer() {
            let reason = "contains a `client_secret`, which requires an `issuer`, the URL of the \
                          authorization server. Otherwise the MCP server could choose who receives \
                          the secret";
            return Err(ConfigError::invalid_value(path, reason));
        }
        Ok(())
    }

    pub(crate) fn secret_values(&self) -> impl Iterator<Item = &SecretString> {
        self.client_secret.iter().chain(&self.private_key)
    }
}

/// Deserializes OAuth scopes from a list, or from a text with spaces between them as in OAuth.
fn deserialize_scopes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    deserialize_converted(deserializer, "a list of strings", |value| match value {
        Value::String(text) => Some(text.split_whitespace().map(str::to_owned).collect()),
        other => read::scalars_to_texts(other),
    })
}

/// Deserializes the URL of a Client ID Metadata Document. The URL must use `https` and have a path.
fn deserialize_client_id_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let expected = "a URL that starts with `https://` and has a path";
    deserialize_converted(deserializer, expected, |value| {
        let url = value.as_str()?;
        let (_, document) = url.strip_prefix("https://")?.split_once('/')?;
        (!document.is_empty()).then(|| url.to_owned())
    })
}

fn deserialize_port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    deserialize_converted(deserializer, "a port number from 1 to 65535", |value| {
        let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
        port.filter(|port| *port > 0)
    })
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;
