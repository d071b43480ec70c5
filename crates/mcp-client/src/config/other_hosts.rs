//! Parser of server configurations of other MCP hosts. It converts each server to the Switchboard
//! format first. Unknown keys are ignored, and an unusable server does not affect the others.

use serde_json::{Map, Value};

use crate::config::{
    ServerConfig, ServerTransport,
    error::ConfigError,
    read::{self, RawServerEntry, join_path},
    switchboard_format,
    unused_parts::find_editor_variable,
};

/// Keys with the URL of a server, in order of precedence. Gemini CLI uses `httpUrl` for streamable
/// HTTP and `url` for the older SSE transport. Windsurf uses `serverUrl`.
const URLS: [&str; 3] = ["httpUrl", "serverUrl", "url"];
/// Key in Claude Code for a command that prints HTTP headers. The command is not run, and the
/// server gets a warning.
pub(super) const HEADERS_HELPER: &str = "headersHelper";
/// Key in VS Code and Cursor for a file with environment variables. The parsers of this crate do
/// not read this file. They add a warning if the key is present, so an application that reads the
/// file removes the key first.
pub const ENV_FILE: &str = "envFile";
/// Internal key for the reason why a server entry cannot be used. A file cannot set it, because
/// [`drop_unused_parts`](super::drop_unused_parts) removes it.
const UNUSABLE: &str = "$unusable";
/// Maximum `timeout` that is read as seconds, as in Cline and Roo Code. Larger numbers are read as
/// milliseconds, as in Gemini CLI.
const MAX_SECONDS: f64 = 3600.0;

/// Effect of a tool filter, such as the key `includeTools`, in the file of another MCP host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolFilter {
    /// Only the tools in the list are available, as with `includeTools`.
    Allow,
    /// All tools except those in the list are available, as with `excludeTools`.
    Exclude,
    /// The key looks like a tool filter, but its effect is unknown, so the server is not used.
    Unsupported,
}

/// Returns the kind of tool filter that a key denotes, if any. Gemini CLI and Amp use
/// `includeTools` and `excludeTools`, Codex `enabled_tools` and `disabled_tools`, Roo Code,
/// Windsurf and Kiro `disabledTools`, Goose `available_tools`, GitHub Copilot `tools`.
fn parse_tool_filter(key: &str) -> Option<ToolFilter> {
    const LIMITS: [&str; 17] = [
        "allow", "block", "config", "denied", "deny", "disable", "enable", "exclu", "filter",
        "hid", "inclu", "only", "permi", "polic", "restrict", "white", "black",
    ];
    let letters = key.chars().filter(char::is_ascii_alphanumeric);
    let normalized: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    match normalized.as_str() {
        "allowedtools" | "enabledtools" | "includetools" | "includedtools" | "availabletools"
        | "tools" => Some(ToolFilter::Allow),
        "excludetools" | "excludedtools" | "disabledtools" | "disallowedtools" | "blockedtools"
        | "deniedtools" => Some(ToolFilter::Exclude),
        // Keys such as `alwaysAllow` list tools for automatic approval, but do not filter them.
        _ if normalized.contains("auto") || normalized.contains("always") => None,
        _ => (normalized.contains("tool") && LIMITS.iter().any(|word| normalized.contains(word)))
            .then_some(ToolFilter::Unsupported),
    }
}

/// Returns whether Switchboard uses a key in a server entry of another MCP host.
pub(super) fn is_known_key(key: &str) -> bool {
    is_non_filter_key(key) || parse_tool_filter(key).is_some()
}

/// Returns whether a key in a server entry of another MCP host is a setting that Switchboard uses,
/// other than a tool filter such as `includeTools`.
fn is_non_filter_key(key: &str) -> bool {
    matches!(
        key,
        "id" | "name"
            | "enabled"
            | "disabled"
            | "type"
            | "transport"
            | "command"
            | "args"
            | "env"
            | "cwd"
            | ENV_FILE
            | HEADERS_HELPER
            | "headers"
            | "authorization"
            | "httpUrl"
            | "serverUrl"
            | "url"
            | "timeout"
            | "connect_timeout"
            | "protocol_version"
            | "required"
            | "sequential"
            | "idle_timeout"
            | "tool_timeouts"
            | "max_concurrent_calls"
    )
}

/// Marks a server entry of another MCP host as unusable. The parser then returns
/// [`ServerTransport::Unusable`] with the reason.
pub fn mark_server_unusable(server: &mut Value, reason: impl Into<String>) {
    if !server.is_object() {
        *server = Value::Object(Map::new());
    }
    if let Value::Object(fields) = server {
        fields.insert(UNUSABLE.to_owned(), Value::String(reason.into()));
    }
}

pub(super) fn parse_servers(value: &Value, path: &str) -> Result<Vec<ServerConfig>, ConfigError> {
    let listed = read::list_server_entries(value, path)?.into_iter();
    let enabled = listed.filter(|listed| !is_server_disabled(listed.value));
    enabled.map(|listed| parse_server(&listed)).collect()
}

pub(super) fn is_server_disabled(server: &Value) -> bool {
    let is = |key: &str, flag: bool| server.get(key).and_then(Value::as_bool) == Some(flag);
    is("disabled", true) || is("enabled", false)
}

