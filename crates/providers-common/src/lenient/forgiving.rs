//! Reads a value in one pass and, where it is of the wrong type, to its end all the same, so that
//! whoever reads the fields around it finds the next one.
//!
//! serde's formats stop where a type does not fit, in the middle of the value. The way around is to
//! read everything into a `Value` first and then try, which costs several times as much as the
//! reading itself where it is done at every level of every chunk of a stream. Here each list and
//! object is read to its end by whoever was looking into it, and only what is no JSON ends the
//! reading.
//!
//! Each forgiving field within a forgiving field is a type of its own to the compiler, so a type
//! that holds itself cannot be read so.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// The value; `None` if it is of the wrong type, somewhere within. It has been read to its end in
/// any case.
///
/// Fails only on what is no JSON.
pub(super) fn forgiving<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    match T::deserialize(Forgiving(from)) {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Odd) => Ok(None),
        Err(Fault::Broken(error)) => Err(error),
    }
}

/// Why there is no value.
#[derive(Debug)]
pub(super) enum Fault<E> {
    /// It is of the wrong type, and has been read to its end.
    Odd,
    /// It cannot be read.
    Broken(E),
}

impl<E: fmt::Display> fmt::Display for Fault<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Odd => f.write_str("of the wrong type"),
            Self::Broken(error) => error.fmt(f),
        }
    }
}

impl<E: de::Error> std::error::Error for Fault<E> {}

/// Nobody reads what is wrong with a value that counts as absent, so nothing is put into words.
impl<E: de::Error> de::Error for Fault<E> {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Odd
    }

    fn invalid_type(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Self {
        Self::Odd
    }

    fn invalid_value(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Self {
        Self::Odd
    }

    fn invalid_length(_: usize, _: &dyn de::Expected) -> Self {
        Self::Odd
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        Self::Odd
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Self::Odd
    }

    fn missing_field(_: &'static str) -> Self {
        Self::Odd
    }

    fn duplicate_field(_: &'static str) -> Self {
        Self::Odd
    }
}

/// Of the wrong type, and read.
struct Odd;

/// What a format takes for success, since it went on to the end of the value.
type Read<T> = Result<T, Odd>;

fn read<T, E>(result: Result<T, Fault<E>>) -> Result<Read<T>, E> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Fault::Odd) => Ok(Err(Odd)),
        Err(Fault::Broken(error)) => Err(error),
    }
}

fn given<T, E>(read: Result<Read<T>, E>) -> Result<T, Fault<E>> {
    match read {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(Odd)) => Err(Fault::Odd),
        Err(error) => Err(Fault::Broken(error)),
    }
}

struct Forgiving<D>(D);

/// A format that is told a type gives up before it reads another one. So it is never told.
macro_rules! whatever_there_is {
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

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Forgiving<D> {
    type Error = Fault<D::Error>;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        given(self.0.deserialize_any(ToTheEnd(visitor)))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        given(self.0.deserialize_option(ToTheEnd(visitor)))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        given(self.0.deserialize_ignored_any(ToTheEnd(visitor)))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        given(self.0.deserialize_newtype_struct(name, ToTheEnd(visitor)))
    }

    /// A variant with a value of its own cannot be given up half-way, so this is read first, then
    /// tried.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let value = Value::deserialize(self.0).map_err(Fault::Broken)?;
        value
            .deserialize_enum(name, variants, visitor)
            .map_err(|_| Fault::Odd)
    }

    whatever_there_is! {
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

/// A visitor that leaves nothing unread.
struct ToTheEnd<V>(V);

macro_rules! small {
    ($($method:ident($type:ty))*) => {
        $(fn $method<E: de::Error>(self, value: $type) -> Result<Self::Value, E> {
            read(self.0.$method(value))
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for ToTheEnd<V> {
    type Value = Read<V::Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    small! {
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
        read(self.0.visit_none())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        read(self.0.visit_unit())
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        read(self.0.visit_some(Forgiving(value)))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        read(self.0.visit_newtype_struct(Forgiving(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        let mut elements = Elements { list, ended: false };
        let value = read(self.0.visit_seq(&mut elements))?;
        let mut rest = 0;
        while !elements.ended && elements.list.next_element::<IgnoredAny>()?.is_some() {
            rest += 1;
        }
        // One that nobody wants is as wrong as one that is missing.
        Ok(if rest == 0 { value } else { Err(Odd) })
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
        let mut fields = Fields {
            object,
            in_field: false,
            ended: false,
        };
        let value = read(self.0.visit_map(&mut fields))?;
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
            Err(Odd)
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
        let Some(element) = element.map_err(Fault::Broken)? else {
            self.ended = true;
            return Ok(None);
        };
        given(Ok(element)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        self.list.size_hint()
    }
}

struct Fields<A> {
    object: A,
    /// A name was read, and its value was not.
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
        let Some(key) = key.map_err(Fault::Broken)? else {
            self.ended = true;
            return Ok(None);
        };
        self.in_field = true;
        given(Ok(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, Self::Error> {
        self.in_field = false;
        given(self.object.next_value_seed(Seed(seed)))
    }

    fn size_hint(&self) -> Option<usize> {
        self.object.size_hint()
    }
}

struct Seed<S>(S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Seed<S> {
    type Value = Read<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        read(self.0.deserialize(Forgiving(from)))
    }
}
