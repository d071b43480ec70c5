//! A request body and the caller's further fields, written as one.

use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeMap},
};
use serde_json::Value;
use switchboard_domain::JsonObject;

/// The one field that `extra` cannot set: it decides how the answer is read.
pub(crate) const STREAM: &str = "stream";

/// Writes a body. What `extra` sets wins over all but `stream`.
pub(crate) struct Fields<'a, M> {
    map: M,
    extra: &'a JsonObject,
    /// What of `extra` has been seen to already.
    merged: Vec<&'static str>,
}

impl<'a, M: SerializeMap> Fields<'a, M> {
    /// Begins a body.
    pub(crate) fn new<S>(serializer: S, extra: &'a JsonObject) -> Result<Self, S::Error>
    where
        S: Serializer<SerializeMap = M>,
    {
        let map = serializer.serialize_map(None)?;
        Ok(Self {
            map,
            extra,
            merged: Vec::new(),
        })
    }

    /// Writes a field that has a value and that `extra` does not set.
    pub(crate) fn put<T: Serialize>(
        &mut self,
        name: &'static str,
        value: Option<T>,
    ) -> Result<(), M::Error> {
        match value {
            Some(value) if !self.extra.contains_key(name) => self.map.serialize_entry(name, &value),
            _ => Ok(()),
        }
    }

    /// Writes a field with what `extra` has for it: further elements of a list, further members of an
    /// object. Anything else in `extra` takes the field's place.
    pub(crate) fn merge<T: Serialize>(
        &mut self,
        name: &'static str,
        value: Option<T>,
    ) -> Result<(), M::Error> {
        let (Some(ours), Some(theirs)) = (&value, self.extra.get(name)) else {
            return self.put(name, value);
        };
        let mut value = serde_json::to_value(ours).map_err(M::Error::custom)?;
        match (&mut value, theirs) {
            (Value::Array(ours), Value::Array(theirs)) => {
                for one in theirs {
                    if !ours.contains(one) {
                        ours.push(one.clone());
                    }
                }
            }
            (Value::Object(ours), Value::Object(theirs)) => ours.extend(theirs.clone()),
            (ours, theirs) => ours.clone_from(theirs),
        }
        self.merged.push(name);
        self.map.serialize_entry(name, &value)
    }

    /// Writes a list that holds what `extra` has for it already. Anything else than a list in `extra`
    /// takes its place.
    pub(crate) fn put_joined<T: Serialize>(
        &mut self,
        name: &'static str,
        value: Option<T>,
    ) -> Result<(), M::Error> {
        if self.extra.get(name).is_some_and(|own| !own.is_array()) {
            return Ok(());
        }
        self.merged.push(name);
        match value {
            Some(value) => self.map.serialize_entry(name, &value),
            None => Ok(()),
        }
    }

    /// Writes `stream` and the caller's fields.
    pub(crate) fn end(mut self, stream: bool) -> Result<M::Ok, M::Error> {
        self.map.serialize_entry(STREAM, &stream)?;
        for (name, value) in self.extra {
            if name != STREAM && !self.merged.contains(&name.as_str()) {
                self.map.serialize_entry(name, value)?;
            }
        }
        self.map.end()
    }
}

/// A list that says something.
pub(crate) fn some_if_any<T>(list: &[T]) -> Option<&[T]> {
    (!list.is_empty()).then_some(list)
}
