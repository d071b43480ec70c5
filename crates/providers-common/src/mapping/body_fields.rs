//! Serialization of a request body with additional fields from the caller.

use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeMap},
};
use serde_json::Value;
use switchboard_domain::JsonObject;

/// Name of the only request field that the caller's
/// [`ChatRequest::extra`](switchboard_domain::ChatRequest::extra) cannot set, because the field
/// decides how the answer is read.
pub const STREAM: &str = "stream";

/// Serializer of a request body. The caller's fields in
/// [`ChatRequest::extra`](switchboard_domain::ChatRequest::extra) override the adapter's fields,
/// except `stream`.
#[derive(Debug)]
pub struct BodyFields<'a, M> {
    map: M,
    extra: &'a JsonObject,
    /// Names of the `extra` fields that are already serialized.
    merged: Vec<&'static str>,
}

impl<'a, M: SerializeMap> BodyFields<'a, M> {
    /// Starts the serialization of a request body.
    ///
    /// Fails if the serializer fails.
    pub fn new<S>(serializer: S, extra: &'a JsonObject) -> Result<Self, S::Error>
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

    /// Serializes a field. Skips it if `value` is `None` or `extra` overrides the field.
    pub fn put_field<T: Serialize>(
        &mut self,
        name: &'static str,
        value: Option<T>,
    ) -> Result<(), M::Error> {
        match value {
            Some(value) if !self.extra.contains_key(name) => self.map.serialize_entry(name, &value),
            _ => Ok(()),
        }
    }

    /// Serializes a field, merged with the value of the same field in `extra`. If both values are
    /// lists, the new elements of `extra` are appended. If both are objects, their members are
    /// merged likewise. In all other cases, the value in `extra` replaces the field.
    pub fn put_merged_field<T: Serialize>(
        &mut self,
        name: &'static str,
        value: Option<T>,
    ) -> Result<(), M::Error> {
        let (Some(own), Some(extra)) = (&value, self.extra.get(name)) else {
            return self.put_field(name, value);
        };
        let mut value = serde_json::to_value(own).map_err(M::Error::custom)?;
        merge_values(&mut value, extra);
        self.merged.push(name);
        self.map.serialize_entry(name, &value)
    }

    /// Serializes a list field such as `tools`. `value` already contains the elements that `extra`
    /// has for this field. If the value in `extra` is not a list, it replaces the field.
    pub fn put_merged_list<T: Serialize>(
        &mut self,
        name: &'static str,
        value: Option<T>,
    ) -> Result<(), M::Error> {
        if self.extra.get(name).is_some_and(|extra| !extra.is_array()) {
            return Ok(());
        }
        self.merged.push(name);
        match value {
            Some(value) => self.map.serialize_entry(name, &value),
            None => Ok(()),
        }
    }

    /// Serializes `stream` and the remaining fields of `extra`, and ends the body.
    pub fn end_body(mut self, stream: bool) -> Result<M::Ok, M::Error> {
        self.map.serialize_entry(STREAM, &stream)?;
        self.end_body_without_stream()
    }

    /// Serializes the remaining fields of `extra` and ends the body.
    pub fn end_body_without_stream(mut self) -> Result<M::Ok, M::Error> {
        for (name, value) in self.extra {
            if name != STREAM && !self.merged.contains(&name.as_str()) {
                self.map.serialize_entry(name, value)?;
            }
        }
        self.map.end()
    }
}

fn merge_values(own: &mut Value, extra: &Value) {
    match (own, extra) {
        (Value::Array(own), Value::Array(extra)) => {
            for element in extra {
                if !own.contains(element) {
                    own.push(element.clone());
                }
            }
        }
        (Value::Object(own), Value::Object(extra)) => {
            for (name, value) in extra {
                match own.get_mut(name) {
                    Some(known) => merge_values(known, value),
                    None => _ = own.insert(name.clone(), value.clone()),
                }
            }
        }
        (own, extra) => own.clone_from(extra),
    }
}

/// Returns `list`, or `None` if it is empty.
pub fn none_if_empty<T>(list: &[T]) -> Option<&[T]> {
    (!list.is_empty()).then_some(list)
}
