//! Logging in to HTTP servers: OAuth 2.1 as MCP 2026-07-28 and 2025-11-25 say (basic/authorization).
//!
//! - [`login`], [`logout`] and [`status`] are what a person does with one server.
//! - [`AuthConfig`] is what is configured of one server, [`AuthOptions`] of all of them.
//! - [`TokenStore`] is where tokens are kept: [`FileStore`], [`MemoryStore`], or one of your own.
//!
//! A host brings the token along with every request, renews it before it ends and when the server refuses
//! it, and asks for more scopes where a call needs them. Where that takes a person, the server fails with
//! [`AuthError::NeedsLogin`] as its reason. An `Authorization` header in the configuration wins: such a
//! server is never logged in to.
//!
//! rmcp has an authorization manager too (feature `auth`), with good rules about addresses. This is our own
//! because of what that leaves to its user: a renewal there ends with the request that began it, and the
//! new refresh token with it; one lock holds up all requests of a server while a token is got; the
//! store knows one login instead of one for each issuer, resource and person; asking for more scopes in
//! a call, listening for the redirect and keeping tokens is up to the caller. It would add `oauth2` and
//! older versions of what is in the tree already, for requests of a few parameters each.
//!
//! Not done: the keyring of the operating system, which on Linux brings a D-Bus stack (a [`TokenStore`] over
//! one is [`to_record`] and [`from_record`] away); and the extensions for enterprise-managed authorization,
//! workload identity and `DPoP`.

pub(crate) mod challenge;
pub(crate) mod error;
mod fetch;
pub(crate) mod login;
mod metadata;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod store;
mod token;

use reqwest::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use serde::Serialize;

use crate::{
    config::{ServerConfig, ServerTransport},
    transport::http,
};

pub use error::AuthError;
pub use settings::{AuthConfig, AuthOptions, ClientAuth, DEFAULT_LOGIN_TIMEOUT, GrantType, OnUrl};
pub use store::file::FileStore;
pub use store::{
    GrantKey, MemoryStore, Registration, StoreError, StoreLock, StoredClient, StoredGrant,
    StoredTokens, TokenStore, from_record, to_record,
};

use challenge::Challenge;
use session::{Current, Session};

/// The tokens of one server, without the tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LoginInfo {
    /// Who issued them.
    pub issuer: String,
    /// What they are for.
    pub resource: String,
    /// For whom.
    pub principal: String,
    /// As which client.
    pub client_id: String,
    /// The scopes that were asked for.
    pub scopes: Vec<String>,
    /// Scopes that a call needed since, which the next login asks for.
    pub wanted_scopes: Vec<String>,
    /// When the access token ends, in seconds since 1970, if that is known.
    pub expires_at: Option<u64>,
    /// Whether they can be renewed without a person.
    pub renewable: bool,
}

/// How one stands with a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoginStatus {
    /// It is not logged in to: a process, or a server with an `Authorization` header of its own.
    NotApplicable,
    /// There are no tokens. That may be right: not every server asks for them.
    LoggedOut,
    /// There are tokens, or they can be renewed.
    LoggedIn(LoginInfo),
    /// The access token has ended, and there is nothing to renew it with.
    Expired(LoginInfo),
}

/// Logs in to a server, whether that was done before or not, and keeps the tokens.
///
/// With the grant of a person, `on_url` is given the address of the authorization page; opening it is up
/// to the caller. The browser is sent back to 127.0.0.1, which is waited for as long as
/// [`AuthOptions::login_timeout`] says. With `client_credentials` nobody is asked.
pub async fn login(
    server: &ServerConfig,
    options: &AuthOptions,
    on_url: impl Fn(&str) + Send + Sync,
) -> Result<LoginInfo, AuthError> {
    let session = Session::of_server(server, options)?;
    let challenge = challenge_of(server).await?;
    let stored = session.stored().await?;
    let discovered = session.discover(&challenge, &stored).await?;
    let before = session.before(stored, &discovered)?;
    let login = session
        .prepared(&discovered, before.as_ref(), &challenge.scopes)
        .await?;
    let grant = match session.config().grant {
        GrantType::AuthorizationCode => login.in_browser(&on_url).await?,
        GrantType::ClientCredentials => login.as_client().await?,
    };
    let current = session.keep(login.key(), grant).await?;
    Ok(info(&current))
}

