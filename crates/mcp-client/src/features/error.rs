//! Why a server's resource, prompt or completion is not to be had.

use std::time::Duration;

use switchboard_domain::nearest::{did_you_mean, nearest};

/// Why something that a server may offer beside tools is not to be had.
///
/// Secrets of the server's configuration are struck out of everything here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeatureError {
    /// No server of this name is configured.
    #[error("there is no server `{server}`{}; there are: {}", meant(server, available), available.join(", "))]
    UnknownServer {
        /// The name asked for.
        server: String,
        /// The names there are.
        available: Vec<String>,
    },
    /// The server cannot be reached, or is not reached in time.
    #[error("server `{server}` is not available: {reason}")]
    Unavailable {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// The server has nothing of this kind.
    #[error("server `{server}` does not offer {capability}: it has no such capability")]
    Unsupported {
        /// The server.
        server: String,
        /// The capability that it would need, as in the protocol: `resources`, `resources.subscribe`,
        /// `prompts`, `completions` or `tools`.
        capability: &'static str,
    },
    /// The server answered with a protocol error, such as that there is no such resource.
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
    /// The address is none of a page, so that the server was not asked for it.
    #[error("`{uri}` is no address of a page: those of server `{server}` begin with `ui://`")]
    NoPage {
        /// The server.
        server: String,
        /// The address.
        uri: String,
    },
    /// No answer in time.
    #[error("server `{server}` did not answer `{request}` within {after:?}")]
    Timeout {
        /// The server.
        server: String,
        /// The method.
        request: String,
        /// How long it was waited.
        after: Duration,
    },
    /// The connection broke, and so did those that were made instead.
    #[error("the connection to server `{server}` broke during `{request}`: {reason}")]
    Broken {
        /// The server.
        server: String,
        /// The method.
        request: String,
        /// What broke.
        reason: String,
    },
    /// The answer is none, or not what was asked for.
    #[error("server `{server}` did not answer `{request}` as it should: {reason}")]
    Malformed {
        /// The server.
        server: String,
        /// The method.
        request: String,
        /// What is wrong.
        reason: String,
    },
}

fn meant(server: &str, available: &[String]) -> String {
    let names = available.iter().map(String::as_str);
    did_you_mean(nearest(server, names))
}
