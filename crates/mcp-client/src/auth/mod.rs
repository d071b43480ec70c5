//! Login to HTTP servers: OAuth 2.1 as in MCP 2026-07-28 and 2025-11-25 (basic/authorization).
//!
//! - [`login()`] and [`logout`] are the operations of a user.
//! - [`AuthConfig`] contains the settings of one server, [`AuthOptions`] those of all servers.
//! - [`TokenStore`] stores tokens: [`FileStore`], [`MemoryStore`], or another implementation.
//!
//! An MCP host sends the token with every request. It renews the token before it expires and when
//! the server rejects it, and requests more scopes when a call needs them. If only a person can log
//! in, the server fails with [`AuthError::NeedsLogin`]. A server with a configured `Authorization`
//! header has no login.
//!
//! rmcp has an authorization manager (feature `auth`). It is not used for these reasons:
//!
//! - It cancels a renewal together with the request, and then the new refresh token is lost.
//! - It locks all requests of a server during a renewal.
//! - Its store has one login, not one per issuer, resource and principal.
//! - It does not request more scopes during a call, listen for the redirect or store tokens.
//!
//! Not implemented: the keyring of the operating system ([`serialize_grant`] and [`parse_grant`]
//! help to write such a [`TokenStore`]), and the extensions for enterprise-managed authorization,
//! workload identity and `DPoP`.

pub(crate) mod challenge;
pub(crate) mod error;
pub(crate) mod http_client;
pub(crate) mod login;
mod metadata;
mod oauth_http_client;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod store;
mod token;

use reqwest::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use serde::Serialize;

use crate::{
    config::{ServerConfig, ServerTransport},
    primitives::error::root_cause,
};

pub use crate::config::login::{AuthConfig, ClientAuth, GrantType};
pub use error::AuthError;
pub use settings::{AuthOptions, OnUrl};
pub use store::file::FileStore;
pub use store::{
    GrantKey, MemoryStore, Registration, StoreError, StoreLock, StoredClient, StoredGrant,
    StoredTokens, TokenStore, parse_grant, serialize_grant,
};

use challenge::BearerChallenge;
use session::{Session, StoredLogin};

/// Summary of an OAuth login that was stored, without its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LoginInfo {
    /// Issuer identifier of the authorization server that issued the tokens.
    pub issuer: String,
    /// Resource identifier of the MCP server for which the tokens are valid.
    pub resource: String,
    /// Account of the login: the configured `account`, or else the client id of a
    /// `client_credentials` login, or else `default`.
    pub principal: String,
    /// Id of the OAuth client that requested the tokens.
    pub client_id: String,
    /// Scopes that the login requested.
    pub scopes: Vec<String>,
    /// Expiry time of the access token in seconds since 1970, if the authorization server sent it.
    pub expires_at: Option<u64>,
    /// Whether the tokens include a refresh token, which renews them without a person.
    pub renewable: bool,
}

/// Logs in to a server and stores the tokens.
///
/// With the grant `authorization_code`, `on_url` receives the URL of the authorization page and
/// must open it. The browser must reach the redirect on 127.0.0.1 within
/// [`AuthOptions::login_timeout`]. The grant `client_credentials` needs no person.
pub async fn login(
    server: &ServerConfig,
    options: &AuthOptions,
    on_url: impl Fn(&str) + Send + Sync,
) -> Result<LoginInfo, AuthError> {
    let session = Session::from_config(server, options)?;
    let challenge = request_auth_challenge(server).await?;
    let stored = session.load_usable_logins().await?;
    let discovered = session.discover_auth_server(&challenge, &stored).await?;
    let before = session.find_login(stored, &discovered)?;
    let scopes = &challenge.scopes;
    let current = session
        .login_and_store(&discovered, before.as_ref(), scopes, Some(&on_url))
        .await?;
    let StoredLogin { key, grant } = current;
    let tokens = grant.tokens.as_ref();
    Ok(LoginInfo {
        issuer: key.issuer,
        resource: key.resource,
        principal: key.principal,
        client_id: grant.client.id,
        expires_at: tokens.and_then(|tokens| tokens.expires_at),
        renewable: tokens.is_some_and(|tokens| tokens.refresh.is_some()),
        scopes: grant.scopes,
    })
}

/// Removes the stored tokens of a server and tries to revoke them. Returns `false` if no tokens
/// were stored.
pub async fn logout(server: &ServerConfig, options: &AuthOptions) -> Result<bool, AuthError> {
    let session = Session::from_config(server, options)?;
    let mut any = false;
    for current in session.load_all_logins().await? {
        any |= options.store.remove_grant(&current.key).await?;
        // A failed revocation is only logged: the tokens are removed here and expire later.
        if let Err(error) = session.revoke_tokens(&current).await {
            tracing::warn!(server = server.name, %error, "failed to revoke tokens");
        }
    }
    Ok(any)
}

/// Sends a request without a token and returns the challenge in the response. Returns an empty
/// challenge if the response contains none. Discovery then uses the well-known URLs of the server.
async fn request_auth_challenge(server: &ServerConfig) -> Result<BearerChallenge, AuthError> {
    let ServerTransport::StreamableHttp { url, headers } = &server.transport else {
        return Ok(BearerChallenge::default());
    };
    let unusable = |reason: String| AuthError::Configuration { reason };
    let client = http_client::build_client(url, server.connect_timeout)
        .map_err(|error| unusable(error.to_string()))?;
    let headers =
        http_client::parse_headers(headers).map_err(|error| unusable(error.to_string()))?;
    let request = client
        .post(url)
        .timeout(server.connect_timeout)
        .headers(headers.into_iter().collect())
        .header(ACCEPT, "application/json, text/event-stream")
        .header(CONTENT_TYPE, "application/json")
        .body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
    let response = request.send().await.map_err(|error| {
        let cause = root_cause(&error);
        AuthError::Failed(format!("no response from the server: {cause}"))
    })?;
    let found = response
        .headers()
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .map(BearerChallenge::parse_header)
        .find(|challenge| *challenge != BearerChallenge::default());
    Ok(found.unwrap_or_default())
}
