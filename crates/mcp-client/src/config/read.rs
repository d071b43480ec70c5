//! Deserialization of configuration values. Errors never contain the value, which may be a secret.

use std::time::Duration;

use secrecy::SecretString;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value;

use crate::config::error::ConfigError;

/// Server entry in a map or a list, before it is deserialized.
pub(super) struct RawServerEntry<'a> {
    /// Key of the entry in a map, which is the name of the server. `None` in a list.
    pub(super) key: Option<&'a str>,
    pub(super) value: &'a Value,
    pub(super) path: String,
}

/// Returns the server entries of a map or a list, each with its path for error messages. Returns an
/// error for any other value.
pub(super) fn list_server_entries<'a>(
    value: &'a Value,
    path: &str,
) -> Result<Vec<RawServerEntry<'a>>, ConfigError> {
    let entry = |key, value, path| RawServerEntry { key, value, path };
    Ok(match value {
        Value::Object(map) => {
            let entries = map.iter();
            entries
                .map(|(name, it)| entry(Some(name.as_str()), it, join_path(path, name)))
                .collect()
        }
        Value::Array(list) => {
            let entries = list.iter().enumerate();
            entries
                .map(|(index, it)| entry(None, it, format!("{path}[{index}]")))
                .collect()
        }
        _ => {
            let reason = "must be a map of servers by name, or a list of servers";
            return Err(ConfigError::invalid_value(path, reason));
        }
    })
}

/// Deserializes a JSON object to a struct. An error contains the path of the invalid value.
pub(super) fn deserialize_object<T: DeserializeOwned>(
    value: &Value,
    path: &str,
) -> Result<T, ConfigError> {
    // Lists are rejected here, because serde would deserialize a struct from a list too.
    if !value.is_object() {
        return Err(ConfigError::invalid_value(path, "must be a map"));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = match error.path().to_string().as_str() {
            "." => path.to_owned(),
            inner => join_path(path, inner),
        };
        ConfigError::from_serde(&path, &error.inner().to_string())
    })
}

/// Returns the path of a nested key in the configuration, such as `parent.key`.
pub(super) fn join_path(parent: &str, key: &str) -> String {
    if parent.is_empty() {
        key.to_owned()
    } else {
        format!("{parent}.{key}")
    }
}

/// Returns the name of a server, or an error if the name is missing or blank. `path` is the path of
/// the server entry for the error message.
pub(super) fn check_server_name(name: Option<String>, path: &str) -> Result<String, ConfigError> {
    name.filter(|name| !name.trim().is_empty())
        .ok_or_else(|| ConfigError::invalid_value(path, "has no name: set `name`"))
}

/// Converts a scalar to text. Accepts numbers and booleans, because YAML parses an unquoted
/// `PORT: 8080` as a number. Returns `None` for `null`, a list or a map.
pub(super) fn scalar_to_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

pub(super) fn scalars_to_texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(scalar_to_text).collect()
}

/// Deserializes an optional value and converts it with `convert`. A missing value or `null` gives
/// `None`. If `convert` returns `None`, the value is invalid and the result is the error
/// `must be {expected}`.
pub(super) fn deserialize_converted<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &str,
    convert: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    let converted = value.map(|value| {
        let invalid = || D::Error::custom(format!("must be {expected}"));
        convert(&value).ok_or_else(invalid)
    });
    converted.transpose()
}

/// Deserializes optional text. Returns an error for other types, and for text that contains only
/// white space.
pub(super) fn deserialize_text<'de, D: Deserializer<'de>, T: for<'a> From<&'a str>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserialize_converted(deserializer, "non-empty text", |value| {
        let text = value.as_str().filter(|text| !text.trim().is_empty());
        text.map(T::from)
    })
}

pub(super) fn deserialize_text_list<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    deserialize_converted(deserializer, "a list of strings", scalars_to_texts)
}

pub(super) fn deserialize_secrets<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<(String, SecretString)>>, D::Error> {
    deserialize_converted(deserializer, "a map of strings", |value| {
        let fields = value.as_object()?.iter();
        fields
            .map(|(name, value)| Some((name.clone(), scalar_to_text(value)?.into())))
            .collect()
    })
}

const TIME: &str = "a positive duration: seconds as a number, or text like `30s`, `500ms` or `2m`";

pub(super) fn deserialize_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    deserialize_converted(deserializer, TIME, parse_duration)
}

pub(super) fn deserialize_tool_timeouts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<(String, Duration)>>, D::Error> {
    let expected = format!("a map of tool names, each with {TIME}");
    deserialize_converted(deserializer, &expected, |value| {
        let fields = value.as_object()?.iter();
        fields
            .map(|(tool, value)| Some((tool.clone(), parse_duration(value)?)))
            .collect()
    })
}

fn parse_duration(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => {
            let text = text.trim();
            let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
            let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
            let unit = match unit.trim() {
                "" | "s" => 1.0,
                "ms" => 0.001,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
            number.parse::<f64>().ok()? * unit
        }
        _ => return None,
    };
    let duration = Duration::try_from_secs_f64(seconds).ok();
    duration.filter(|duration| !duration.is_zero())
}

pub(super) fn deserialize_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let expected = "a URL that begins with http:// or https://";
    deserialize_converted(deserializer, expected, |value| {
        let text = value.as_str()?;
        let url = reqwest::Url::parse(text).ok()?;
        let is_http = matches!(url.scheme(), "http" | "https") && text.contains("://");
        is_http.then(|| text.to_owned())
    })
}
