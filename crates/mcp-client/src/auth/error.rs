//! Errors of an OAuth login to an MCP server.

use std::time::Duration;

use crate::config::redaction::redact_url;

use crate::auth::store::StoreError;

/// Reason why no access token is available for a server.
///
/// No variant contains a token, a secret, or a URL with user info or query. Text from an
/// authorization server is shortened, and its control characters are removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The MCP server is a child process, so it has no OAuth login.
    #[error("`{server}` is a stdio server: only HTTP servers support login")]
    NotHttp {
        /// Configured name of the server.
        server: String,
    },
    /// The configuration sets an `Authorization` header, so the host does not use OAuth.
    #[error(
        "`{server}` has an `Authorization` header in its configuration: remove the header to log in"
    )]
    StaticHeader {
        /// Configured name of the server.
        server: String,
    },
    /// A person must log in before the host can use the server.
    #[error(
        "login required: run `switchboard servers login {server}`{}",
        format_scopes(scopes)
    )]
    NeedsLogin {
        /// Configured name of the server.
        server: String,
        /// OAuth scopes that the server requires. Empty if the server names no scopes.
        scopes: Vec<String>,
    },
    /// A discovered URL violates a rule for OAuth requests, such as the required use of `https`.
    #[error("the {what} `{}` is not allowed: {reason}", redact_url(url))]
    Guarded {
        /// Purpose of the URL, such as `token endpoint`.
        what: &'static str,
        /// URL that violates the rule. The client did not send a request to it.
        url: String,
        /// Description of the rule that the URL violates.
        reason: &'static str,
    },
    /// The protected-resource metadata belong to another MCP server (RFC 9728, section 3.3).
    #[error("the resource metadata is for `{found}`, not for `{expected}`")]
    ResourceMismatch {
        /// URL of the MCP server in the configuration.
        expected: String,
        /// URL of the MCP server in the protected-resource metadata.
        found: String,
    },
    /// The authorization-server metadata or the redirect contain an unexpected issuer (RFC 8414,
    /// section 3.3; RFC 9207, section 2.4).
    #[error("the issuer in the {what} is `{found}`, expected `{expected}`")]
    IssuerMismatch {
        /// Source of the unexpected issuer: the authorization-server metadata or the redirect.
        what: &'static str,
        /// Issuer of the authorization server that the client selected.
        expected: String,
        /// Issuer in the metadata or the redirect. `(none)` if the issuer is missing there.
        found: String,
    },
    /// The MCP server names another authorization server, but the configured OAuth client belongs
    /// to an earlier one. The credentials of the client are not sent to the other server.
    #[error(
        "the authorization server is now `{found}`, but the configured `client_id` belongs to \
         `{expected}`: correct `issuer` and `client_id` in the configuration, or log out first"
    )]
    IssuerChanged {
        /// Issuer of the authorization server that the client is registered with.
        expected: String,
        /// Issuer of the authorization server that the MCP server names in its current metadata.
        found: String,
    },
    /// The `authorization` settings in the configuration of the server are not valid.
    #[error("invalid `authorization`: {reason}")]
    Configuration {
        /// Description of the invalid `authorization` setting.
        reason: String,
    },
    /// The authorization server rejected a request of the client.
    #[error(
        "the {what} request was refused: {error}{}",
        format_description(description.as_deref())
    )]
    Refused {
        /// Name of the rejected request: `login`, `registration`, `token` or `revocation`.
        what: &'static str,
        /// OAuth error code, such as `access_denied` or `invalid_grant`.
        error: String,
        /// Human-readable `error_description` from the authorization server, if any.
        description: Option<String>,
    },
    /// The browser did not open the redirect URI within the login time-out.
    #[error("the login timed out after {after:?}")]
    TimedOut {
        /// Login time-out that has passed, from
        /// [`AuthOptions::login_timeout`](crate::auth::AuthOptions::login_timeout).
        after: Duration,
    },
    /// Other login failure, such as no answer or missing metadata. The text is the error message.
    #[error("{0}")]
    Failed(String),
    /// The store for OAuth tokens returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AuthError {
    /// Returns whether the discovery or the redirect named an unexpected authorization server or
    /// resource. This may indicate an attack, so it always fails the request. Other discovery
    /// errors are ignored for a server without known OAuth settings.
    pub(crate) fn is_identity_mismatch(&self) -> bool {
        matches!(
            self,
            Self::IssuerMismatch { .. }
                | Self::ResourceMismatch { .. }
                | Self::IssuerChanged { .. }
        )
    }

    /// Returns whether a person must log in before a retry can succeed.
    pub fn needs_login(&self) -> bool {
        matches!(self, Self::NeedsLogin { .. })
    }
}

fn format_scopes(scopes: &[String]) -> String {
    if scopes.is_empty() {
        String::new()
    } else {
        format!(" (scopes: `{}`)", scopes.join(" "))
    }
}

fn format_description(description: Option<&str>) -> String {
    description.map_or_else(String::new, |text| format!(" ({text})"))
}
