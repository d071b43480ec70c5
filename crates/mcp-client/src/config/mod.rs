//! Which servers there are and how they are reached.
//!
//! Reading is pure: the values come parsed and with `${VAR}` substituted, and no file or variable is
//! touched here. [`from_ours`] reads the value of our own `mcp_servers:`; [`from_document`] reads a
//! whole document in any of the known forms, such as the files of other hosts. [`select`] comes before
//! the substitution in those files: much in them is not ours, and may hold variables that nobody set.

pub(crate) mod error;
mod foreign;
mod oauth;
mod ours;
mod read;
mod select;
pub(crate) mod show;

use std::{collections::HashSet, fmt, path::PathBuf, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

pub use error::ConfigError;
pub use foreign::{ENV_FILE, mark_unusable};
pub use select::{foreign_servers_mut, select, select_servers};
use show::{hidden_of_url, hidden_values};
pub(crate) use show::{shown_command, shown_url};

use crate::{
    auth::settings::AuthConfig,
    redact::{LiveSecrets, Redactor},
    server::logs::LogLevel,
    server_requests::{roots::Root, sampling::SamplingLimits},
};

/// How long starting a server may take where nothing else is said.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a call may take where neither the server nor the host says anything else.
pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// Protocol versions that may be set for a server, oldest first.
pub const PROTOCOL_VERSIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

/// One MCP server. `Debug` shows no values of the environment or of headers.
#[derive(Clone)]
pub struct ServerConfig {
    /// Its name, unique among the servers of a host.
    pub name: String,
    /// How it is reached.
    pub transport: ServerTransport,
    /// How long starting it may take: spawning, the handshake and listing its tools together. The
    /// configured `connect_timeout`; without it, of the configured `timeout`, two
    /// minutes of it at most, and [`DEFAULT_CONNECT_TIMEOUT`] the longer.
    pub connect_timeout: Duration,
    /// How long a call may take that brings no deadline of its own; `None` is
    /// [`HostOptions::call_timeout`](crate::HostOptions::call_timeout).
    pub call_timeout: Option<Duration>,
    /// Values that must not be shown, besides those of environment and headers, which never are: what
    /// came from variables into arguments or the address. Those of 8 bytes and more are struck out of
    /// everything the server writes and of how it is reached.
    pub secrets: Vec<SecretString>,
    /// The same for values that become known while the server runs.
    pub live_secrets: LiveSecrets,
    /// Only these tools are offered, by their own names; `None` offers all.
    pub allowed_tools: Option<Vec<String>>,
    /// These are not offered.
    pub exclude_tools: Vec<String>,
    /// Speak this version (one of [`PROTOCOL_VERSIONS`]) instead of finding one out.
    pub protocol_version: Option<String>,
    /// [`McpHost::require_ready`](crate::McpHost::require_ready) fails without it.
    pub required: bool,
    /// It takes one call at a time.
    pub sequential: bool,
    /// How long a call may go without progress that the server tells; `None` is as long as it may take
    /// in all, or [`HostOptions::call_timeout`](crate::HostOptions::call_timeout) where nobody says how
    /// long that is.
    pub idle_timeout: Option<Duration>,
    /// How long calls of some tools may take, by their own names, instead of `call_timeout`.
    pub tool_timeouts: Vec<(String, Duration)>,
    /// How many calls may run at once; further ones wait, within their deadline. `None` is 64.
    pub max_concurrent_calls: Option<usize>,
    /// How it is logged in to, if it asks for that: `authorization` as a map. As text `authorization`
    /// is a header, which is sent as it is, and there is no login.
    pub authorization: AuthConfig,
    /// It may ask a model, within these limits; `None`, the default, is that it may not. Whether there is
    /// a model to ask is [`Answering::sampler`](crate::Answering::sampler).
    pub sampling: Option<SamplingLimits>,
    /// The folders that it may work in, instead of the host's
    /// ([`Answering::roots`](crate::Answering::roots)).
    pub roots: Option<Vec<Root>>,
    /// What it logs is asked for, kept and handed on from here upwards.
    pub log_level: LogLevel,
    /// What in its configuration has no effect, for a person to read. They are among the warnings of the
    /// server's status.
    pub warnings: Vec<String>,
}

/// How a server is reached.
#[derive(Clone)]
pub enum ServerTransport {
    /// A child process that speaks on its standard input and output.
    Stdio {
        /// The program: a name on `PATH`, or a path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Set in its environment, on top of the few variables it inherits.
        env: Vec<(String, SecretString)>,
        /// Its working directory; `None` is ours.
        cwd: Option<PathBuf>,
    },
    /// An HTTP endpoint.
    StreamableHttp {
        /// Its address.
        url: String,
        /// Sent with every request.
        headers: Vec<(String, SecretString)>,
    },
    /// One of a file of another host that cannot be used here. It is a failed server, so that the
    /// others of the file work and a person sees why this one does not.
    Unusable {
        /// Why not, as the [`ConfigError`] says it.
        reason: String,
    },
}

impl ServerConfig {
    /// A server with these names and the defaults for everything else.
    pub fn new(name: impl Into<String>, transport: ServerTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            call_timeout: None,
            secrets: Vec::new(),
            live_secrets: LiveSecrets::default(),
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

    /// A child process with an empty configured environment.
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

    /// An HTTP endpoint without further headers.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        let transport = ServerTransport::StreamableHttp {
            url: url.into(),
            headers: Vec::new(),
        };
        Self::new(name, transport)
    }

    /// All that must not be shown of it: the values of its environment and headers, alone and without the
    /// scheme before them (`Bearer`), [`secrets`](Self::secrets), those of its login, what follows options
    /// like `--api-key`, and the password and query of an address. Many are ordinary settings (`8080`): short
    /// ones hide nothing.
    pub fn hidden_values(&self) -> Vec<SecretString> {
        let further = self.secrets.iter().chain(self.authorization.secrets());
        let configured = self.transport.secrets().iter().map(|(_, value)| value);
        let mut hidden = Vec::new();
        for value in configured.chain(further) {
            let text = value.expose_secret();
            // Servers repeat a token without its scheme, and the login of an address without the address.
            if let Some((_, token)) = text.split_once(' ') {
                hidden.push(token.trim().into());
            }
            hidden.extend(hidden_of_url(text).into_iter().map(SecretString::from));
            hidden.push(value.clone());
        }
        let of_transport = match &self.transport {
            ServerTransport::Stdio { args, .. } => hidden_values(args),
            ServerTransport::StreamableHttp { url, .. } => hidden_of_url(url),
            ServerTransport::Unusable { .. } => Vec::new(),
        };
        hidden.extend(of_transport.into_iter().map(SecretString::from));
        hidden
    }
}