/// Parses a server entry of another MCP host. In a list, the name of the server is in `id`, or else
/// in `name`. Returns an error only for a missing name. An entry with other problems becomes
/// [`ServerTransport::Unusable`].
fn parse_server(listed: &RawServerEntry<'_>) -> Result<ServerConfig, ConfigError> {
    let RawServerEntry { key, value, path } = listed;
    let listed_name = || value.get("id").or_else(|| value.get("name"));
    let name = key.map(str::to_owned);
    let name = name.or_else(|| listed_name().and_then(read::scalar_to_text));
    let name = read::check_server_name(name, path)?;
    let read = match value.get(UNUSABLE).and_then(Value::as_str) {
        Some(reason) => Err(format!("`{path}`: {reason}")),
        None => parse_usable_server(&name, value, path).map_err(|error| error.to_string()),
    };
    Ok(read.unwrap_or_else(|reason| {
        let mut server = ServerConfig::new(name, ServerTransport::Unusable { reason });
        server.required = value.get("required") == Some(&Value::Bool(true));
        server
    }))
}

fn parse_usable_server(name: &str, value: &Value, path: &str) -> Result<ServerConfig, ConfigError> {
    let Value::Object(fields) = value else {
        return Err(ConfigError::invalid_value(path, "must be a map"));
    };
    let mut warnings = Vec::new();
    let ours = RawServerEntry {
        key: Some(name),
        value: &convert_to_switchboard_format(fields, path, &mut warnings)?,
        path: path.to_owned(),
    };
    let mut config = switchboard_format::parse_server(&ours)?;
    config.warnings = warnings;
    Ok(config)
}

/// Converts a server entry of another MCP host to the Switchboard format. Adds a text to `warnings`
/// for each setting without effect. Returns an error for an invalid or unsupported setting.
fn convert_to_switchboard_format(
    fields: &Map<String, Value>,
    path: &str,
    warnings: &mut Vec<String>,
) -> Result<Value, ConfigError> {
    let given = |key: &str| fields.get(key).filter(|value| !value.is_null());
    let is_program = given("command").is_some();
    let mut ours = Map::new();
    let (mut allowed, mut excluded) = (None, Vec::new());
    for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let path = join_path(path, key);
        if let Some(filter) = parse_tool_filter(key) {
            let names = parse_tool_names(filter, value, &path)?;
            match (filter, names, &mut allowed) {
                (_, None, _) => {}
                (ToolFilter::Allow, Some(names), None) => allowed = Some(names),
                (ToolFilter::Allow, Some(names), Some(allowed)) => {
                    allowed.retain(|name| names.contains(name));
                }
                (_, Some(names), _) => excluded.extend(names),
            }
            continue;
        }
        if !is_non_filter_key(key) {
            continue;
        }
        reject_editor_variables(value, &path)?;
        match key.as_str() {
            // The type is only validated, because `command` or the URL determines the transport.
            "type" | "transport" => {
                let kind = value.as_str().unwrap_or_default();
                let kind = switchboard_format::parse_transport_kind(kind);
                kind.map_err(|reason| ConfigError::invalid_value(&path, reason))?;
            }
            ENV_FILE => warnings.push(format!(
                "`{path}` is not supported: set the variables of that file under `env`"
            )),
            HEADERS_HELPER => warnings.push(format!(
                "`{path}` is not supported: set the headers that this command prints under \
                 `headers`"
            )),
            "id" | "name" | "enabled" | "disabled" | "httpUrl" | "serverUrl" | "url" => {}
            "args" | "env" | "cwd" if !is_program => {}
            "headers" | "authorization" if is_program => {}
            "timeout" => {
                ours.insert(key.clone(), timeout_to_seconds(value));
            }
            _ => {
                ours.insert(key.clone(), value.clone());
            }
        }
    }
    if let Some(url) = URLS.into_iter().find_map(given) {
        ours.insert("url".to_owned(), url.clone());
    }
    if let Some(allowed) = allowed {
        ours.insert("allowed_tools".to_owned(), allowed.into());
    }
    ours.insert("exclude_tools".to_owned(), excluded.into());
    Ok(ours.into())
}

fn timeout_to_seconds(timeout: &Value) -> Value {
    let number = match timeout {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    };
    match number {
        Some(number) if number > MAX_SECONDS => (number / 1000.0).into(),
        _ => timeout.clone(),
    }
}

/// Returns the tool names in a tool filter, or `None` if the filter allows every tool. Returns an
/// error for an unsupported filter, and for a name that contains a pattern such as `*`.
fn parse_tool_names(
    filter: ToolFilter,
    value: &Value,
    path: &str,
) -> Result<Option<Vec<String>>, ConfigError> {
    let names = read::scalars_to_texts(value).filter(|_| filter != ToolFilter::Unsupported);
    let Some(names) = names else {
        let reason = "seems to filter the tools, but is not supported: use `allowed_tools` or \
                      `exclude_tools` with a list of tool names, or remove it";
        return Err(ConfigError::invalid_value(path, reason));
    };
    if filter == ToolFilter::Allow && names == ["*"] {
        return Ok(None);
    }
    let is_pattern = |name: &&String| name.contains(['*', '?', '[', '(']);
    if let Some(pattern) = names.iter().find(is_pattern) {
        let reason =
            format!("contains `{pattern}`: patterns are not supported; list the tool names");
        return Err(ConfigError::invalid_value(path, reason));
    }
    Ok(Some(names))
}

fn reject_editor_variables(value: &Value, path: &str) -> Result<(), ConfigError> {
    match value {
        Value::String(text) => find_editor_variable(text).map_or(Ok(()), |variable| {
            let reason = format!(
                "contains `{variable}`, which only an editor can substitute: use `${{NAME}}` and \
                 set the environment variable NAME"
            );
            Err(ConfigError::invalid_value(path, reason))
        }),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
            reject_editor_variables(item, &format!("{path}[{index}]"))
        }),
        Value::Object(fields) => fields
            .iter()
            .try_for_each(|(key, item)| reject_editor_variables(item, &join_path(path, key))),
        _ => Ok(()),
    }
}
