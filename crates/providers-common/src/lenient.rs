//! What comes in forgives: a value of the wrong type counts as absent, so that one odd field never
//! costs the answer. For `#[serde(default, deserialize_with = "…")]`.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// The value if it is of the right type, else the default.
///
/// Fails only on what is no JSON.
pub fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// The elements that are of the right type; none for `null` and anything else that is no list.
///
/// Fails only on what is no JSON.
pub fn lenient_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
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
    }

    #[test]
    fn what_is_of_the_wrong_type_is_absent() {
        let read = |text: &str| serde_json::from_str::<Report>(text).ok();
        let report = |count, names: &[&str]| {
            let names = names.iter().map(|&it| it.to_owned()).collect();
            Some(Report { count, names })
        };
        for (text, expected) in [
            (
                r#"{"count": 3, "names": ["a", "b"]}"#,
                report(Some(3), &["a", "b"]),
            ),
            (
                r#"{"count": "3", "names": ["a", 2, null]}"#,
                report(None, &["a"]),
            ),
            (r#"{"count": -1, "names": null}"#, report(None, &[])),
            (r#"{"count": {}, "names": "a"}"#, report(None, &[])),
            ("{}", report(None, &[])),
            (r#"{"count": 3"#, None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
