//! The forms of other hosts. Parsing is lenient: unknown keys are ignored, and a server that cannot
//! be used does not affect the others.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::config::{
    ServerConfig, ServerTransport,
    error::ConfigError,
    ours,
    read::{self, join},
    select::editor_variable,
};
use switchboard_domain::nearest::nearest;

/// The keys of a URL, in order of precedence. In Gemini CLI `httpUrl` is streamable HTTP and `url`
/// is not. Windsurf has `serverUrl`.
const URLS: [&str; 3] = ["httpUrl", "serverUrl", "url"];
/// Claude Code: a command that prints headers.
pub(super) const HEADERS_HELPER: &str = "headersHelper";
/// VS Code and Cursor: a file with variables for the server.
pub const ENV_FILE: &str = "envFile";
/// The key for the reason why a server cannot be used. [`select`](super::select) removes it from
/// files.
const UNUSABLE: &str = "$unusable";
/// The keys whose text may contain variables.
const TEXTS: [&str; 10] = [
    "command",
    "args",
    "env",
    "cwd",
    ENV_FILE,
    "headers",
    "authorization",
    "httpUrl",
    "serverUrl",
    "url",
];
/// Further known keys, beside tool filters.
const SETTINGS: [&str; 14] = [
    "id",
    "name",
    "enabled",
    "disabled",
    "type",
    "transport",
    "timeout",
    "connect_timeout",
    "protocol_version",
    "required",
    "sequential",
    "idle_timeout",
    "tool_timeouts",
    "max_concurrent_calls",
];
/// A number as `timeout` is seconds up to this value, which is the maximum of Cline and Roo Code,
/// and milliseconds above (Gemini CLI).
const MAX_SECONDS: f64 = 3600.0;

/// The meaning of a tool filter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Filter {
    /// Only the listed tools.
    Allow,
    /// All but the listed tools.
    Exclude,
    /// Unknown.
    Unsupported,
}

/// Returns the filter that a key represents. Other hosts: Gemini CLI and Amp have `includeTools`
/// and `excludeTools`, Codex `enabled_tools` and `disabled_tools`, Roo Code, Windsurf and Kiro
/// `disabledTools`, Goose `available_tools`, GitHub Copilot `tools`.
fn filter_of(key: &str) -> Option<Filter> {
    const LIMITS: [&str; 17] = [
        "allow", "block", "config", "denied", "deny", "disable", "enable", "exclu", "filter",
        "hid", "inclu", "only", "permi", "polic", "restrict", "white", "black",
    ];
    let normalized = normalized(key);
    match normalized.as_str() {
        "allowedtools" | "enabledtools" | "includetools" | "includedtools" | "availabletools"
        | "tools" => Some(Filter::Allow),
        "excludetools" | "excludedtools" | "disabledtools" | "disallowedtools" | "blockedtools"
        | "deniedtools" => Some(Filter::Exclude),
        // Automatic approval is not a filter.
        _ if normalized.contains("auto") || normalized.contains("always") => None,
        _ => (normalized.contains("tool") && LIMITS.iter().any(|word| normalized.contains(word)))
            .then_some(Filter::Unsupported),
    }
}

/// Returns whether a key of a server is known.
pub(super) fn is_known_key(key: &str) -> bool {
    TEXTS.contains(&key)
        || SETTINGS.contains(&key)
        || key == HEADERS_HELPER
        || filter_of(key).is_some()
}

/// Marks a server in the form of another host as unusable. [`from_document`](super::from_document)
/// then returns it with this reason.
pub fn mark_unusable(server: &mut Value, reason: impl Into<String>) {
    if !server.is_object() {
        *server = Value::Object(Map::new());
    }
    if let Value::Object(fields) = server {
        fields.insert(UNUSABLE.to_owned(), Value::String(reason.into()));
    }
}

pub(super) fn servers(value: &Value, path: &str) -> Result<Vec<ServerConfig>, ConfigError> {
    let servers: Result<Vec<_>, _> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| by_name(name, value, &join(path, name)))
            .collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(index, value)| listed(value, &format!("{path}[{index}]")))
            .collect(),
        other => Err(read::wrong_type(
            path,
            "a map of servers by name, or a list of servers",
            other,
        )),
    };
    Ok(servers?.into_iter().flatten().collect())
}

fn by_name(name: &str, value: &Value, path: &str) -> Result<Option<ServerConfig>, ConfigError> {
    let name = read::not_empty(name.to_owned(), path)?;
    if is_disabled(value) {
        return Ok(None);
    }
    let read = match value.get(UNUSABLE).and_then(Value::as_str) {
        Some(reason) => Err(format!("`{path}`: {reason}")),
        None => server(&name, value, path).map_err(|error| error.to_string()),
    };
    let server = read.unwrap_or_else(|reason| {
        let mut server = ServerConfig::new(name, ServerTransport::Unusable { reason });
        server.required = value.get("required") == Some(&Value::Bool(true));
        server
    });
    Ok(Some(server))
}

