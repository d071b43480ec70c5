//! Errors of a login.

use std::time::Duration;

use crate::config::show::shown_url;

use crate::auth::store::StoreError;

/// Why no token is available for a server. No variant contains a token, a secret, or a URL with
/// user info or query. Text of an authorization server is shortened and has no control characters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The server is a child process, which reads its credentials from its environment.
    #[error("`{server}` is not an HTTP server: only HTTP servers have a login")]
    NotHttp {
        /// The server.
        server: String,
    },
    /// An `Authorization` header is configured, so the server has no login.
    #[error(
        "`{server}` has an `Authorization` header in its configuration: remove the header to log in"
    )]
    StaticHeader {
        /// The server.
        server: String,
    },
    /// A person must log in.
    #[error(
        "it needs a login: run `switchboard servers login {server}`{}",
        scope_clause(scopes)
    )]
    NeedsLogin {
        /// The server.
        server: String,
        /// The scopes that the server named.
        scopes: Vec<String>,
    },
    /// The server rejects a new token.
    #[error("it rejects the new token of {issuer}")]
    StillRefused {
        /// The issuer of the token.
        issuer: String,
    },
    /// The scopes that the call needs were requested before and not granted.
    #[error("the login does not cover the scopes `{}`, which were requested before", scopes.join(" "))]
    InsufficientScope {
        /// The scopes that the call needs.
        scopes: Vec<String>,
    },
    /// No metadata describe the login.
    #[error("it does not describe its login: {reason}")]
    NoMetadata {
        /// The missing or invalid metadata.
        reason: String,
    },
    /// A discovered URL that must not be requested.
    #[error("the {what} `{}` is not used: {reason}", shown_url(url))]
    Guarded {
        /// The purpose of the URL.
        what: &'static str,
        /// The URL.
        url: String,
        /// The violated rule.
        reason: &'static str,
    },
    /// A request had no answer.
    #[error("no answer from the {what} `{}`: {reason}", shown_url(url))]
    Unreachable {
        /// The requested party.
        what: &'static str,
        /// The URL.
        url: String,
        /// The cause.
        reason: String,
    },
    /// An answer is not valid.
    #[error("the answer of the {what} `{}` is not valid: {reason}", shown_url(url))]
    BadAnswer {
        /// The requested party.
        what: &'static str,
        /// The URL.
        url: String,
        /// The fault.
        reason: String,
    },
    /// The metadata belong to another server (RFC 9728, section 3.3).
    #[error("its metadata belong to `{found}`, not to `{expected}`")]
    ResourceMismatch {
        /// The server.
        expected: String,
        /// The server that the metadata name.
        found: String,
    },
    /// Metadata or a redirect name another issuer (RFC 8414, section 3.3; RFC 9207, section 2.4).
    #[error("the {what} is of issuer `{found}`, not of `{expected}`")]
    IssuerMismatch {
        /// What names the issuer.
        what: &'static str,
        /// The expected issuer.
        expected: String,
        /// The named issuer, or `(none)`.
        found: String,
    },
    /// The configured client belongs to another authorization server.
    #[error(
        "its authorization server is `{found}` now, but the configured `client_id` belongs to \
         `{expected}`: correct `issuer` and `client_id` in its configuration, or log out first"
    )]
    IssuerChanged {
        /// The authorization server of the client.
        expected: String,
        /// The authorization server that the server names.
        found: String,
    },
    /// The authorization server does not declare PKCE with S256, which MCP requires.
    #[error("`{issuer}` does not support PKCE with S256, which a safe login needs")]
    NoPkce {
        /// The authorization server.
        issuer: String,
    },
    /// No client can be registered.
    #[error(
        "`{issuer}` accepts only registered clients: register one, and set `client_id` (and \
         `client_secret`) below `authorization` in its configuration"
    )]
    NoClient {
        /// The authorization server.
        issuer: String,
    },
    /// The configuration of the login is not valid.
    #[error("its `authorization` is not valid: {reason}")]
    Configuration {
        /// The fault.
        reason: String,
    },
    /// The authorization server refused the request.
    #[error("the {what} was refused: {error}{}", description_clause(description.as_deref()))]
    Refused {
        /// The refused request.
        what: &'static str,
        /// The error code, such as `access_denied` or `invalid_grant`.
        error: String,
        /// The description by the server.
        description: Option<String>,
    },
    /// The browser was not redirected in time.
    #[error("the login was not completed within {after:?}")]
    TimedOut {
        /// The exceeded limit.
        after: Duration,
    },
    /// The listener for the redirect failed.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Listener {
        /// The port. 0 means any port.
        port: u16,
        /// The cause.
        source: std::io::Error,
    },
    /// The token store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AuthError {
    /// Returns whether an identity does not match. Such an error is always reported.
    pub(crate) fn is_identity_mismatch(&self) -> bool {
        matches!(
            self,
            Self::IssuerMismatch { .. }
                | Self::ResourceMismatch { .. }
                | Self::IssuerChanged { .. }
        )
    }

    /// Returns whether a login by a person solves the problem.
    pub fn needs_login(&self) -> bool {
        matches!(self, Self::NeedsLogin { .. })
    }
}

fn scope_clause(scopes: &[String]) -> String {
    if scopes.is_empty() {
        String::new()
    } else {
        format!(" (for the scopes `{}`)", scopes.join(" "))
    }
}

fn description_clause(description: Option<&str>) -> String {
    description.map_or_else(String::new, |text| format!(" ({text})"))
}