impl ServerTransport {
    /// The transport in one line for people: no environment, no headers, and neither user info nor
    /// query of an address.
    pub fn describe(&self) -> String {
        match self {
            Self::Stdio { command, args, .. } => format!("stdio: {}", shown_command(command, args)),
            Self::StreamableHttp { url, .. } => format!("streamable-http: {}", shown_url(url)),
            Self::Unusable { .. } => "unusable".to_owned(),
        }
    }

    pub(crate) fn is_stdio(&self) -> bool {
        matches!(self, Self::Stdio { .. })
    }

    pub(crate) fn secrets(&self) -> &[(String, SecretString)] {
        match self {
            Self::Stdio { env, .. } => env,
            Self::StreamableHttp { headers, .. } => headers,
            Self::Unusable { .. } => &[],
        }
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = Redactor::new(self).clean(format!("{:?}", self.transport));
        f.debug_struct("ServerConfig")
            .field("name", &self.name)
            .field("transport", &format_args!("{transport}"))
            .field("connect_timeout", &self.connect_timeout)
            .field("call_timeout", &self.call_timeout)
            .field("secrets", &self.secrets.len())
            .field("live_secrets", &self.live_secrets)
            .field("allowed_tools", &self.allowed_tools)
            .field("exclude_tools", &self.exclude_tools)
            .field("protocol_version", &self.protocol_version)
            .field("required", &self.required)
            .field("sequential", &self.sequential)
            .field("authorization", &self.authorization)
            .field("idle_timeout", &self.idle_timeout)
            .field("tool_timeouts", &self.tool_timeouts)
            .field("max_concurrent_calls", &self.max_concurrent_calls)
            .field("sampling", &self.sampling)
            .field("roots", &self.roots)
            .field("log_level", &self.log_level)
            .field("warnings", &self.warnings)
            .finish()
    }
}

impl fmt::Debug for ServerTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .secrets()
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        match self {
            Self::Stdio { cwd, .. } => f
                .debug_struct("Stdio")
                .field("command", &self.describe())
                .field("env_names", &names)
                .field("cwd", cwd)
                .finish_non_exhaustive(),
            Self::StreamableHttp { .. } => f
                .debug_struct("StreamableHttp")
                .field("url", &self.describe())
                .field("header_names", &names)
                .finish_non_exhaustive(),
            Self::Unusable { reason } => {
                f.debug_struct("Unusable").field("reason", reason).finish()
            }
        }
    }
}

/// Reads the value of our own `mcp_servers:`, a map by name or a list. Unknown keys are errors.
pub fn from_ours(value: &Value) -> Result<Vec<ServerConfig>, ConfigError> {
    unique(ours::servers(value, "mcp_servers")?)
}

/// Reads a whole document: `mcp_servers` (ours), `mcpServers` (Claude Desktop, Cursor and others),
/// `servers` or `mcp.servers` (VS Code), and lists of servers under these keys or at the top.
///
/// Forms of other hosts may hold keys that we do not know; ours are read there too. Servers that are
/// switched off in them are left out, and one that cannot be used is
/// [`ServerTransport::Unusable`] and hides no other. Their filters of tools are read where their meaning
/// is known (such as `includeTools`, `disabledTools`); a server with another one is unusable.
///
/// A bare number as `timeout` is seconds up to 3600 there, and milliseconds above: hosts disagree.
pub fn from_document(document: &Value) -> Result<Vec<ServerConfig>, ConfigError> {
    let mut found = false;
    let mut servers = Vec::new();
    if let Some(value) = document.get("mcp_servers") {
        found = true;
        servers.extend(ours::servers(value, "mcp_servers")?);
    }
    let foreign = [
        ("mcpServers", document.get("mcpServers")),
        ("servers", document.get("servers")),
        ("mcp.servers", document.pointer("/mcp/servers")),
        ("", document.is_array().then_some(document)),
    ];
    for (place, value) in foreign {
        if let Some(value) = value {
            found = true;
            servers.extend(foreign::servers(value, place)?);
        }
    }
    if found {
        unique(servers)
    } else {
        Err(ConfigError::NoServers)
    }
}

fn unique(servers: Vec<ServerConfig>) -> Result<Vec<ServerConfig>, ConfigError> {
    let mut names = HashSet::new();
    for server in &servers {
        if !names.insert(server.name.as_str()) {
            return Err(ConfigError::DuplicateName {
                name: server.name.clone(),
            });
        }
    }
    Ok(servers)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
