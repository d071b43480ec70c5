//! Parser of the Switchboard format, the value of `mcp_servers:`. Unknown keys are errors.

use std::{num::NonZeroUsize, path::Path, time::Duration};

use secrecy::SecretString;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;
use switchboard_domain::similar_names::{did_you_mean, find_nearest};

use crate::config::{
    PROTOCOL_VERSIONS, ServerConfig, ServerTransport,
    client_features::{Root, SamplingLimits, root_from_path},
    error::ConfigError,
    log_level::LogLevel,
    login::AuthConfig,
    read::{self, RawServerEntry, deserialize_converted, join_path},
};

/// Type of connection to a configured server: a child process or HTTP.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TransportKind {
    Stdio,
    Http,
}

impl TransportKind {
    fn transport_name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "streamable-http",
        }
    }
}

/// Maximum connect time-out that results from the key `timeout` of a server.
const MAX_DERIVED_CONNECT_TIMEOUT: Duration = Duration::from_mins(2);

/// Server entry in the Switchboard format, as serde deserializes it before validation.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ServerEntry {
    name: Option<String>,
    #[serde(rename = "type", deserialize_with = "deserialize_transport")]
    kind: Option<TransportKind>,
    #[serde(deserialize_with = "read::deserialize_text")]
    command: Option<String>,
    #[serde(deserialize_with = "read::deserialize_text_list")]
    args: Option<Vec<String>>,
    #[serde(deserialize_with = "read::deserialize_secrets")]
    env: Option<Vec<(String, SecretString)>>,
    #[serde(deserialize_with = "read::deserialize_text")]
    cwd: Option<String>,
    #[serde(deserialize_with = "read::deserialize_url")]
    url: Option<String>,
    #[serde(deserialize_with = "read::deserialize_secrets")]
    headers: Option<Vec<(String, SecretString)>>,
    /// Value of `authorization`: the text of an `Authorization` header, or a map of OAuth settings.
    authorization: Option<Value>,
    #[serde(deserialize_with = "read::deserialize_duration")]
    timeout: Option<Duration>,
    #[serde(deserialize_with = "read::deserialize_duration")]
    connect_timeout: Option<Duration>,
    #[serde(deserialize_with = "read::deserialize_text_list")]
    allowed_tools: Option<Vec<String>>,
    #[serde(deserialize_with = "read::deserialize_text_list")]
    exclude_tools: Option<Vec<String>>,
    #[serde(deserialize_with = "deserialize_protocol_version")]
    protocol_version: Option<String>,
    required: bool,
    sequential: bool,
    #[serde(deserialize_with = "read::deserialize_duration")]
    idle_timeout: Option<Duration>,
    #[serde(deserialize_with = "read::deserialize_tool_timeouts")]
    tool_timeouts: Option<Vec<(String, Duration)>>,
    max_concurrent_calls: Option<NonZeroUsize>,
    #[serde(deserialize_with = "deserialize_sampling")]
    sampling: Option<SamplingLimits>,
    #[serde(deserialize_with = "deserialize_roots")]
    roots: Option<Vec<Root>>,
    log_level: LogLevel,
}

pub(super) fn parse_servers(value: &Value, path: &str) -> Result<Vec<ServerConfig>, ConfigError> {
    let listed = read::list_server_entries(value, path)?.into_iter();
    listed.map(|listed| parse_server(&listed)).collect()
}

pub(super) fn parse_server(listed: &RawServerEntry<'_>) -> Result<ServerConfig, ConfigError> {
    let path = &listed.path;
    let mut entry: ServerEntry = read::deserialize_object(listed.value, path)?;
    let name = entry.name.take().or(listed.key.map(str::to_owned));
    let name = read::check_server_name(name, path)?;
    let login = entry.parse_login(path)?;
    let mut config = ServerConfig::new(name, entry.build_transport(path)?);
    config.authorization = login;
    if let Some(limit) = entry.timeout {
        config.call_timeout = Some(limit);
        // A server may download its program when it starts, so a long call time-out also raises the
        // connect time-out, up to a maximum.
        let derived = limit.min(MAX_DERIVED_CONNECT_TIMEOUT);
        config.connect_timeout = config.connect_timeout.max(derived);
    }
    if let Some(limit) = entry.connect_timeout {
        config.connect_timeout = limit;
    }
    config.allowed_tools = entry.allowed_tools;
    config.exclude_tools = entry.exclude_tools.unwrap_or_default();
    config.protocol_version = entry.protocol_version;
    config.required = entry.required;
    config.sequential = entry.sequential;
    config.idle_timeout = entry.idle_timeout;
    config.tool_timeouts = entry.tool_timeouts.unwrap_or_default();
    config.max_concurrent_calls = entry.max_concurrent_calls.map(NonZeroUsize::get);
    config.sampling = entry.sampling;
    config.roots = entry.roots;
    config.log_level = entry.log_level;
    Ok(config)
}

