//! Configuration of MCP servers.
//!
//! The parsers read no file and no environment variable. The caller substitutes `${VAR}` first.
//! [`parse_mcp_servers`] parses the value of `mcp_servers:`. [`parse_config_document`] parses a
//! document in any supported format, such as files of other hosts. For these, the caller runs
//! [`drop_unused_parts`] before the substitution, because unused parts may contain unset variables.

pub(crate) mod client_features;
pub(crate) mod error;
pub(crate) mod log_level;
pub(crate) mod login;
mod other_hosts;
mod read;
pub(crate) mod redaction;
mod switchboard_format;
mod unused_parts;

use std::{collections::HashSet, fmt, path::PathBuf, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use switchboard_domain::redact::Redactor;

pub use client_features::{Root, SamplingLimits, root_from_path};
pub use error::ConfigError;
pub use log_level::LogLevel;
pub use other_hosts::{ENV_FILE, mark_server_unusable};
use redaction::{find_argument_secrets, find_url_secrets};
pub(crate) use redaction::{redact_command, redact_url};
pub use unused_parts::{drop_unused_parts, other_host_servers_mut, prune_server_entries};

use self::login::AuthConfig;

/// Default time limit to start a server ([`ServerConfig::connect_timeout`]).
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Default time limit of a call, [`HostOptions::call_timeout`](crate::HostOptions::call_timeout).
pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// Supported MCP protocol versions, oldest first.
pub const PROTOCOL_VERSIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

/// Configuration of one MCP server. `Debug` shows no values of environment variables or headers.
#[derive(Clone)]
pub struct ServerConfig {
    /// Name of the server, which must be unique in a host.
    pub name: String,
    /// Connection to the server: a child process or an HTTP endpoint.
    pub transport: ServerTransport,
    /// Time limit to start the server: spawn the process, perform the handshake and list the tools.
    /// Defaults to [`DEFAULT_CONNECT_TIMEOUT`]. The key `timeout` of a configuration file raises
    /// this default to its own value, but to at most two minutes.
    pub connect_timeout: Duration,
    /// Time limit of a call for which the caller sets no deadline. Defaults to
    /// [`HostOptions::call_timeout`](crate::HostOptions::call_timeout).
    pub call_timeout: Option<Duration>,
    /// Additional secrets, for example values of variables in arguments or in the URL. Secrets of
    /// at least 8 bytes are redacted in all output of the server. Values of environment variables
    /// and headers are redacted even if they are not listed here.
    pub secrets: Vec<SecretString>,
    /// Redactor for additional secrets. The application can add secrets to it while the server
    /// runs, and they are then redacted too.
    pub redactor: Redactor,
    /// Tools that are available, by their names on the server. `None` makes all tools available.
    pub allowed_tools: Option<Vec<String>>,
    /// Tools that are hidden from models and applications, by their names on the server.
    pub exclude_tools: Vec<String>,
    /// Required MCP protocol version, one of [`PROTOCOL_VERSIONS`]. `None` negotiates the version.
    pub protocol_version: Option<String>,
    /// Whether [`McpHost::wait_until_ready`](crate::McpHost::wait_until_ready) returns an error if
    /// this server does not start.
    pub required: bool,
    /// Whether the tool calls of this server run one at a time.
    pub sequential: bool,
    /// Maximum time of a call since its last progress report. Defaults to the configured total time
    /// limit, or to [`HostOptions::call_timeout`](crate::HostOptions::call_timeout).
    pub idle_timeout: Option<Duration>,
    /// Total time limits of individual tools, by their names on the server. They override
    /// `call_timeout`.
    pub tool_timeouts: Vec<(String, Duration)>,
    /// Maximum number of concurrent calls to the server. Further calls wait. Defaults to 64.
    pub max_concurrent_calls: Option<usize>,
    /// OAuth settings, from a map in the key `authorization`. If the value of this key is text, it
    /// becomes an `Authorization` header instead, and the server has no OAuth login.
    pub authorization: AuthConfig,
    /// Limits of model calls by the server (sampling). `None`, the default, forbids them. Sampling
    /// also requires a [`ClientHandlers::sampler`](crate::ClientHandlers::sampler).
    pub sampling: Option<SamplingLimits>,
    /// Folders that the server should work in (MCP roots). With `None`, the client does not declare
    /// the roots capability.
    pub roots: Option<Vec<Root>>,
    /// Minimum level of the log messages that are requested from the server and stored.
    pub log_level: LogLevel,
    /// Descriptions of configured settings that have no effect. The server's status contains them.
    pub warnings: Vec<String>,
}

/// Connection type of an MCP server, with its settings.
#[derive(Clone)]
pub enum ServerTransport {
    /// The server is a child process that speaks MCP on its standard input and output.
    Stdio {
        /// Program to run: a name on `PATH`, or the path of a file.
        command: String,
        /// Command-line arguments of the program.
        args: Vec<String>,
        /// Environment variables of the process, in addition to the inherited ones.
        env: Vec<(String, SecretString)>,
        /// Working directory of the process. Defaults to the directory of the host process.
        cwd: Option<PathBuf>,
    },
    /// The server is an HTTP endpoint that speaks MCP (streamable HTTP).
    StreamableHttp {
        /// URL of the HTTP endpoint.
        url: String,
        /// HTTP headers that are added to every request to the server.
        headers: Vec<(String, SecretString)>,
    },
    /// The server entry is in a file of another MCP host and cannot be used. The server has the
    /// state `Failed`, and the other servers of the file work.
    Unusable {
        /// Message of the [`ConfigError`] in this server entry.
        reason: String,
    },
}

impl ServerConfig {
    /// Creates the configuration of a server with this name and transport, and default settings.
    pub fn new(name: impl Into<String>, transport: ServerTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            call_timeout: None,
            secrets: Vec::new(),
            redactor: Redactor::default(),
            allowed_tools: None,
            exclude_tools: Vec::new(),
            protocol_version: None,
            required: false,
            sequential: false,
            idle_timeout: None,
            tool_timeouts: Vec::new(),
            max_concurrent_calls: None,
            authorization: AuthConfig::default(),
            sampling: None,
            roots: None,
            log_level: LogLevel::default(),
            warnings: Vec::new(),
        }
    }

    /// Creates the configuration of a stdio server from its command and arguments.
    pub fn stdio<A: Into<String>>(
        name: impl Into<String>,
        command: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let transport = ServerTransport::Stdio {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: None,
        };
        Self::new(name, transport)
    }

    /// Creates the configuration of a streamable HTTP server from its URL.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        let transport = ServerTransport::StreamableHttp {
            url: url.into(),
            headers: Vec::new(),
        };
        Self::new(name, transport)
    }

    /// Returns the values that must be redacted in output: values of environment variables and
    /// headers (also without a scheme such as `Bearer`), [`secrets`](Self::secrets), secrets of the
    /// login, values of options such as `--api-key`, and the password and query of URLs. Short
    /// values may be ordinary settings (`8080`), which the redactor ignores.
    pub fn values_to_redact(&self) -> Vec<SecretString> {
        let login_secrets = self.authorization.secret_values();
        let further = self.secrets.iter().chain(login_secrets);
        let configured = self.transport.env_or_headers().iter();
        let configured = configured.map(|(_, value)| value);
        let mut hidden = Vec::new();
        for value in configured.chain(further) {
            let text = value.expose_secret();
            // The output may contain a token without its scheme, or a password without its URL.
            if let Some((_, token)) = text.split_once(' ') {
                hidden.push(token.trim().into());
            }
            hidden.extend(find_url_secrets(text).into_iter().map(SecretString::from));
            hidden.push(value.clone());
        }
        let of_transport = match &self.transport {
            ServerTransport::Stdio { args, .. } => find_argument_secrets(args),
            ServerTransport::StreamableHttp { url, .. } => find_url_secrets(url),
            ServerTransport::Unusable { .. } => Vec::new(),
        };
        hidden.extend(of_transport.into_iter().map(SecretString::from));
        hidden
    }

    /// Returns a redactor for the [secret values](Self::values_to_redact) and for the secrets of
    /// [`redactor`](Self::redactor).
    pub(crate) fn server_redactor(&self) -> Redactor {
        let hidden = self.values_to_redact();
        let redactor = self.redactor.clone();
        redactor.with_secrets(hidden.iter().map(ExposeSecret::expose_secret))
    }
}

