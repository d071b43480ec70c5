//! What can go wrong with a login.

use std::time::Duration;

use crate::config::show::shown_url;

use crate::auth::store::StoreError;

/// Why there is no token for a server. No variant holds a token, a secret, or an address with its user
/// info or query; text of an authorization server is shortened and has no control characters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The server is a child process. Those take their credentials from their environment.
    #[error("`{server}` is no HTTP server: only those are logged in to")]
    NotHttp {
        /// The server.
        server: String,
    },
    /// An `Authorization` header is configured, and a configured one wins.
    #[error(
        "`{server}` has an `Authorization` header in its configuration, which is used as it is: \
         remove it to log in"
    )]
    StaticHeader {
        /// The server.
        server: String,
    },
    /// Only a person can go on.
    #[error(
        "it needs a login: run `switchboard servers login {server}`{}",
        for_scopes(scopes)
    )]
    NeedsLogin {
        /// The server.
        server: String,
        /// What the login has to ask for, where the server said so.
        scopes: Vec<String>,
    },
    /// The server takes none of our tokens, not even one that is fresh.
    #[error("it refuses the token that {issuer} has just issued for it")]
    StillRefused {
        /// Who issued it.
        issuer: String,
    },
    /// What the call needs was asked for before, and was not granted.
    #[error("the login does not cover this: it takes the scopes `{}`, which were asked for before", scopes.join(" "))]
    InsufficientScope {
        /// What the call needs.
        scopes: Vec<String>,
    },
    /// Nothing says how to log in.
    #[error("it says nothing about how to log in: {reason}")]
    NoMetadata {
        /// What was looked for.
        reason: String,
    },
    /// An address that somebody else named and that must not be asked.
    #[error("the {what} `{}` is not used: {reason}", shown_url(url))]
    Guarded {
        /// What it was to be.
        what: &'static str,
        /// The address.
        url: String,
        /// Which rule it breaks.
        reason: &'static str,
    },
    /// No answer.
    #[error("no answer from the {what} `{}`: {reason}", shown_url(url))]
    Unreachable {
        /// What was asked.
        what: &'static str,
        /// Where.
        url: String,
        /// Why there is none.
        reason: String,
    },
    /// An answer that is of no use.
    #[error("the answer of the {what} `{}` is of no use: {reason}", shown_url(url))]
    BadAnswer {
        /// What was asked.
        what: &'static str,
        /// Where.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The metadata are those of another server (RFC 9728, section 3.3).
    #[error("its metadata are those of `{found}`, not of `{expected}`")]
    ResourceMismatch {
        /// The server.
        expected: String,
        /// Whose metadata they say they are.
        found: String,
    },
    /// Metadata or a redirect name another issuer than the one that was asked (RFC 8414, section 3.3;
    /// RFC 9207, section 2.4).
    #[error("the {what} is of issuer `{found}`, not of `{expected}`")]
    IssuerMismatch {
        /// What names it.
        what: &'static str,
        /// Who was asked.
        expected: String,
        /// Who answered; `(none)` if nobody is named.
        found: String,
    },
    /// The configured client belongs to another authorization server than the one the server names now.
    #[error(
        "its authorization server is `{found}` now, but the configured `client_id` belongs to \
         `{expected}`: correct `issuer` and `client_id` in its configuration, or log out first"
    )]
    IssuerChanged {
        /// Where the client is registered.
        expected: String,
        /// Where the server sends us.
        found: String,
    },
    /// The authorization server does not say that it supports PKCE with S256; MCP forbids going on.
    #[error("`{issuer}` does not support PKCE with S256, without which a login is not safe")]
    NoPkce {
        /// The authorization server.
        issuer: String,
    },
    /// There is no way to become a client.
    #[error(
        "`{issuer}` takes only clients it knows: register one there, and set `client_id` (and \
         `client_secret`) below `authorization` in its configuration"
    )]
    NoClient {
        /// The authorization server.
        issuer: String,
    },
    /// The configuration of the login cannot be used.
    #[error("its `authorization` cannot be used: {reason}")]
    Configuration {
        /// What is wrong.
        reason: String,
    },
    /// The authorization server said no, in its own words.
    #[error("the {what} was refused: {error}{}", described(description.as_deref()))]
    Refused {
        /// What was asked for.
        what: &'static str,
        /// The error code, such as `access_denied` or `invalid_grant`.
        error: String,
        /// What it says about it.
        description: Option<String>,
    },
    /// Nobody came back from the authorization page.
    #[error("nobody logged in within {after:?}")]
    TimedOut {
        /// How long it was waited.
        after: Duration,
    },
    /// The redirect cannot be listened for.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Listener {
        /// The port; 0 is any.
        port: u16,
        /// Why not.
        source: std::io::Error,
    },
    /// Tokens cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AuthError {
    /// Whether somebody may not be who they say. That is told also where it might only mean that there
    /// is no way to log in.
    pub(crate) fn is_about_trust(&self) -> bool {
        matches!(
            self,
            Self::IssuerMismatch { .. }
                | Self::ResourceMismatch { .. }
                | Self::IssuerChanged { .. }
        )
    }

    /// Whether a person who logs in makes it work.
    pub fn needs_login(&self) -> bool {
        matches!(self, Self::NeedsLogin { .. })
    }
}

fn for_scopes(scopes: &[String]) -> String {
    if scopes.is_empty() {
        String::new()
    } else {
        format!(" (for the scopes `{}`)", scopes.join(" "))
    }
}

fn described(description: Option<&str>) -> String {
    description.map_or_else(String::new, |text| format!(" ({text})"))
}

/// Text of somebody else as it may be shown: on one line, without control characters, not long.
pub(crate) fn foreign(text: &str) -> String {
    const ENOUGH: usize = 200;
    let text: String = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    match text.char_indices().nth(ENOUGH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
