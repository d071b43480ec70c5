//! The forms of other hosts. Lenient: they hold keys of their own, which say nothing to us.
//!
//! A `timeout` there is not read: hosts disagree whether it is seconds or milliseconds.

use serde_json::{Map, Value};

use super::{
    ConfigError, ServerConfig, ServerTransport, ours,
    read::{self, join},
};
use switchboard_domain::nearest::nearest;

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
        other => Err(read::wrong(
            path,
            "a map of servers by name, or a list of servers",
            other,
        )),
    };
    Ok(servers?.into_iter().flatten().collect())
}

fn by_name(name: &str, value: &Value, path: &str) -> Result<Option<ServerConfig>, ConfigError> {
    let fields = read::object(value, path)?;
    if switched_off(fields) {
        return Ok(None);
    }
    let name = read::not_empty(name.to_owned(), path)?;
    Ok(Some(ServerConfig::new(name, transport(fields, path)?)))
}

/// `{id, name, enabled, transport, command, args}`: the id is the name by which tools are prefixed,
/// the name is a title for people.
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

fn switched_off(fields: &Map<String, Value>) -> bool {
    let is = |key: &str, flag: bool| fields.get(key).and_then(Value::as_bool) == Some(flag);
    is("disabled", true) || is("enabled", false)
}

fn transport(fields: &Map<String, Value>, path: &str) -> Result<ServerTransport, ConfigError> {
    let given = |key: &str| fields.get(key).is_some_and(|value| !value.is_null());
    for key in ["type", "transport"] {
        if given(key) {
            check_kind(&fields[key], &join(path, key))?;
        }
    }
    match (given("command"), given("url")) {
        (true, true) => Err(ConfigError::TwoTransports {
            path: path.to_owned(),
        }),
        (false, false) => Err(ConfigError::NoTransport {
            path: path.to_owned(),
        }),
        (true, false) => ours::stdio(fields, path),
        (false, true) => ours::http(fields, path),
    }
}

/// Command or address decide; the type is only checked for what cannot work.
fn check_kind(value: &Value, path: &str) -> Result<(), ConfigError> {
    let kind = read::string(value, path)?;
    let plain: String = kind
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    match plain.as_str() {
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
