//! Our own form `mcp_servers:`. Unknown keys are errors.

use std::{num::NonZeroUsize, path::Path, time::Duration};

use secrecy::SecretString;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;
use switchboard_domain::nearest::{did_you_mean, nearest};

use crate::config::{
    PROTOCOL_VERSIONS, ServerConfig, ServerTransport,
    client_features::{Root, SamplingLimits, root_folder},
    error::ConfigError,
    log_level::LogLevel,
    login::AuthConfig,
    read::{self, Listed, converted, join},
};

/// Transport type of a server in the configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Stdio,
    Http,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "streamable-http",
        }
    }
}

/// Maximum connect time-out that is derived from `timeout`.
const MAX_DERIVED_CONNECT_TIMEOUT: Duration = Duration::from_mins(2);

/// Server entry in the Switchboard format, before validation.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Entry {
    name: Option<String>,
    #[serde(rename = "type", deserialize_with = "kind")]
    kind: Option<Kind>,
    #[serde(deserialize_with = "read::text")]
    command: Option<String>,
    #[serde(deserialize_with = "read::texts")]
    args: Option<Vec<String>>,
    #[serde(deserialize_with = "read::secrets")]
    env: Option<Vec<(String, SecretString)>>,
    #[serde(deserialize_with = "read::text")]
    cwd: Option<String>,
    #[serde(deserialize_with = "read::url")]
    url: Option<String>,
    #[serde(deserialize_with = "read::secrets")]
    headers: Option<Vec<(String, SecretString)>>,
    /// Value of the key `authorization`: the text of a header, or a map of login settings.
    authorization: Option<Value>,
    #[serde(deserialize_with = "read::time")]
    timeout: Option<Duration>,
    #[serde(deserialize_with = "read::time")]
    connect_timeout: Option<Duration>,
    #[serde(deserialize_with = "read::texts")]
    allowed_tools: Option<Vec<String>>,
    #[serde(deserialize_with = "read::texts")]
    exclude_tools: Option<Vec<String>>,
    #[serde(deserialize_with = "protocol_version")]
    protocol_version: Option<String>,
    required: bool,
    sequential: bool,
    #[serde(deserialize_with = "read::time")]
    idle_timeout: Option<Duration>,
    #[serde(deserialize_with = "read::times")]
    tool_timeouts: Option<Vec<(String, Duration)>>,
    max_concurrent_calls: Option<NonZeroUsize>,
    #[serde(deserialize_with = "sampling")]
    sampling: Option<SamplingLimits>,
    #[serde(deserialize_with = "roots")]
    roots: Option<Vec<Root>>,
    log_level: LogLevel,
}

pub(super) fn servers(value: &Value, path: &str) -> Result<Vec<ServerConfig>, ConfigError> {
    let listed = read::listed(value, path)?.into_iter();
    listed.map(|listed| server(&listed)).collect()
}

