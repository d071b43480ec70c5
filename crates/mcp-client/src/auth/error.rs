//! Errors of a login.

use std::time::Duration;

use crate::config::show::redact_url;

use crate::auth::store::StoreError;

/// Reason why no access token is available for a server.
///
/// No variant contains a token, a secret, or a URL with user info or query. Text of an
/// authorization server is shortened and contains no control characters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The server is a child process and reads its credentials from its environment.
    #[error("`{server}` is not an HTTP server: only HTTP servers have a login")]
    NotHttp {
        /// Configured name of the server.
        server: String,
    },
    /// The configuration sets an `Authorization` header, so the server does not use OAuth.
    #[error(
        "`{server}` has an `Authorization` header in its configuration: remove the header to log in"
    )]
    StaticHeader {
        /// Configured name of the server.
        server: String,
    },
    /// A person must log in before the server can be used.
    #[error(
        "it needs a login: run `switchboard servers login {server}`{}",
        scope_clause(scopes)
    )]
    NeedsLogin {
        /// Configured name of the server.
        server: String,
        /// Scopes that the server requires.
        scopes: Vec<String>,
    },
    /// A discovered URL violates the rules for requests to authorization servers.
    #[error("the {what} `{}` is not used: {reason}", redact_url(url))]
    Guarded {
        /// Purpose of the URL, such as `token endpoint`.
        what: &'static str,
        /// URL that was not requested.
        url: String,
        /// Rule that the URL violates.
        reason: &'static str,
    },
    /// The metadata describe another MCP server (RFC 9728, section 3.3).
    #[error("its metadata belong to `{found}`, not to `{expected}`")]
    ResourceMismatch {
        /// URL of the configured MCP server.
        expected: String,
        /// URL of the MCP server in the metadata.
        found: String,
    },
    /// The metadata or a redirect contain another issuer than expected (RFC 8414, section 3.3; RFC
    /// 9207, section 2.4).
    #[error("the {what} is of issuer `{found}`, not of `{expected}`")]
    IssuerMismatch {
        /// Document that contains the issuer: metadata or redirect.
        what: &'static str,
        /// Issuer that the client expects.
        expected: String,
        /// Issuer in the document, or `(none)`.
        found: String,
    },
    /// The configured OAuth client belongs to another authorization server.
    #[error(
        "its authorization server is `{found}` now, but the configured `client_id` belongs to \
         `{expected}`: correct `issuer` and `client_id` in its configuration, or log out first"
    )]
    IssuerChanged {
        /// Issuer that the client is registered with.
        expected: String,
        /// Issuer that the MCP server announces.
        found: String,
    },
    /// The `authorization` settings of the server are not valid.
    #[error("its `authorization` is not valid: {reason}")]
    Configuration {
        /// Description of the invalid setting.
        reason: String,
    },
    /// The authorization server rejected a request.
    #[error("the {what} was refused: {error}{}", description_clause(description.as_deref()))]
    Refused {
        /// Purpose of the rejected request, such as `login`.
        what: &'static str,
        /// OAuth error code, such as `access_denied` or `invalid_grant`.
        error: String,
        /// Human-readable description by the authorization server.
        description: Option<String>,
    },
    /// The browser was not redirected back within the login time-out.
    #[error("the login was not completed within {after:?}")]
    TimedOut {
        /// Login time-out that was exceeded.
        after: Duration,
    },
    /// The login failed for another reason: no answer, an invalid answer, or missing metadata.
    #[error("{0}")]
    Failed(String),
    /// The token store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AuthError {
    /// Returns whether an issuer or resource differs from the expected one. Such an error may be an
    /// attack, so it is always reported.
    pub(crate) fn is_identity_mismatch(&self) -> bool {
        matches!(
            self,
            Self::IssuerMismatch { .. }
                | Self::ResourceMismatch { .. }
                | Self::IssuerChanged { .. }
        )
    }

    /// Returns whether a login by a person can solve the problem.
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
