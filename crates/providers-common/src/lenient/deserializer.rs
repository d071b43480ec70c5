//! Deserialization in one pass that consumes a value completely, also one of the wrong type.
//!
//! serde's formats stop in the middle of a value of the wrong type, so that the next field cannot
//! be read. Reading a `Value` first costs several times as much, because lenient fields are nested
//! in each chunk of a stream. This deserializer reads each list and object to its end; only invalid
//! JSON is an error.
//!
//! Nested lenient fields create nested generic types, so that a recursive type is not supported.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// Reads a value to its end. Returns `None` if it or a nested value has the wrong type.
///
/// Fails only on invalid JSON.
pub(super) fn lenient_value<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    match T::deserialize(Lenient(from)) {
        Ok(value) => Ok(Some(value)),
        Err(Fault::WrongType) => Ok(None),
        Err(Fault::Invalid(error)) => Err(error),
    }
}

/// The reason for an absent value.
#[derive(Debug)]
pub(super) enum Fault<E> {
    /// It has the wrong type and was read to its end.
    WrongType,
    /// It is not valid JSON.
    Invalid(E),
}

impl<E: fmt::Display> fmt::Display for Fault<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongType => f.write_str("wrong type"),
            Self::Invalid(error) => error.fmt(f),
        }
    }
}

impl<E: de::Error> std::error::Error for Fault<E> {}

/// Without messages, because the error is ignored.
impl<E: de::Error> de::Error for Fault<E> {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::WrongType
    }

    fn invalid_type(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Self {
        Self::WrongType
    }

    fn invalid_value(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Self {
        Self::WrongType
    }

    fn invalid_length(_: usize, _: &dyn de::Expected) -> Self {
        Self::WrongType
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        Self::WrongType
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Self::WrongType
    }

    fn missing_field(_: &'static str) -> Self {
        Self::WrongType
    }

    fn duplicate_field(_: &'static str) -> Self {
        Self::WrongType
    }
}

/// The value has the wrong type and was read to its end.
struct WrongType;

/// The result for the inner format, which succeeds because the value was read to its end.
type Outcome<T> = Result<T, WrongType>;

fn to_outcome<T, E>(result: Result<T, Fault<E>>) -> Result<Outcome<T>, E> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Fault::WrongType) => Ok(Err(WrongType)),
        Err(Fault::Invalid(error)) => Err(error),
    }
}

fn from_outcome<T, E>(outcome: Result<Outcome<T>, E>) -> Result<T, Fault<E>> {
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(WrongType)) => Err(Fault::WrongType),
        Err(error) => Err(Fault::Invalid(error)),
    }
}

struct Lenient<D>(D);

/// Ignores the type hint, because a format does not read values of another type.
macro_rules! deserialize_any_for {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(
            self,
            $($argument: $type,)*
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            $(let _ = $argument;)*
            self.deserialize_any(visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Lenient<D> {
    type Error = Fault<D::Error>;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        from_outcome(self.0.deserialize_any(ReadToEnd(visitor)))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        from_outcome(self.0.deserialize_option(ReadToEnd(visitor)))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        from_outcome(self.0.deserialize_ignored_any(ReadToEnd(visitor)))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        from_outcome(self.0.deserialize_newtype_struct(name, ReadToEnd(visitor)))
    }

    /// Reads a `Value` first, because a variant with a value cannot be read partially.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let value = Value::deserialize(self.0).map_err(Fault::Invalid)?;
        value
            .deserialize_enum(name, variants, visitor)
            .map_err(|_| Fault::WrongType)
    }

    deserialize_any_for! {
        deserialize_bool()
        deserialize_i8()
        deserialize_i16()
        deserialize_i32()
        deserialize_i64()
        deserialize_i128()
        deserialize_u8()
        deserialize_u16()
        deserialize_u32()
        deserialize_u64()
        deserialize_u128()
        deserialize_f32()
        deserialize_f64()
        deserialize_char()
        deserialize_str()
        deserialize_string()
        deserialize_bytes()
        deserialize_byte_buf()
        deserialize_unit()
        deserialize_unit_struct(name: &'static str)
        deserialize_seq()
        deserialize_tuple(length: usize)
        deserialize_tuple_struct(name: &'static str, length: usize)
        deserialize_map()
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_identifier()
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// A visitor that reads a value to its end.
struct ReadToEnd<V>(V);

macro_rules! visit_scalars {
    ($($method:ident($type:ty))*) => {
        $(fn $method<E: de::Error>(self, value: $type) -> Result<Self::Value, E> {
            to_outcome(self.0.$method(value))
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for ReadToEnd<V> {
    type Value = Outcome<V::Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    visit_scalars! {
        visit_bool(bool)
        visit_i8(i8)
        visit_i16(i16)
        visit_i32(i32)
        visit_i64(i64)
        visit_i128(i128)
        visit_u8(u8)
        visit_u16(u16)
        visit_u32(u32)
        visit_u64(u64)
        visit_u128(u128)
        visit_f32(f32)
        visit_f64(f64)
        visit_char(char)
        visit_str(&str)
        visit_borrowed_str(&'de str)
        visit_string(String)
        visit_bytes(&[u8])
        visit_borrowed_bytes(&'de [u8])
        visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        to_outcome(self.0.visit_none())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        to_outcome(self.0.visit_unit())
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        to_outcome(self.0.visit_some(Lenient(value)))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        to_outcome(self.0.visit_newtype_struct(Lenient(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        let mut elements = Elements { list, ended: false };
        let value = to_outcome(self.0.visit_seq(&mut elements))?;
        let mut rest = 0;
        while !elements.ended && elements.list.next_element::<IgnoredAny>()?.is_some() {
            rest += 1;
        }
        // An additional element is as wrong as a missing one.
        Ok(if rest == 0 { value } else { Err(WrongType) })
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
        let mut fields = Fields {
            object,
            in_field: false,
            ended: false,
        };
        let value = to_outcome(self.0.visit_map(&mut fields))?;
        let Fields {
            mut object,
            in_field,
            ended,
        } = fields;
        if in_field {
            object.next_value::<IgnoredAny>()?;
        }
        let mut rest = 0;
        while !ended && object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            rest += 1;
        }
        Ok(if rest == 0 && !in_field {
            value
        } else {
            Err(WrongType)
        })
    }
}

struct Elements<A> {
    list: A,
    ended: bool,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Elements<A> {
    type Error = Fault<A::Error>;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Self::Error> {
        let element = self.list.next_element_seed(Seed(seed));
        let Some(element) = element.map_err(Fault::Invalid)? else {
            self.ended = true;
            return Ok(None);
        };
        from_outcome(Ok(element)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        self.list.size_hint()
    }
}

struct Fields<A> {
    object: A,
    /// A name was read without its value.
    in_field: bool,
    ended: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<A> {
    type Error = Fault<A::Error>;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Self::Error> {
        let key = self.object.next_key_seed(Seed(seed));
        let Some(key) = key.map_err(Fault::Invalid)? else {
            self.ended = true;
            return Ok(None);
        };
        self.in_field = true;
        from_outcome(Ok(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, Self::Error> {
        self.in_field = false;
        from_outcome(self.object.next_value_seed(Seed(seed)))
    }

    fn size_hint(&self) -> Option<usize> {
        self.object.size_hint()
    }
}

struct Seed<S>(S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Seed<S> {
    type Value = Outcome<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        to_outcome(self.0.deserialize(Lenient(from)))
    }
}
