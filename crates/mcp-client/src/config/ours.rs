//! Our own form `mcp_servers:`. Unknown keys are errors.

use std::{path::Path, time::Duration};

use secrecy::SecretString;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::config::{
    ServerConfig, ServerTransport,
    client_features::{Root, SamplingLimits},
    error::ConfigError,
    log_level::LogLevel,
    oauth,
    read::{self, join},
};
use switchboard_domain::nearest::nearest;

const STDIO: &str = "stdio";
const HTTP: &str = "streamable-http";

/// The longest connect time-out that is derived from `timeout`.
const MAX_DERIVED_CONNECT_TIMEOUT: Duration = Duration::from_mins(2);

pub(super) const KEYS: [&str; 22] = [
    "name",
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "authorization",
    "timeout",
    "connect_timeout",
    "allowed_tools",
    "exclude_tools",
    "protocol_version",
    "required",
    "sequential",
    "idle_timeout",
    "tool_timeouts",
    "max_concurrent_calls",
    "sampling",
    "roots",
    "log_level",
];

pub(super) fn servers(value: &Value, path: &str) -> Result<Vec<ServerConfig>, ConfigError> {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| server(value, &join(path, name), Some(name)))
            .collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(index, value)| server(value, &format!("{path}[{index}]"), None))
            .collect(),
        other => Err(read::wrong_type(
            path,
            "a map of servers by name, or a list of servers",
            other,
        )),
    }
}

fn server(value: &Value, path: &str, key: Option<&str>) -> Result<ServerConfig, ConfigError> {
    let fields = read::object(value, path)?;
    if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(ConfigError::UnknownKey {
            path: join(path, unknown),
            nearest: nearest(unknown, KEYS).map(str::to_owned),
            known: KEYS.to_vec(),
        });
    }
    let get = |key: &str| fields.get(key).map(|value| (value, join(path, key)));
    let name = match (get("name"), key) {
        (Some((value, path)), _) => read::string(value, &path)?,
        (None, Some(key)) => key.to_owned(),
        (None, None) => {
            return Err(ConfigError::MissingName {
                path: path.to_owned(),
            });
        }
    };
    let name = read::not_empty(name, path)?;
    let mut config = ServerConfig::new(name, transport(fields, path)?);
    settings(&mut config, get, read::duration)?;
    if let Some((value, path)) = get("allowed_tools") {
        config.allowed_tools = Some(read::scalars(value, &path)?);
    }
    if let Some((value, path)) = get("exclude_tools") {
        config.exclude_tools = read::scalars(value, &path)?;
    }
    Ok(config)
}

/// Parses the keys beside transport and tools, which all forms share. `timeout` parses that key.
pub(super) fn settings<'a>(
    config: &mut ServerConfig,
    get: impl Fn(&str) -> Option<(&'a Value, String)>,
    timeout: impl Fn(&Value, &str) -> Result<Duration, ConfigError>,
) -> Result<(), ConfigError> {
    if let Some((value, path)) = get("timeout") {
        let limit = timeout(value, &path)?;
        config.call_timeout = Some(limit);
        // A start may download the program, so it has at least the time of a call, up to a limit.
        config.connect_timeout = config
            .connect_timeout
            .max(limit.min(MAX_DERIVED_CONNECT_TIMEOUT));
    }
    if let Some((value, path)) = get("connect_timeout") {
        config.connect_timeout = read::duration(value, &path)?;
    }
    if let Some((value, path)) = get("protocol_version") {
        config.protocol_version = Some(read::protocol_version(value, &path)?);
    }
    if let Some((value, path)) = get("required") {
        config.required = read::boolean(value, &path)?;
    }
    if let Some((value, path)) = get("sequential") {
        config.sequential = read::boolean(value, &path)?;
    }
    if let Some((value, path)) = get("authorization").filter(|(value, _)| value.is_object()) {
        config.authorization = oauth::authorization(value, &path)?;
        check_no_header(config, path)?;
    }
    if let Some((value, path)) = get("idle_timeout") {
        config.idle_timeout = Some(read::duration(value, &path)?);
    }
    if let Some((value, path)) = get("tool_timeouts") {
        config.tool_timeouts = read::object(value, &path)?
            .iter()
            .map(|(tool, value)| Ok((tool.clone(), read::duration(value, &join(&path, tool))?)))
            .collect::<Result<_, ConfigError>>()?;
    }
    if let Some((value, path)) = get("max_concurrent_calls") {
        config.max_concurrent_calls = Some(read::positive_integer(value, &path)?);
    }
    if let Some((value, path)) = get("sampling") {
        config.sampling = sampling(value, &path)?;
    }
    if let Some((value, path)) = get("roots") {
        let folders = read::scalars(value, &path)?;
        let roots = folders.iter().map(|folder| Root::folder(Path::new(folder)));
        let roots: Option<Vec<Root>> = roots.collect();
        let wrong = || read::wrong_type(&path, "a list of absolute paths", value);
        config.roots = Some(roots.ok_or_else(wrong)?);
    }
    if let Some((value, path)) = get("log_level") {
        config.log_level = LogLevel::deserialize(value).map_err(|_| {
            let levels = "debug, info, notice, warning, error, critical, alert or emergency";
            read::wrong_type(&path, levels, value)
        })?;
    }
    Ok(())
}

