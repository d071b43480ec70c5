//! Deserializes values of configuration files.
//!
//! Error messages name the key, not the value, which may be a secret. `null` counts as missing.

use std::time::Duration;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, Unexpected},
};
use serde_json::Value;

use super::error::Problem;

/// Deserializes `value`, a section of a configuration file. `path` is the path of the section for
/// error messages. An empty path means the whole file.
pub(super) fn deserialize_section<T: DeserializeOwned>(
    path: &str,
    value: &Value,
) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let inner = error.path().to_string();
        let path = match inner.as_str() {
            "." if path.is_empty() => "the file".to_owned(),
            "." => path.to_owned(),
            _ if path.is_empty() || inner.starts_with('[') => format!("{path}{inner}"),
            _ => format!("{path}.{inner}"),
        };
        Problem::from_serde(path, &error.inner().to_string())
    })
}

/// Returns an error unless a section is a map, because serde also accepts a list for a struct.
pub(super) fn check_is_map(path: &str, value: &Value) -> Result<(), Problem> {
    if value.is_object() {
        Ok(())
    } else {
        Err(Problem::wrong_value(path, "a map of keys"))
    }
}

/// Deserializes an optional value with `convert`. Returns `None` for `null`. If `convert` returns
/// `None`, the value is invalid, and the error names the valid values with the text `expected`.
pub(super) fn deserialize_converted<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &str,
    convert: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    let converted = value.map(|value| {
        let invalid = || D::Error::invalid_value(Unexpected::Other("another value"), &expected);
        convert(&value).ok_or_else(invalid)
    });
    converted.transpose()
}

/// Deserializes a section of a configuration file. `null` becomes the default value.
pub(super) fn deserialize_or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Deserializes a text value. Returns an error for an empty or blank text.
pub(super) fn deserialize_text<'de, D: Deserializer<'de>, T: for<'a> From<&'a str>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserialize_converted(deserializer, "non-empty text", |value| {
        let text = value.as_str().filter(|text| !text.trim().is_empty());
        text.map(T::from)
    })
}

/// Deserializes a URL. Returns `None` for `null`, and an error for a value that does not begin with
/// `http://` or `https://`.
pub(super) fn deserialize_http_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let expected = "an address that begins with http:// or https://";
    deserialize_converted(deserializer, expected, |value| {
        let url = value.as_str()?.trim();
        let is_http = url.starts_with("http://") || url.starts_with("https://");
        is_http.then(|| url.to_owned())
    })
}

/// Deserializes a number. Returns `None` for `null`, and an error for a negative number or a value
/// of another type.
pub(super) fn deserialize_non_negative_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    deserialize_converted(deserializer, "a number of at least 0", |value| {
        value.as_f64().filter(|number| *number >= 0.0)
    })
}

/// Maximum duration of a setting: 100 years. A larger duration could overflow in a sum with the
/// current time.
const MAX_DURATION: Duration = Duration::from_hours(100 * 365 * 24);

/// Deserializes a number of seconds. Returns `None` for `null`, and an error for a number that is
/// not greater than 0 or a value of another type.
pub(super) fn deserialize_seconds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    deserialize_converted(deserializer, "a positive number of seconds", |value| {
        let duration = Duration::try_from_secs_f64(value.as_f64()?).ok();
        duration.filter(|duration| !duration.is_zero() && *duration <= MAX_DURATION)
    })
}
