//! What comes in forgives: a value of the wrong type counts as absent, so that one odd field never
//! costs the answer.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// The value if it is of the right type, else the default.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// The elements that are of the right type; none for `null` and anything else that is no list.
pub(crate) fn lenient_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let Value::Array(list) = Value::deserialize(deserializer)? else {
        return Ok(Vec::new());
    };
    let elements = list.into_iter();
    Ok(elements
        .filter_map(|element| serde_json::from_value(element).ok())
        .collect())
}
