use switchboard_domain::nearest::did_you_mean;

use crate::config::PROTOCOL_VERSIONS;

/// What is wrong with a configuration of servers. No variant holds a configured value that may be
/// a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A key of our own form that does not exist.
    #[error("`{path}` is no known key{}; there are: {}", did_you_mean(nearest.as_deref()), known.join(", "))]
    UnknownKey {
        /// Where, such as `mcp_servers.crm.comand`.
        path: String,
        /// The known key that is most like it.
        nearest: Option<String>,
        /// All known keys.
        known: Vec<&'static str>,
    },
    /// A value of the wrong type.
    #[error("`{path}` must be {expected}, not {found}")]
    WrongType {
        /// Where.
        path: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A server with neither a command nor an address.
    #[error(
        "`{path}` has neither `command` nor `url`: give `command` (and `args`) for a program that \
         is started here, or `url` for a server that runs already"
    )]
    NoTransport {
        /// Where.
        path: String,
    },
    /// A server with both a command and an address.
    #[error(
        "`{path}` has both `command` and `url`: keep `command` for a program that is started here, \
         or `url` for a server that runs already"
    )]
    TwoTransports {
        /// Where.
        path: String,
    },
    /// The type and the other keys disagree.
    #[error("`{path}` is of type `{kind}`, which needs `{missing}`")]
    TypeNeeds {
        /// Where.
        path: String,
        /// The type.
        kind: &'static str,
        /// The key that is missing.
        missing: &'static str,
    },
    /// A key that belongs to the other transport.
    #[error("`{path}` is for servers of type `{belongs_to}` only")]
    WrongTransport {
        /// Where.
        path: String,
        /// The type it belongs to.
        belongs_to: &'static str,
    },
    /// The retired HTTP+SSE transport.
    #[error(
        "`{path}` asks for `sse`, the HTTP+SSE transport that MCP retired in 2025: most such \
         servers also offer streamable HTTP, often at `/mcp` instead of `/sse`, so set the type to \
         `streamable-http` and the url to that address; a server with nothing newer can be reached \
         through a bridge, `command: npx` with `args: [-y, mcp-remote, <url>]`"
    )]
    RetiredSse {
        /// Where.
        path: String,
    },
    /// A transport that does not exist.
    #[error("`{path}`: there is no transport `{value}`{}; write `stdio` or `streamable-http`", did_you_mean(nearest.as_deref()))]
    UnknownTransport {
        /// Where.
        path: String,
        /// What is written.
        value: String,
        /// The transport that is most like it.
        nearest: Option<String>,
    },
    /// A server of a list without a name.
    #[error("`{path}` has no name: give it a `name`")]
    MissingName {
        /// Where.
        path: String,
    },
    /// Two servers of one name.
    #[error("two servers are named `{name}`: every server needs a name of its own")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A time that cannot be read or is not above zero.
    #[error(
        "`{path}` must be a time above zero: seconds as a number, or text such as `30s`, `500ms` or `2m`"
    )]
    InvalidDuration {
        /// Where.
        path: String,
    },
    /// An address that cannot be used.
    #[error("`{path}` is no http or https address: {reason}")]
    InvalidUrl {
        /// Where.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The same header twice.
    #[error("`{path}` and a header `Authorization` are both given: keep one of them")]
    DuplicateAuthorization {
        /// Where.
        path: String,
    },
    /// A secret or a grant of its own without a client.
    #[error(
        "`{path}` needs a `client_id`: that of the client that is registered with the authorization server"
    )]
    MissingClient {
        /// Where.
        path: String,
    },
    /// A secret without the authorization server that it is for.
    #[error(
        "`{path}` holds a `client_secret` and needs an `issuer` too: the address of the authorization server that \
         the secret is for. Without it the MCP server would choose who receives the secret"
    )]
    MissingIssuer {
        /// Where.
        path: String,
    },
    /// A word that is none of those that are understood.
    #[error("`{path}`: `{value}` is not known; there are: {}", choices.join(", "))]
    UnknownChoice {
        /// Where.
        path: String,
        /// What is written.
        value: String,
        /// What may be written.
        choices: Vec<&'static str>,
    },
    /// A protocol version that we do not speak.
    #[error("`{path}`: protocol version `{value}` is not known; there are: {}", PROTOCOL_VERSIONS.join(", "))]
    UnknownProtocolVersion {
        /// Where.
        path: String,
        /// What is written.
        value: String,
    },
    /// A key of another host that limits the tools in a way of its own. Without it there would be more
    /// tools than somebody wanted.
    #[error(
        "`{path}` seems to limit the tools, and is not understood here: write `allowed_tools` or \
         `exclude_tools`, with a list of the tools' own names, or remove it"
    )]
    UnreadFilter {
        /// Where.
        path: String,
    },
    /// A pattern where only names are understood.
    #[error(
        "`{path}` holds `{value}`: patterns are not understood here, so write the tools' own names"
    )]
    Pattern {
        /// Where.
        path: String,
        /// The pattern.
        value: String,
    },
    /// A variable that only an editor can fill in, mostly by asking a person.
    #[error(
        "`{path}` holds `{variable}`, which only an editor can fill in: write `${{NAME}}` instead, and \
         set the environment variable NAME"
    )]
    EditorVariable {
        /// Where.
        path: String,
        /// The variable as it is written.
        variable: String,
    },
    /// A document without servers in any known form.
    #[error(
        "no MCP servers found: a document names them under `mcp_servers`, `mcpServers` or `servers`"
    )]
    NoServers,
}
