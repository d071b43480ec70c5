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
    /// The login failed for another reason: no answer, an invalid answer, or missing metadata.
    #[error("{0}")]
    Failed(String),
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