impl ServerEntry {
    /// Returns the OAuth settings if `authorization` is a map. If `authorization` is text, adds an
    /// `Authorization` header with this text to `headers`, and returns default settings. Returns an
    /// error for other types, or if `headers` already contains this header.
    fn parse_login(&mut self, path: &str) -> Result<AuthConfig, ConfigError> {
        let Some(value) = self.authorization.take_if(|_| self.command.is_none()) else {
            return Ok(AuthConfig::default());
        };
        let path = join_path(path, "authorization");
        let headers = self.headers.get_or_insert_default();
        let is_given = |(name, _): &(String, _)| name.eq_ignore_ascii_case("authorization");
        if headers.iter().any(is_given) {
            let reason = "and a header `Authorization` are both set: keep one of them";
            return Err(ConfigError::invalid_value(&path, reason));
        }
        match value {
            Value::String(header) => {
                headers.push(("Authorization".to_owned(), header.into()));
                Ok(AuthConfig::default())
            }
            Value::Object(_) => {
                let login: AuthConfig = read::deserialize_object(&value, &path)?;
                login.check_settings(&path)?;
                Ok(login)
            }
            _ => {
                let reason = "must be text (the header value) or a map (the login settings)";
                Err(ConfigError::invalid_value(&path, reason))
            }
        }
    }

    fn build_transport(&mut self, path: &str) -> Result<ServerTransport, ConfigError> {
        let invalid = |reason: String| Err(ConfigError::invalid_value(path, reason));
        match (self.kind, self.command.take(), self.url.take()) {
            (_, Some(_), Some(_)) => invalid(
                "has both `command` and `url`: keep `command` for a program, or `url` for a \
                 running server"
                    .to_owned(),
            ),
            (None, None, None) => invalid(
                "has neither `command` nor `url`: set `command` (and `args`) for a program, or \
                 `url` for a running server"
                    .to_owned(),
            ),
            (None | Some(TransportKind::Stdio), Some(command), None) => {
                let has_login = self.authorization.is_some();
                reject_unused_key(path, TransportKind::Http, "headers", self.headers.is_some())?;
                reject_unused_key(path, TransportKind::Http, "authorization", has_login)?;
                Ok(ServerTransport::Stdio {
                    command,
                    args: self.args.take().unwrap_or_default(),
                    env: self.env.take().unwrap_or_default(),
                    cwd: self.cwd.take().map(Into::into),
                })
            }
            (None | Some(TransportKind::Http), None, Some(url)) => {
                reject_unused_key(path, TransportKind::Stdio, "args", self.args.is_some())?;
                reject_unused_key(path, TransportKind::Stdio, "env", self.env.is_some())?;
                reject_unused_key(path, TransportKind::Stdio, "cwd", self.cwd.is_some())?;
                Ok(ServerTransport::StreamableHttp {
                    url,
                    headers: self.headers.take().unwrap_or_default(),
                })
            }
            (Some(kind), ..) => {
                let missing = match kind {
                    TransportKind::Stdio => "command",
                    TransportKind::Http => "url",
                };
                let kind = kind.transport_name();
                invalid(format!("has type `{kind}`, which requires `{missing}`"))
            }
        }
    }
}

/// Returns an error if the key `key` of a server entry is set. Only servers of type `kind` support
/// this key.
fn reject_unused_key(
    path: &str,
    kind: TransportKind,
    key: &str,
    is_given: bool,
) -> Result<(), ConfigError> {
    if is_given {
        let reason = format!(
            "is only supported for servers of type `{}`",
            kind.transport_name()
        );
        return Err(ConfigError::invalid_value(&join_path(path, key), reason));
    }
    Ok(())
}

/// Parses the type of a server, in the spelling of Switchboard or of another MCP host. Returns an
/// error message for an unknown type and for `sse`.
pub(super) fn parse_transport_kind(name: &str) -> Result<TransportKind, String> {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let normalized: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    match normalized.as_str() {
        "stdio" | "local" => Ok(TransportKind::Stdio),
        "http" | "streamablehttp" | "remote" => Ok(TransportKind::Http),
        "sse" => Err(
            "is `sse`, the HTTP+SSE transport that MCP retired in 2025. Most such servers also \
             support streamable HTTP, often at `/mcp` instead of `/sse`: set the type to \
             `streamable-http` and `url` to that URL. Other servers need a bridge: `command: npx` \
             with `args: [-y, mcp-remote, <url>]`"
                .to_owned(),
        ),
        _ => {
            let similar = did_you_mean(find_nearest(name, ["stdio", "streamable-http"]));
            Err(format!("must be `stdio` or `streamable-http`{similar}"))
        }
    }
}

fn deserialize_transport<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<TransportKind>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    let kind = name.map(|name| parse_transport_kind(&name).map_err(D::Error::custom));
    kind.transpose()
}

fn deserialize_protocol_version<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let expected = format!("one of {}", PROTOCOL_VERSIONS.join(", "));
    deserialize_converted(deserializer, &expected, |value| {
        let version = value.as_str()?;
        let is_supported = PROTOCOL_VERSIONS.contains(&version);
        is_supported.then(|| version.to_owned())
    })
}

/// Deserializes sampling limits. `true` gives the default limits. `false` gives `None`, which
/// forbids sampling.
fn deserialize_sampling<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SamplingLimits>, D::Error> {
    let expected = "true, false, or a map of `calls` and `max_tokens`, both whole numbers";
    let limits = deserialize_converted(deserializer, expected, |value| match value {
        Value::Bool(allowed) => Some(allowed.then(SamplingLimits::default)),
        limits => SamplingLimits::deserialize(limits).ok().map(Some),
    });
    limits.map(Option::flatten)
}

fn deserialize_roots<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<Root>>, D::Error> {
    deserialize_converted(deserializer, "a list of absolute paths", |value| {
        let folders = read::scalars_to_texts(value)?.into_iter();
        folders.map(|it| root_from_path(Path::new(&it))).collect()
    })
}
