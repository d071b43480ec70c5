//! Pieces of the types that read what nearly every frame of a stream is: strictly, in one pass, and
//! without copying its texts.
//!
//! Such a type forgives nothing. Where it cannot be read, the frame is read again by the type that
//! forgives ([`lenient`](mod@crate::lenient)), so what counts is that the two come to the same
//! where both can.

use std::{borrow::Cow, fmt, marker::PhantomData, ops::Deref};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

/// Text, borrowed if it stands in the frame as it is. (serde borrows no `Option<Cow<str>>`.)
#[derive(Debug)]
pub struct Words<'a>(Cow<'a, str>);

impl Words<'_> {
    /// The text, unless it is empty.
    pub fn said(&self) -> Option<&str> {
        Some(self.0.as_ref()).filter(|text| !text.is_empty())
    }
}

impl Deref for Words<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Words<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Words<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Words<'de>, E> {
                Ok(Words(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Words<'de>, E> {
                Ok(Words(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

/// `null`, and nothing else: a field that would say something.
#[derive(Debug, Default)]
pub struct Nothing;

impl<'de> Deserialize<'de> for Nothing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self)
    }
}

/// What an object says. (serde reads a struct also from a list, which then holds the fields in
/// order.)
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }

        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

/// The one element of a list.
#[derive(Debug)]
pub struct One<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for One<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Only<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Only<T> {
            type Value = T;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of one element")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<T, A::Error> {
                let first = list.next_element()?;
                let first = first.ok_or_else(|| de::Error::invalid_length(0, &self))?;
                match list.next_element::<IgnoredAny>()? {
                    Some(_) => Err(de::Error::invalid_length(2, &self)),
                    None => Ok(first),
                }
            }
        }

        deserializer.deserialize_seq(Only(PhantomData)).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Said<'a> {
        #[serde(default, borrow)]
        text: Option<Words<'a>>,
        #[serde(default, rename = "error")]
        _error: Nothing,
    }

    fn text(json: &str) -> Result<Option<String>, serde_json::Error> {
        let read: Object<Said<'_>> = serde_json::from_str(json)?;
        Ok(read.0.text.map(|it| it.to_string()))
    }

    #[test]
    fn it_reads_what_is_plain_and_nothing_else() {
        for (json, expected) in [
            (r#"{"text": "a"}"#, Some(Some("a"))),
            (r#"{"text": "a\n\u00e9", "more": [{}]}"#, Some(Some("a\né"))),
            (r#"{"text": null, "error": null}"#, Some(None)),
            ("{}", Some(None)),
            (r#"{"text": 1}"#, None),
            (r#"{"text": "a", "text": "b"}"#, None),
            (r#"{"text": "a", "error": {}}"#, None),
            (r#"["a", null]"#, None),
            ("null", None),
        ] {
            let expected = expected.map(|text| text.map(str::to_owned));
            assert_eq!(text(json).ok(), expected, "{json}");
        }
    }

    #[test]
    fn a_text_that_stands_as_it_is_is_not_copied() {
        for (json, is_copied) in [(r#""a é""#, false), (r#""a\n""#, true)] {
            let words: Words<'_> = serde_json::from_str(json).unwrap();
            assert_eq!(matches!(words.0, Cow::Owned(_)), is_copied, "{json}");
        }
        let empty: Words<'_> = serde_json::from_str(r#""""#).unwrap();
        assert_eq!(empty.said(), None);
    }

    #[test]
    fn one_is_neither_none_nor_two() {
        let one = |json| serde_json::from_str::<One<u8>>(json).ok().map(|it| it.0);
        assert_eq!(one("[7]"), Some(7));
        for json in ["[]", "[7, 8]", "7", "[null]"] {
            assert_eq!(one(json), None, "{json}");
        }
    }
}
