//! A model's request to run a tool.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ProviderState, SharedObject};

/// A JSON object with its keys in the order given.
pub type JsonObject = Map<String, Value>;

/// The model asks for a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// Unique within the conversation; a [`ToolResult`](crate::ToolResult) answers to it. Minted
    /// locally where the wire gives none.
    pub id: String,
    /// The tool's name as declared.
    pub name: String,
    /// Its input.
    pub input: ToolInput,
    /// See [`ProviderState`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<ProviderState>,
}

impl ToolUse {
    /// A tool use without provider state.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: ToolInput) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            input,
            provider_state: None,
        }
    }
}

/// What a model wrote as a tool's input: always an object, or else a value of its own that says
/// what was wrong. Malformed input is never turned into `{}` and never executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolInput {
    /// A JSON object.
    Object(SharedObject),
    /// Not a JSON object.
    Malformed {
        /// What the model wrote, as far as it was kept.
        raw: String,
        /// What is wrong with it, for the model and the person.
        reason: String,
    },
}

impl ToolInput {
    /// Reads the text of an input that arrived whole.
    ///
    /// A tool without parameters is called with nothing, `null` or `""` by some models and servers;
    /// these mean the empty object. Anything else that is no object is [`ToolInput::Malformed`].
    pub fn parse(raw: &str) -> Self {
        let text = raw.trim();
        if text.is_empty() {
            return JsonObject::new().into();
        }
        match serde_json::from_str::<Value>(text) {
            Ok(value) => Self::from_value(value, raw),
            Err(error) => Self::malformed(raw, format!("not valid JSON: {error}")),
        }
    }

    /// Takes an input that arrived as a JSON value, with the same rules as [`ToolInput::parse`].
    pub fn from_json(value: Value) -> Self {
        match value {
            Value::Object(object) => object.into(),
            other => {
                let raw = other.to_string();
                Self::from_value(other, &raw)
            }
        }
    }

    /// Input that cannot be used, and why.
    pub fn malformed(raw: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Malformed {
            raw: raw.into(),
            reason: reason.into(),
        }
    }

    /// As a person sees it: the object, or the text that is none.
    pub fn shown(&self) -> Arc<Value> {
        match self {
            Self::Object(object) => object.to_value(),
            Self::Malformed { raw, .. } => Arc::new(Value::String(raw.clone())),
        }
    }

    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&JsonObject> {
        match self {
            Self::Object(object) => Some(object),
            Self::Malformed { .. } => None,
        }
    }

    fn from_value(value: Value, raw: &str) -> Self {
        match value {
            Value::Object(object) => object.into(),
            Value::Null => JsonObject::new().into(),
            Value::String(text) if text.trim().is_empty() => JsonObject::new().into(),
            other => {
                let found = match other {
                    Value::Bool(_) => "a boolean",
                    Value::Number(_) => "a number",
                    Value::String(_) => "a string",
                    _ => "an array",
                };
                Self::malformed(
                    raw,
                    format!("tool input must be a JSON object, got {found}"),
                )
            }
        }
    }
}

impl From<SharedObject> for ToolInput {
    fn from(object: SharedObject) -> Self {
        Self::Object(object)
    }
}

impl From<JsonObject> for ToolInput {
    fn from(object: JsonObject) -> Self {
        Self::Object(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_null_and_the_empty_string_mean_no_arguments() {
        for raw in ["", "  \n", "null", "\"\"", "{}"] {
            assert_eq!(
                ToolInput::parse(raw),
                ToolInput::from(JsonObject::new()),
                "{raw:?}"
            );
        }
    }

    #[test]
    fn what_is_no_object_is_kept_with_its_reason() {
        for raw in ["[1]", "3", "true", "\"x\"", "{\"a\":", "{\"a\":1} trailing"] {
            let ToolInput::Malformed { raw: kept, reason } = ToolInput::parse(raw) else {
                panic!("{raw} passed as an object");
            };
            assert_eq!(kept, raw);
            assert!(!reason.is_empty());
        }
    }
}