impl ServerTransport {
    /// Describes the transport in one line, as a command line or a URL. Omits secrets: the
    /// environment, the headers, and the user info and query of the URL.
    pub fn describe_transport(&self) -> String {
        match self {
            Self::Stdio { command, args, .. } => {
                format!("stdio: {}", redact_command(command, args))
            }
            Self::StreamableHttp { url, .. } => format!("streamable-http: {}", redact_url(url)),
            Self::Unusable { .. } => "unusable".to_owned(),
        }
    }

    pub(crate) fn is_stdio(&self) -> bool {
        matches!(self, Self::Stdio { .. })
    }

    pub(crate) fn env_or_headers(&self) -> &[(String, SecretString)] {
        match self {
            Self::Stdio { env, .. } => env,
            Self::StreamableHttp { headers, .. } => headers,
            Self::Unusable { .. } => &[],
        }
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = format!("{:?}", self.transport);
        let redactor = self.server_redactor();
        let transport = redactor.redact_known(&transport);
        f.debug_struct("ServerConfig")
            .field("name", &self.name)
            .field("transport", &format_args!("{transport}"))
            .field("authorization", &self.authorization)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.env_or_headers().iter().map(|(name, _)| name);
        f.debug_struct("ServerTransport")
            .field("transport", &self.describe_transport())
            .field("variables_or_headers", &names.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Parses the value of the key `mcp_servers`: a map from name to server, or a list of servers.
/// Returns an error for unknown keys.
pub fn parse_mcp_servers(value: &Value) -> Result<Vec<ServerConfig>, ConfigError> {
    check_unique_names(switchboard_format::parse_servers(value, "mcp_servers")?)
}

/// Parses a document with `mcp_servers` (Switchboard), `mcpServers` (Claude Desktop, Cursor and
/// others), `servers` or `mcp.servers` (VS Code). Each key contains a map or a list of servers. The
/// document may also be a list of servers itself.
///
/// Entries of other hosts may also contain Switchboard keys and unknown keys. Disabled servers are
/// skipped. A server that cannot be used becomes [`ServerTransport::Unusable`]. Known tool filters
/// are applied (such as `includeTools`, `disabledTools`); a server with an unknown filter is
/// unusable.
///
/// A number as `timeout` means seconds up to 3600 and milliseconds above, because hosts differ.
pub fn parse_config_document(document: &Value) -> Result<Vec<ServerConfig>, ConfigError> {
    let mut found = false;
    let mut servers = Vec::new();
    if let Some(value) = document.get("mcp_servers") {
        found = true;
        servers.extend(switchboard_format::parse_servers(value, "mcp_servers")?);
    }
    let foreign = [
        ("mcpServers", document.get("mcpServers")),
        ("servers", document.get("servers")),
        ("mcp.servers", document.pointer("/mcp/servers")),
        ("", document.is_array().then_some(document)),
    ];
    for (path, value) in foreign {
        if let Some(value) = value {
            found = true;
            servers.extend(other_hosts::parse_servers(value, path)?);
        }
    }
    if found {
        check_unique_names(servers)
    } else {
        Err(ConfigError::NoServers)
    }
}

fn check_unique_names(servers: Vec<ServerConfig>) -> Result<Vec<ServerConfig>, ConfigError> {
    let mut names = HashSet::new();
    if let Some(duplicate) = servers.iter().find(|server| !names.insert(&server.name)) {
        return Err(ConfigError::DuplicateName {
            name: duplicate.name.clone(),
        });
    }
    Ok(servers)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