/// Parses `true` for the default limits, or a map of limits.
fn sampling(value: &Value, path: &str) -> Result<Option<SamplingLimits>, ConfigError> {
    match value {
        Value::Bool(allowed) => Ok(allowed.then(SamplingLimits::default)),
        limits => SamplingLimits::deserialize(limits).map(Some).map_err(|_| {
            let expected = "true, false, or a map of `calls` and `max_tokens`, both whole numbers";
            read::wrong_type(path, expected, limits)
        }),
    }
}

/// Returns an error for a login together with an `Authorization` header.
fn check_no_header(config: &ServerConfig, path: String) -> Result<(), ConfigError> {
    let given = |(name, _): &(String, SecretString)| name.eq_ignore_ascii_case("authorization");
    match &config.transport {
        ServerTransport::StreamableHttp { headers, .. } if headers.iter().any(given) => {
            Err(ConfigError::DuplicateAuthorization { path })
        }
        _ => Ok(()),
    }
}

fn transport(fields: &Map<String, Value>, path: &str) -> Result<ServerTransport, ConfigError> {
    let kind = match fields.get("type") {
        Some(value) => Some(kind(value, &join(path, "type"))?),
        None => None,
    };
    let has = |key: &str| fields.contains_key(key);
    let kind = match (kind, has("command"), has("url")) {
        (_, true, true) => {
            return Err(ConfigError::TwoTransports {
                path: path.to_owned(),
            });
        }
        (None, false, false) => {
            return Err(ConfigError::NoTransport {
                path: path.to_owned(),
            });
        }
        (None | Some(STDIO), true, false) => STDIO,
        (None | Some(HTTP), false, true) => HTTP,
        (Some(kind), ..) => {
            return Err(ConfigError::TypeNeeds {
                path: path.to_owned(),
                kind,
                missing: if kind == STDIO { "command" } else { "url" },
            });
        }
    };
    let (foreign_keys, belongs_to): (&[&str], _) = if kind == STDIO {
        (&["headers", "authorization"], HTTP)
    } else {
        (&["args", "env", "cwd"], STDIO)
    };
    if let Some(key) = foreign_keys.iter().find(|key| has(key)) {
        return Err(ConfigError::WrongTransport {
            path: join(path, key),
            belongs_to,
        });
    }
    if kind == STDIO {
        stdio(fields, path)
    } else {
        http(fields, path, "url")
    }
}

fn kind(value: &Value, path: &str) -> Result<&'static str, ConfigError> {
    match read::string(value, path)?.as_str() {
        STDIO => Ok(STDIO),
        HTTP | "streamable_http" | "http" => Ok(HTTP),
        "sse" => Err(ConfigError::RetiredSse {
            path: path.to_owned(),
        }),
        other => Err(ConfigError::UnknownTransport {
            path: path.to_owned(),
            value: other.to_owned(),
            nearest: nearest(other, [STDIO, HTTP]).map(str::to_owned),
        }),
    }
}

/// Parses the keys of a stdio server, which all forms share.
pub(super) fn stdio(
    fields: &Map<String, Value>,
    path: &str,
) -> Result<ServerTransport, ConfigError> {
    let get = |key: &str| {
        fields
            .get(key)
            .filter(|value| !value.is_null())
            .map(|value| (value, join(path, key)))
    };
    let Some((command, command_path)) = get("command") else {
        return Err(ConfigError::NoTransport {
            path: path.to_owned(),
        });
    };
    Ok(ServerTransport::Stdio {
        command: read::string(command, &command_path)?,
        args: get("args").map_or(Ok(Vec::new()), |(value, path)| read::scalars(value, &path))?,
        env: get("env").map_or(Ok(Vec::new()), |(value, path)| read::secrets(value, &path))?,
        cwd: get("cwd")
            .map(|(value, path)| read::string(value, &path))
            .transpose()?
            .map(Into::into),
    })
}

/// Parses the keys of an HTTP server, which all forms share except the key of the URL.
pub(super) fn http(
    fields: &Map<String, Value>,
    path: &str,
    url_key: &str,
) -> Result<ServerTransport, ConfigError> {
    let get = |key: &str| {
        fields
            .get(key)
            .filter(|value| !value.is_null())
            .map(|value| (value, join(path, key)))
    };
    let Some((url, url_path)) = get(url_key) else {
        return Err(ConfigError::NoTransport {
            path: path.to_owned(),
        });
    };
    let mut headers =
        get("headers").map_or(Ok(Vec::new()), |(value, path)| read::secrets(value, &path))?;
    // A map configures the login, which is not part of the transport.
    if let Some((value, path)) = get("authorization").filter(|(value, _)| !value.is_object()) {
        let given = |(name, _): &(String, SecretString)| name.eq_ignore_ascii_case("authorization");
        if headers.iter().any(given) {
            return Err(ConfigError::DuplicateAuthorization { path });
        }
        let Some(value) = value.as_str() else {
            let expected = "text (the header) or a map (the login)";
            return Err(read::wrong_type(&path, expected, value));
        };
        let value = SecretString::from(value);
        headers.push(("Authorization".to_owned(), value));
    }
    Ok(ServerTransport::StreamableHttp {
        url: read::url(url, &url_path)?,
        headers,
    })
}