/// Forgets the tokens of a server, and tells the authorization server so where that is possible. Says
/// whether there were any.
pub async fn logout(server: &ServerConfig, options: &AuthOptions) -> Result<bool, AuthError> {
    let session = Session::of_server(server, options)?;
    let mut any = false;
    for current in session.stored_by_any_client().await? {
        any |= options.store.remove(current.key()).await?;
        // What is forgotten here stays good there if this fails, until it ends.
        if let Err(error) = session.revoke(&current).await {
            tracing::warn!(server = server.name, %error, "tokens could not be revoked");
        }
    }
    Ok(any)
}

/// How one stands with a server, as far as the store knows. Asks nobody.
pub async fn status(
    server: &ServerConfig,
    options: &AuthOptions,
) -> Result<LoginStatus, AuthError> {
    let session = match Session::of_server(server, options) {
        Ok(session) => session,
        Err(AuthError::NotHttp { .. } | AuthError::StaticHeader { .. }) => {
            return Ok(LoginStatus::NotApplicable);
        }
        Err(error) => return Err(error),
    };
    let stored = session.stored().await?;
    let Some(current) = stored
        .first()
        .filter(|current| current.grant().tokens.is_some())
    else {
        return Ok(LoginStatus::LoggedOut);
    };
    let info = info(current);
    let again_by_itself = info.renewable || session.config().grant == GrantType::ClientCredentials;
    let ended = info.expires_at.is_some_and(|end| end <= store::now());
    Ok(if ended && !again_by_itself {
        LoginStatus::Expired(info)
    } else {
        LoginStatus::LoggedIn(info)
    })
}

fn info(current: &Current) -> LoginInfo {
    let (key, grant) = (current.key(), current.grant());
    let tokens = grant.tokens.as_ref();
    LoginInfo {
        issuer: key.issuer.clone(),
        resource: key.resource.clone(),
        principal: key.principal.clone(),
        client_id: grant.client.id.clone(),
        scopes: grant.scopes.clone(),
        wanted_scopes: grant.wanted_scopes.clone(),
        expires_at: tokens.and_then(|tokens| tokens.expires_at),
        renewable: tokens.is_some_and(|tokens| tokens.refresh.is_some()),
    }
}

/// What the server says to somebody without a token. Whether it understands the rest of the request does
/// not matter; one that says nothing of use is looked up at the well-known addresses.
async fn challenge_of(server: &ServerConfig) -> Result<Challenge, AuthError> {
    let ServerTransport::StreamableHttp { url, headers } = &server.transport else {
        return Ok(Challenge::default());
    };
    let unusable = |reason: String| AuthError::Configuration { reason };
    let client =
        http::client(url, server.connect_timeout).map_err(|error| unusable(error.to_string()))?;
    let headers = http::headers(headers).map_err(|error| unusable(error.to_string()))?;
    let request = client
        .post(url)
        .timeout(server.connect_timeout)
        .headers(headers.into_iter().collect())
        .header(ACCEPT, "application/json, text/event-stream")
        .header(CONTENT_TYPE, "application/json")
        .body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
    let response = request
        .send()
        .await
        .map_err(|error| AuthError::Unreachable {
            what: "server",
            url: url.clone(),
            reason: http::root_cause(&error),
        })?;
    let found = response
        .headers()
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .map(Challenge::read)
        .find(|challenge| *challenge != Challenge::default());
    Ok(found.unwrap_or_default())
}