/// Parses a server in a list: `{id, name, enabled, transport, command, args}`. The id is the name
/// of the server, and the name is a title.
fn listed(value: &Value, path: &str) -> Result<Option<ServerConfig>, ConfigError> {
    let fields = read::object(value, path)?;
    let Some((key, name)) = ["id", "name"]
        .into_iter()
        .find_map(|key| fields.get(key).map(|value| (key, value)))
    else {
        return Err(ConfigError::MissingName {
            path: path.to_owned(),
        });
    };
    let name = read::scalar(name, &join(path, key))?;
    by_name(&name, value, path)
}

pub(super) fn is_disabled(server: &Value) -> bool {
    let is = |key: &str, flag: bool| server.get(key).and_then(Value::as_bool) == Some(flag);
    is("disabled", true) || is("enabled", false)
}

fn server(name: &str, value: &Value, path: &str) -> Result<ServerConfig, ConfigError> {
    let fields = read::object(value, path)?;
    let get = |key: &str| {
        let value = fields.get(key).filter(|value| !value.is_null())?;
        Some((value, join(path, key)))
    };
    for key in TEXTS {
        if let Some((value, path)) = get(key) {
            no_editor_variable(value, &path)?;
        }
    }
    let mut config = ServerConfig::new(name, transport(fields, path)?);
    for (key, advice) in [
        (
            ENV_FILE,
            "is not supported: set the variables of that file under `env`",
        ),
        (
            HEADERS_HELPER,
            "is not supported: set the headers that this command prints under `headers`",
        ),
    ] {
        if let Some((_, path)) = get(key) {
            config.warnings.push(format!("`{path}` {advice}"));
        }
    }
    ours::settings(&mut config, get, timeout)?;
    for key in fields.keys() {
        if let (Some(filter), Some((value, path))) = (filter_of(key), get(key)) {
            apply_filter(&mut config, filter, value, &path)?;
        }
    }
    Ok(config)
}

fn timeout(value: &Value, path: &str) -> Result<Duration, ConfigError> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    };
    match number {
        Some(number) if number > MAX_SECONDS => read::duration(&(number / 1000.0).into(), path),
        _ => read::duration(value, path),
    }
}

/// Applies a filter. Several filters are combined.
fn apply_filter(
    config: &mut ServerConfig,
    filter: Filter,
    value: &Value,
    path: &str,
) -> Result<(), ConfigError> {
    let names = read::scalars(value, path).ok();
    let Some(names) = names.filter(|_| filter != Filter::Unsupported) else {
        return Err(ConfigError::UnsupportedFilter {
            path: path.to_owned(),
        });
    };
    if filter == Filter::Allow && names == ["*"] {
        return Ok(());
    }
    if let Some(pattern) = names
        .iter()
        .find(|name| name.contains(['*', '?', '[', '(']))
    {
        return Err(ConfigError::Pattern {
            path: path.to_owned(),
            value: pattern.clone(),
        });
    }
    match (filter, &mut config.allowed_tools) {
        (Filter::Allow, Some(allowed)) => allowed.retain(|name| names.contains(name)),
        (Filter::Allow, none) => *none = Some(names),
        _ => config.exclude_tools.extend(names),
    }
    Ok(())
}

fn no_editor_variable(value: &Value, path: &str) -> Result<(), ConfigError> {
    match value {
        Value::String(text) => match editor_variable(text) {
            Some(variable) => Err(ConfigError::EditorVariable {
                path: path.to_owned(),
                variable: variable.to_owned(),
            }),
            None => Ok(()),
        },
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(index, item)| no_editor_variable(item, &format!("{path}[{index}]"))),
        Value::Object(fields) => fields
            .iter()
            .try_for_each(|(key, item)| no_editor_variable(item, &join(path, key))),
        _ => Ok(()),
    }
}

fn transport(fields: &Map<String, Value>, path: &str) -> Result<ServerTransport, ConfigError> {
    let given = |key: &str| fields.get(key).is_some_and(|value| !value.is_null());
    for key in ["type", "transport"] {
        if given(key) {
            check_kind(&fields[key], &join(path, key))?;
        }
    }
    match (given("command"), URLS.into_iter().find(|key| given(key))) {
        (true, Some(_)) => Err(ConfigError::TwoTransports {
            path: path.to_owned(),
        }),
        (false, None) => Err(ConfigError::NoTransport {
            path: path.to_owned(),
        }),
        (true, None) => ours::stdio(fields, path),
        (false, Some(url)) => ours::http(fields, path, url),
    }
}

/// Checks the type. The command or the URL determines the transport.
fn check_kind(value: &Value, path: &str) -> Result<(), ConfigError> {
    let kind = read::string(value, path)?;
    match normalized(&kind).as_str() {
        "stdio" | "http" | "streamablehttp" | "local" | "remote" => Ok(()),
        "sse" => Err(ConfigError::RetiredSse {
            path: path.to_owned(),
        }),
        _ => Err(ConfigError::UnknownTransport {
            path: path.to_owned(),
            nearest: nearest(&kind, ["stdio", "streamable-http"]).map(str::to_owned),
            value: kind,
        }),
    }
}

/// Returns the lower-case letters and digits of a key, because hosts have several spellings.
fn normalized(word: &str) -> String {
    word.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}
