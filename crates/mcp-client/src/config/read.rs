//! Typed parsing of JSON values. Every error contains the path.

use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::config::{PROTOCOL_VERSIONS, error::ConfigError};

pub(super) fn object<'a>(
    value: &'a Value,
    path: &str,
) -> Result<&'a Map<String, Value>, ConfigError> {
    value
        .as_object()
        .ok_or_else(|| wrong_type(path, "a map of keys", value))
}

pub(super) fn string(value: &Value, path: &str) -> Result<String, ConfigError> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| wrong_type(path, "text", value))
}

/// Checks the name of a server.
pub(super) fn not_empty(name: String, path: &str) -> Result<String, ConfigError> {
    if name.trim().is_empty() {
        return Err(ConfigError::MissingName {
            path: path.to_owned(),
        });
    }
    Ok(name)
}

/// Checks that a text is not blank.
pub(super) fn not_blank(text: String, path: &str) -> Result<String, ConfigError> {
    if text.trim().is_empty() {
        let found = Value::Null;
        return Err(wrong_type(path, "text", &found));
    }
    Ok(text)
}

pub(super) fn boolean(value: &Value, path: &str) -> Result<bool, ConfigError> {
    value
        .as_bool()
        .ok_or_else(|| wrong_type(path, "true or false", value))
}

/// Parses text. Numbers and booleans are accepted too, because YAML parses `PORT: 8080` as a
/// number.
pub(super) fn scalar(value: &Value, path: &str) -> Result<String, ConfigError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        other => Err(wrong_type(path, "text", other)),
    }
}

pub(super) fn scalars(value: &Value, path: &str) -> Result<Vec<String>, ConfigError> {
    let items = value
        .as_array()
        .ok_or_else(|| wrong_type(path, "a list of texts", value))?;
    items
        .iter()
        .enumerate()
        .map(|(index, item)| scalar(item, &format!("{path}[{index}]")))
        .collect()
}

pub(super) fn secrets(
    value: &Value,
    path: &str,
) -> Result<Vec<(String, SecretString)>, ConfigError> {
    object(value, path)?
        .iter()
        .map(|(name, value)| {
            let text = scalar(value, &join(path, name))?;
            Ok((name.clone(), SecretString::from(text)))
        })
        .collect()
}

pub(super) fn duration(value: &Value, path: &str) -> Result<Duration, ConfigError> {
    let invalid = || ConfigError::InvalidDuration {
        path: path.to_owned(),
    };
    let (number, unit) = match value {
        Value::Number(number) => (number.as_f64(), 1.0),
        Value::String(text) => {
            let text = text.trim();
            let digits = text
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(text.len());
            let (number, unit) = text.split_at(digits);
            let unit = match unit.trim() {
                "" | "s" => 1.0,
                "ms" => 0.001,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return Err(invalid()),
            };
            (number.parse().ok(), unit)
        }
        _ => return Err(invalid()),
    };
    number
        .map(|number| number * unit)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| !duration.is_zero())
        .ok_or_else(invalid)
}

/// Parses a whole number of at least 1.
pub(super) fn positive_integer(value: &Value, path: &str) -> Result<usize, ConfigError> {
    value
        .as_u64()
        .and_then(|number| usize::try_from(number).ok())
        .filter(|number| *number > 0)
        .ok_or_else(|| wrong_type(path, "a whole number, at least 1", value))
}

pub(super) fn url(value: &Value, path: &str) -> Result<String, ConfigError> {
    let text = string(value, path)?;
    let invalid = |reason: String| ConfigError::InvalidUrl {
        path: path.to_owned(),
        reason,
    };
    if !text.contains("://") {
        return Err(invalid(
            "it does not start with `http://` or `https://`".to_owned(),
        ));
    }
    let parsed = reqwest::Url::parse(&text).map_err(|error| invalid(error.to_string()))?;
    match parsed.scheme() {
        "http" | "https" => Ok(text),
        other => Err(invalid(format!("its scheme is `{other}`"))),
    }
}

pub(super) fn protocol_version(value: &Value, path: &str) -> Result<String, ConfigError> {
    let text = string(value, path)?;
    if PROTOCOL_VERSIONS.contains(&text.as_str()) {
        Ok(text)
    } else {
        Err(ConfigError::UnknownProtocolVersion {
            path: path.to_owned(),
            value: text,
        })
    }
}

pub(super) fn wrong_type(path: &str, expected: &'static str, found: &Value) -> ConfigError {
    let found = match found {
        Value::Null => "empty",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map of keys",
    };
    ConfigError::WrongType {
        path: if path.is_empty() { "document" } else { path }.to_owned(),
        expected,
        found,
    }
}

/// Returns the path `parent.key`.
pub(super) fn join(parent: &str, key: &str) -> String {
    if parent.is_empty() {
        key.to_owned()
    } else {
        format!("{parent}.{key}")
    }
}