pub(super) fn server(listed: &Listed<'_>) -> Result<ServerConfig, ConfigError> {
    let path = &listed.path;
    let mut entry: Entry = read::section(listed.value, path)?;
    let name = entry.name.take().or(listed.key.map(str::to_owned));
    let name = read::name(name, path)?;
    let login = entry.login(path)?;
    let mut config = ServerConfig::new(name, entry.transport(path)?);
    config.authorization = login;
    if let Some(limit) = entry.timeout {
        config.call_timeout = Some(limit);
        // A start may download the program, so it gets at least the time of a call, up to a
        // maximum.
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

impl Entry {
    /// Returns the login settings of a map. An `authorization` that is text becomes a header
    /// instead.
    fn login(&mut self, path: &str) -> Result<AuthConfig, ConfigError> {
        let Some(value) = self.authorization.take_if(|_| self.command.is_none()) else {
            return Ok(AuthConfig::default());
        };
        let path = join(path, "authorization");
        let headers = self.headers.get_or_insert_default();
        let is_given = |(name, _): &(String, _)| name.eq_ignore_ascii_case("authorization");
        if headers.iter().any(is_given) {
            let reason = "and a header `Authorization` are both set: keep one of them";
            return Err(ConfigError::invalid(&path, reason));
        }
        match value {
            Value::String(header) => {
                headers.push(("Authorization".to_owned(), header.into()));
                Ok(AuthConfig::default())
            }
            Value::Object(_) => {
                let login: AuthConfig = read::section(&value, &path)?;
                login.check(&path)?;
                Ok(login)
            }
            _ => {
                let reason = "must be text (the header) or a map (the login)";
                Err(ConfigError::invalid(&path, reason))
            }
        }
    }

    fn transport(&mut self, path: &str) -> Result<ServerTransport, ConfigError> {
        let invalid = |reason: String| Err(ConfigError::invalid(path, reason));
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
            (None | Some(Kind::Stdio), Some(command), None) => {
                let has_login = self.authorization.is_some();
                unused(path, Kind::Http, "headers", self.headers.is_some())?;
                unused(path, Kind::Http, "authorization", has_login)?;
                Ok(ServerTransport::Stdio {
                    command,
                    args: self.args.take().unwrap_or_default(),
                    env: self.env.take().unwrap_or_default(),
                    cwd: self.cwd.take().map(Into::into),
                })
            }
            (None | Some(Kind::Http), None, Some(url)) => {
                unused(path, Kind::Stdio, "args", self.args.is_some())?;
                unused(path, Kind::Stdio, "env", self.env.is_some())?;
                unused(path, Kind::Stdio, "cwd", self.cwd.is_some())?;
                Ok(ServerTransport::StreamableHttp {
                    url,
                    headers: self.headers.take().unwrap_or_default(),
                })
            }
            (Some(kind), ..) => {
                let missing = match kind {
                    Kind::Stdio => "command",
                    Kind::Http => "url",
                };
                let kind = kind.name();
                invalid(format!("has type `{kind}`, which needs `{missing}`"))
            }
        }
    }
}

/// Returns an error if a key of the other transport is set.
fn unused(path: &str, kind: Kind, key: &str, is_given: bool) -> Result<(), ConfigError> {
    if is_given {
        let reason = format!("is for servers of type `{}` only", kind.name());
        return Err(ConfigError::invalid(&join(path, key), reason));
    }
    Ok(())
}

/// Parses a transport type in the spelling of any supported host.
pub(super) fn transport_kind(name: &str) -> Result<Kind, String> {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let normalized: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    match normalized.as_str() {
        "stdio" | "local" => Ok(Kind::Stdio),
        "http" | "streamablehttp" | "remote" => Ok(Kind::Http),
        "sse" => Err(
            "asks for `sse`, the HTTP+SSE transport that MCP retired in 2025: most such servers \
             also support streamable HTTP, often at `/mcp` instead of `/sse`, so set the type to \
             `streamable-http` and `url` to that URL; other servers need a bridge, `command: npx` \
             with `args: [-y, mcp-remote, <url>]`"
                .to_owned(),
        ),
        _ => {
            let similar = did_you_mean(nearest(name, ["stdio", "streamable-http"]));
            Err(format!("must be `stdio` or `streamable-http`{similar}"))
        }
    }
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Kind>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    let kind = name.map(|name| transport_kind(&name).map_err(D::Error::custom));
    kind.transpose()
}

fn protocol_version<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let expected = format!("one of {}", PROTOCOL_VERSIONS.join(", "));
    converted(deserializer, &expected, |value| {
        let version = value.as_str()?;
        let is_supported = PROTOCOL_VERSIONS.contains(&version);
        is_supported.then(|| version.to_owned())
    })
}

/// Deserializes sampling limits. `true` stands for the default limits.
fn sampling<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SamplingLimits>, D::Error> {
    let expected = "true, false, or a map of `calls` and `max_tokens`, both whole numbers";
    let limits = converted(deserializer, expected, |value| match value {
        Value::Bool(allowed) => Some(allowed.then(SamplingLimits::default)),
        limits => SamplingLimits::deserialize(limits).ok().map(Some),
    });
    limits.map(Option::flatten)
}

fn roots<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Root>>, D::Error> {
    converted(deserializer, "a list of absolute paths", |value| {
        let folders = read::scalars(value)?.into_iter();
        folders.map(|it| root_folder(Path::new(&it))).collect()
    })
}
