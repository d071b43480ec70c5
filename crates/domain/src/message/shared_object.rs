//! JSON objects that several owners share without copies.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, LazyLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::JsonObject;

/// A shared JSON object. It dereferences to a [`JsonObject`], and clones copy only a pointer.
///
/// For example, the input of a tool call is stored once. The conversation, the pending call, its
/// record, the run's events and the request to the tool server share it.
///
/// ```
/// use serde_json::json;
/// use switchboard_domain::SharedObject;
///
/// let object = SharedObject::from_iter([("id".to_owned(), json!(7))]);
/// let mut changed = object.clone().into_object();
/// changed.insert("id".to_owned(), json!(8));
/// assert_eq!((&object["id"], &changed["id"]), (&json!(7), &json!(8)));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SharedObject {
    /// The JSON value, which is always an object.
    value: Arc<Value>,
}

/// The object that `Deref` returns if the shared JSON value is not an object. This does not happen,
/// because every constructor of [`SharedObject`] stores an object.
static EMPTY_OBJECT: LazyLock<JsonObject> = LazyLock::new(JsonObject::new);

impl SharedObject {
    /// Returns the object as a shared [`Value::Object`], without copying it.
    pub fn to_value(&self) -> Arc<Value> {
        Arc::clone(&self.value)
    }

    /// Returns the object as a JSON value.
    pub fn as_value(&self) -> &Value {
        &self.value
    }

    /// Returns the owned object. Copies the object only if it has other owners.
    pub fn into_object(self) -> JsonObject {
        match Arc::unwrap_or_clone(self.value) {
            Value::Object(object) => object,
            _ => JsonObject::new(),
        }
    }
}

impl From<JsonObject> for SharedObject {
    fn from(object: JsonObject) -> Self {
        Self {
            value: Arc::new(Value::Object(object)),
        }
    }
}

impl FromIterator<(String, Value)> for SharedObject {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(fields: I) -> Self {
        JsonObject::from_iter(fields).into()
    }
}

impl<'o> IntoIterator for &'o SharedObject {
    type Item = (&'o String, &'o Value);
    type IntoIter = serde_json::map::Iter<'o>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Default for SharedObject {
    fn default() -> Self {
        JsonObject::new().into()
    }
}

impl Deref for SharedObject {
    type Target = JsonObject;

    fn deref(&self) -> &JsonObject {
        match &*self.value {
            Value::Object(object) => object,
            _ => &EMPTY_OBJECT,
        }
    }
}

impl PartialEq<JsonObject> for SharedObject {
    fn eq(&self, other: &JsonObject) -> bool {
        **self == *other
    }
}

impl fmt::Debug for SharedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Serialize for SharedObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        JsonObject::deserialize(deserializer).map(Into::into)
    }
}
