//! Errors of the configuration of servers.

use switchboard_domain::nearest::did_you_mean;

use crate::config::PROTOCOL_VERSIONS;

/// An error in the configuration of servers. No variant contains a value that may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An unknown key in our own form.
    #[error("`{path}` is not a known key{}; known keys: {}", did_you_mean(nearest.as_deref()), known.join(", "))]
    UnknownKey {
        /// The path, such as `mcp_servers.crm.comand`.
        path: String,
        /// The most similar known key.
        nearest: Option<String>,
        /// All known keys.
        known: Vec<&'static str>,
    },
    /// A value of the wrong type.
    #[error("`{path}` must be {expected}, not {found}")]
    WrongType {
        /// The path.
        path: String,
        /// The expected type.
        expected: &'static str,
        /// The actual type.
        found: &'static str,
    },
    /// A server without a command and a URL.
    #[error(
        "`{path}` has neither `command` nor `url`: set `command` (and `args`) for a program, or `url` \
         for a running server"
    )]
    NoTransport {
        /// The path.
        path: String,
    },
    /// A server with a command and a URL.
    #[error(
        "`{path}` has both `command` and `url`: keep `command` for a program, or `url` for a running \
         server"
    )]
    TwoTransports {
        /// The path.
        path: String,
    },
    /// A type without its required key.
    #[error("`{path}` has type `{kind}`, which needs `{missing}`")]
    TypeNeeds {
        /// The path.
        path: String,
        /// The type.
        kind: &'static str,
        /// The missing key.
        missing: &'static str,
    },
    /// A key that belongs to the other transport.
    #[error("`{path}` is for servers of type `{belongs_to}` only")]
    WrongTransport {
        /// The path.
        path: String,
        /// The type of the key.
        belongs_to: &'static str,
    },
    /// The retired HTTP+SSE transport.
    #[error(
        "`{path}` asks for `sse`, the HTTP+SSE transport that MCP retired in 2025: most such \
         servers also support streamable HTTP, often at `/mcp` instead of `/sse`, so set the type \
         to `streamable-http` and `url` to that URL; other servers need a bridge, `command: npx` \
         with `args: [-y, mcp-remote, <url>]`"
    )]
    RetiredSse {
        /// The path.
        path: String,
    },
    /// An unknown transport.
    #[error("`{path}`: unknown transport `{value}`{}; use `stdio` or `streamable-http`", did_you_mean(nearest.as_deref()))]
    UnknownTransport {
        /// The path.
        path: String,
        /// The configured value.
        value: String,
        /// The most similar transport.
        nearest: Option<String>,
    },
    /// A server in a list without a name.
    #[error("`{path}` has no name: set `name`")]
    MissingName {
        /// The path.
        path: String,
    },
    /// Two servers have the same name.
    #[error("two servers are named `{name}`: give every server a different name")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// An invalid or zero duration.
    #[error(
        "`{path}` must be a time above zero: seconds as a number, or text such as `30s`, `500ms` or `2m`"
    )]
    InvalidDuration {
        /// The path.
        path: String,
    },
    /// An invalid URL.
    #[error("`{path}` is not a valid http or https URL: {reason}")]
    InvalidUrl {
        /// The path.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A duplicate header.
    #[error("`{path}` and a header `Authorization` are both set: keep one of them")]
    DuplicateAuthorization {
        /// The path.
        path: String,
    },
    /// A secret or a client grant without a client id.
    #[error(
        "`{path}` needs a `client_id`: set the id of a client that is registered with the \
         authorization server"
    )]
    MissingClient {
        /// The path.
        path: String,
    },
    /// A client secret without its authorization server.
    #[error(
        "`{path}` contains a `client_secret` and also needs an `issuer`, the URL of its authorization \
         server. Otherwise the MCP server could choose who receives the secret"
    )]
    MissingIssuer {
        /// The path.
        path: String,
    },
    /// An unknown choice.
    #[error("`{path}`: `{value}` is not known; known values: {}", choices.join(", "))]
    UnknownChoice {
        /// The path.
        path: String,
        /// The configured value.
        value: String,
        /// The known values.
        choices: Vec<&'static str>,
    },
    /// An unsupported protocol version.
    #[error("`{path}`: protocol version `{value}` is not supported; supported versions: {}", PROTOCOL_VERSIONS.join(", "))]
    UnknownProtocolVersion {
        /// The path.
        path: String,
        /// The configured value.
        value: String,
    },
    /// An unknown tool filter of another host. Ignoring it could make too many tools available.
    #[error(
        "`{path}` seems to filter the tools, but is not supported: use `allowed_tools` or \
         `exclude_tools` with a list of tool names, or remove it"
    )]
    UnsupportedFilter {
        /// The path.
        path: String,
    },
    /// A pattern instead of a name.
    #[error(
        "`{path}` contains `{value}`: patterns are not supported, so list the names of the tools"
    )]
    Pattern {
        /// The path.
        path: String,
        /// The pattern.
        value: String,
    },
    /// A variable that only an editor can substitute.
    #[error(
        "`{path}` contains `{variable}`, which only an editor can substitute: use `${{NAME}}` and set \
         the environment variable NAME"
    )]
    EditorVariable {
        /// The path.
        path: String,
        /// The variable.
        variable: String,
    },
    /// A document without servers.
    #[error("no MCP servers found: list them under `mcp_servers`, `mcpServers` or `servers`")]
    NoServers,
}
