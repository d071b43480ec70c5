//! Lenient fields of answers: a value of the wrong type counts as absent, so that one unexpected
//! field does not fail the answer. For `#[serde(default, deserialize_with = "…")]`.

mod deserializer;

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, SeqAccess, Visitor},
};

use self::deserializer::lenient_value;

/// Reads a value. Returns the default if it has the wrong type.
///
/// Fails only on invalid JSON.
pub fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    lenient_value(deserializer).map(Option::unwrap_or_default)
}

/// Reads the elements of a list that have the right type. Returns none for a value that is not a
/// list.
///
/// Fails only on invalid JSON.
pub fn lenient_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let list = lenient_value(deserializer)?;
    Ok(list.map_or_else(Vec::new, |List(elements)| elements))
}

/// A list without the elements of the wrong type.
struct List<T>(Vec<T>);

struct Element<T>(Option<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T>(PhantomData<T>);

        impl<'de, T: DeserializeOwned> Visitor<'de> for Elements<T> {
            type Value = List<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
                let mut elements = Vec::new();
                while let Some(Element(element)) = list.next_element()? {
                    elements.extend(element);
                }
                Ok(List(elements))
            }
        }

        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Element<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        lenient_value(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Report {
        #[serde(deserialize_with = "lenient")]
        count: Option<u64>,
        #[serde(deserialize_with = "lenient_list")]
        names: Vec<String>,
    }

    /// Nested fields, each of which may have the wrong type.
    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Outer {
        #[serde(deserialize_with = "lenient")]
        a: Option<Box<Inner>>,
        #[serde(deserialize_with = "lenient_list")]
        b: Vec<Inner>,
        #[serde(deserialize_with = "lenient")]
        c: Strict,
        #[serde(deserialize_with = "lenient")]
        d: Option<(u8, String)>,
        e: Option<Value>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Inner {
        #[serde(deserialize_with = "lenient")]
        a: Option<Strict>,
        #[serde(deserialize_with = "lenient_list")]
        b: Vec<u8>,
        #[serde(deserialize_with = "lenient")]
        d: String,
    }

    /// Has the wrong type if one of its fields has.
    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Strict {
        a: Vec<i64>,
        b: Option<Kind>,
        c: Option<Box<Strict>>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        A,
        B(u8),
        C { a: bool },
    }

    fn or_default<T: DeserializeOwned + Default>(value: &Value) -> T {
        serde_json::from_value(value.clone()).unwrap_or_default()
    }

    fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
        value
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    }

    /// Reads each field separately from a `Value`.
    fn outer(value: &Value) -> Outer {
        let field = |name| value.get(name).unwrap_or(&Value::Null);
        let is_inner = |value: &&Value| value.is_object();
        Outer {
            a: value
                .get("a")
                .filter(is_inner)
                .map(|it| Box::new(inner(it))),
            b: list(value, "b").filter(is_inner).map(inner).collect(),
            c: or_default(field("c")),
            d: or_default(field("d")),
            e: or_default(field("e")),
        }
    }

    fn inner(value: &Value) -> Inner {
        let field = |name| value.get(name).unwrap_or(&Value::Null);
        let numbers = list(value, "b").filter_map(|it| serde_json::from_value(it.clone()).ok());
        Inner {
            a: or_default(field("a")),
            b: numbers.collect(),
            d: or_default(field("d")),
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-2_i64..300).prop_map(Value::from),
            Just(Value::from(1.5)),
            "[abc]".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[abcdef]", inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_value_of_the_wrong_type_does_not_affect_other_fields(
            fields in prop::collection::btree_map("[abcdef]", any_json(), 0..6),
        ) {
            let value = Value::Object(fields.into_iter().collect());
            // serde reads a list as the fields of an object in order.
            prop_assume!(!value.get("a").is_some_and(Value::is_array));
            prop_assume!(!list(&value, "b").any(Value::is_array));
            let text = value.to_string();
            let read: Outer = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read, &outer(&value), "{}", text);
            prop_assert!(serde_json::from_str::<Outer>(&text[..text.len() - 1]).is_err());
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_is_absent() {
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
