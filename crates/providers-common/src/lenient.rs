//! Deserializers for fields of answers. A value of the wrong type counts as absent, so that one
//! faulty field does not fail the answer. Usage: `#[serde(default, deserialize_with = "…")]`.
//!
//! Each function reads its field in one pass, because an answer has a chunk for every token.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{
        Error, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::{
            BorrowedStrDeserializer, Error as ValueError, MapAccessDeserializer,
            SeqAccessDeserializer,
        },
    },
};

/// Deserializes a JSON boolean, number or string as a `T`. Returns `Ok(None)` for a value that is
/// not a `T`, so that the field counts as absent.
///
/// Fails only on invalid JSON.
pub fn deserialize_lenient_scalar<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(LenientVisitor(JsonShape::Scalar, PhantomData))
}

/// Deserializes a JSON object as a `T`. Returns `Ok(None)` for a value that is not an object.
///
/// Fails on invalid JSON. Also fails if deserializing a field of `T` fails: only fields with a
/// deserializer of this module accept a value of the wrong type.
pub fn deserialize_lenient_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(LenientVisitor(JsonShape::Object, PhantomData))
}

/// Deserializes the objects of a JSON list as `T`s. Skips elements that are not objects. Returns an
/// empty list for a value that is not a list.
///
/// Fails on invalid JSON. Also fails if deserializing a field of `T` fails: only fields with a
/// deserializer of this module accept a value of the wrong type.
pub fn deserialize_lenient_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = deserializer.deserialize_any(LenientVisitor(JsonShape::List, PhantomData))?;
    let elements: Vec<LenientObject<T>> = list.unwrap_or_default();
    Ok(elements
        .into_iter()
        .filter_map(|element| element.0)
        .collect())
}

/// A list element that must be an object. An element of another type becomes `None`.
struct LenientObject<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for LenientObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_lenient_object(deserializer).map(Self)
    }
}

/// JSON types that a deserializer of this module accepts. A value of another type counts as absent.
enum JsonShape {
    Scalar,
    Object,
    List,
}

/// Visitor that reads a value of the given JSON types as a `T`, and any other value as `None`.
struct LenientVisitor<T>(JsonShape, PhantomData<T>);

/// Converts a scalar to a `T`. Returns `None` for a scalar of the wrong type.
fn convert_scalar<'de, T: Deserialize<'de>>(
    value: impl IntoDeserializer<'de, ValueError>,
) -> Option<T> {
    T::deserialize(value.into_deserializer()).ok()
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for LenientVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(convert_scalar(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(convert_scalar(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(convert_scalar(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(convert_scalar(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(convert_scalar(value))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(convert_scalar(BorrowedStrDeserializer::new(value)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        match self.0 {
            JsonShape::Object => T::deserialize(MapAccessDeserializer::new(map)).map(Some),
            JsonShape::Scalar | JsonShape::List => IgnoredAny.visit_map(map).map(|_| None),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        match self.0 {
            JsonShape::List => T::deserialize(SeqAccessDeserializer::new(list)).map(Some),
            JsonShape::Scalar | JsonShape::Object => IgnoredAny.visit_seq(list).map(|_| None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Report {
        #[serde(deserialize_with = "deserialize_lenient_scalar")]
        count: Option<u64>,
        #[serde(deserialize_with = "deserialize_lenient_scalar")]
        name: Option<String>,
        #[serde(deserialize_with = "deserialize_lenient_list")]
        list: Vec<Report>,
        #[serde(deserialize_with = "deserialize_lenient_object")]
        inner: Option<Box<Report>>,
    }

    #[test]
    fn a_value_of_the_wrong_type_does_not_affect_other_fields() {
        let report = |count, name: Option<&str>, list: &[Option<u64>]| Report {
            count,
            name: name.map(str::to_owned),
            list: list
                .iter()
                .map(|&count| Report {
                    count,
                    ..Report::default()
                })
                .collect(),
            inner: None,
        };
        for (text, expected) in [
            (
                r#"{"count": 3, "name": "a", "list": [{"count": 1}, {}]}"#,
                report(Some(3), Some("a"), &[Some(1), None]),
            ),
            (
                r#"{"count": "3", "list": ["a", 2, null, {"count": 1}, [{}], true], "name": 1.5}"#,
                report(None, None, &[Some(1)]),
            ),
            (
                r#"{"count": -1, "list": {"count": 1}, "name": ["a"]}"#,
                report(None, None, &[]),
            ),
            (
                r#"{"inner": "x", "count": {"a": [1]}, "list": null, "name": false}"#,
                report(None, None, &[]),
            ),
            (
                r#"{"inner": [{}], "count": 2.0, "list": "a", "name": {"name": "a"}}"#,
                report(None, None, &[]),
            ),
            ("{}", report(None, None, &[])),
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
            r#"{"list": [{},, 2]}"#,
            r#"{"list": ["\ud800"]}"#,
            r#"{"name": "\ud800"}"#,
            r#"{"inner": {"name": "\ud800"}}"#,
        ] {
            assert!(serde_json::from_str::<Report>(text).is_err(), "{text}");
        }
    }
}
