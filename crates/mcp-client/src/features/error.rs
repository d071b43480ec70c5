//! Errors of requests for resources, prompts, completions and pages.

use std::time::Duration;

use switchboard_domain::nearest::{did_you_mean, nearest};

/// An error of a request for a resource, a prompt, a completion or a page. Configured secrets are
/// redacted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeatureError {
    /// No server with this name is configured.
    #[error(
        "server `{server}` is not configured{}; configured servers: {}",
        suggestion(server, available),
        available.join(", ")
    )]
    UnknownServer {
        /// The requested name.
        server: String,
        /// The configured names.
        available: Vec<String>,
    },
    /// The server is not available, or not in time.
    #[error("server `{server}` is not available: {reason}")]
    Unavailable {
        /// The server.
        server: String,
        /// Why the server is not available.
        reason: String,
    },
    /// The server does not declare the capability.
    #[error("server `{server}` does not support {capability}: it declares no such capability")]
    Unsupported {
        /// The server.
        server: String,
        /// The missing capability: `resources`, `resources.subscribe`, `prompts`, `completions` or
        /// `tools`.
        capability: &'static str,
    },
    /// The server answered with a protocol error, for example for an unknown resource.
    #[error("server `{server}` refused `{request}`: {message} (code {code})")]
    Refused {
        /// The server.
        server: String,
        /// The method, such as `resources/read`.
        request: String,
        /// The JSON-RPC error code.
        code: i64,
        /// The server's message.
        message: String,
    },
    /// The URI is not the URI of a page. Nothing was requested from the server.
    #[error("`{uri}` is not a page of server `{server}`: URIs of pages start with `ui://`")]
    NotAPage {
        /// The server.
        server: String,
        /// The URI.
        uri: String,
    },
    /// The server did not answer in time.
    #[error("server `{server}` did not answer `{request}` within {after:?}")]
    Timeout {
        /// The server.
        server: String,
        /// The method.
        request: String,
        /// The exceeded limit.
        after: Duration,
    },
    /// The connection broke, also in the further attempts.
    #[error("the connection to server `{server}` broke during `{request}`: {reason}")]
    Broken {
        /// The server.
        server: String,
        /// The method.
        request: String,
        /// Why the connection broke.
        reason: String,
    },
    /// The answer is not valid.
    #[error("server `{server}` sent an invalid answer to `{request}`: {reason}")]
    Malformed {
        /// The server.
        server: String,
        /// The method.
        request: String,
        /// The fault of the answer.
        reason: String,
    },
}

fn suggestion(server: &str, available: &[String]) -> String {
    let names = available.iter().map(String::as_str);
    did_you_mean(nearest(server, names))
}
