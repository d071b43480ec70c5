//! Lenient fields of answers: a value of the wrong type counts as absent, so that one unexpected
//! field does not fail the answer. For `#[serde(default, deserialize_with = "…")]`.
//!
//! Works only with the formats of `serde_json`, because a field is read as a [`RawValue`] first.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::{error::Category, value::RawValue};

/// Deserializes a value, or returns the default if the value has the wrong type.
///
/// Fails only on invalid JSON.
pub fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    read(&raw)
        .map(Option::unwrap_or_default)
        .map_err(D::Error::custom)
}

/// Deserializes the list elements that have the right type. Returns an empty list for a value that
/// is not a list.
///
/// Fails only on invalid JSON.
pub fn lenient_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let elements: Option<Vec<Box<RawValue>>> = read(&raw).map_err(D::Error::custom)?;
    let elements = elements.into_iter().flatten();
    elements
        .filter_map(|element| read(&element).transpose())
        .collect::<Result<_, _>>()
        .map_err(D::Error::custom)
}

/// Deserializes a value. Returns `None` if the value or a nested value has the wrong type.
fn read<T: DeserializeOwned>(raw: &RawValue) -> serde_json::Result<Option<T>> {
    match serde_json::from_str(raw.get()) {
        Err(error) if error.classify() == Category::Data => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Report {
        #[serde(deserialize_with = "lenient")]
        count: Option<u64>,
        #[serde(deserialize_with = "lenient_list")]
        names: Vec<String>,
        #[serde(deserialize_with = "lenient")]
        inner: Option<Box<Report>>,
    }

    #[test]
    fn a_value_of_the_wrong_type_does_not_affect_other_fields() {
        let report = |count, names: &[&str]| Report {
            count,
            names: names.iter().map(|&it| it.to_owned()).collect(),
            inner: None,
        };
        for (text, expected) in [
            (
                r#"{"count": 3, "names": ["a", "b"]}"#,
                report(Some(3), &["a", "b"]),
            ),
            (
                r#"{"count": "3", "names": ["a", 2, null, {}, "b"]}"#,
                report(None, &["a", "b"]),
            ),
            (r#"{"count": -1, "names": null}"#, report(None, &[])),
            (
                r#"{"inner": "x", "count": {"a": [1]}, "names": "a"}"#,
                report(None, &[]),
            ),
            ("{}", report(None, &[])),
        ] {
            assert_eq!(
                serde_json::from_str::<Report>(text).unwrap(),
                expected,
                "{text}"
            );
            let outer = format!(r#"{{"inner": {text}, "count": 7}}"#);
            let outer: serde_json::Value = serde_json::from_str(&outer).unwrap();
            let read: Report = serde_json::from_value(outer).unwrap();
            assert_eq!((read.count, *read.inner.unwrap()), (Some(7), expected));
        }
    }

    #[test]
    fn invalid_json_is_an_error() {
        for text in [
            r#"{"count": 3"#,
            r#"{"names": ["a",, 2]}"#,
            r#"{"names": ["\ud800"]}"#,
        ] {
            assert!(serde_json::from_str::<Report>(text).is_err(), "{text}");
        }
    }
}
