//! A model's request to run a tool.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ProviderState, SharedObject, check_depth};

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
    /// these mean the empty object. Anything else that is no object is [`ToolInput::Malformed`], as
    /// is an object with more than [`MAX_JSON_DEPTH`](crate::MAX_JSON_DEPTH) levels.
    pub fn parse(raw: &str) -> Self {
        let text = raw.trim();
        if text.is_empty() {
            return JsonObject::new().into();
        }
        match serde_json::from_str::<Value>(text) {
            Ok(value) => match fault(&value) {
                None => Self::from_good(value),
                Some(reason) => Self::malformed(raw, reason),
            },
            Err(error) => Self::malformed(raw, format!("not valid JSON: {error}")),
        }
    }

    /// Takes an input that arrived as a JSON value, with the same rules as [`ToolInput::parse`].
    pub fn from_json(value: Value) -> Self {
        match fault(&value) {
            None => Self::from_good(value),
            Some(reason) => Self::malformed(value.to_string(), reason),
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

    /// Takes a value without a [`fault`].
    fn from_good(value: Value) -> Self {
        match value {
            Value::Object(object) => object.into(),
            _ => JsonObject::new().into(),
        }
    }
}

/// Returns why a value is not the input of a tool.
fn fault(value: &Value) -> Option<String> {
    if let Err(too_deep) = check_depth(value) {
        return Some(format!("tool input must not be {too_deep}"));
    }
    let found = match value {
        Value::Object(_) | Value::Null => return None,
        Value::String(text) if text.trim().is_empty() => return None,
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
    };
    Some(format!("tool input must be a JSON object, got {found}"))
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
    fn an_object_that_is_nested_too_deeply_is_malformed() {
        use crate::MAX_JSON_DEPTH;

        for levels in [1, MAX_JSON_DEPTH, MAX_JSON_DEPTH + 1, 120, 127, 200] {
            let raw = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
            let input = ToolInput::parse(&raw);
            assert_eq!(input.as_object().is_some(), levels <= MAX_JSON_DEPTH);
            if let Ok(value) = serde_json::from_str(&raw) {
                assert_eq!(ToolInput::from_json(value), input);
            }
            // Either form can be stored and read again.
            let stored = serde_json::to_string(&input).unwrap();
            assert_eq!(serde_json::from_str::<ToolInput>(&stored).unwrap(), input);
        }
        let raw = format!("{}{}", "[".repeat(100), "]".repeat(100));
        let ToolInput::Malformed { reason, .. } = ToolInput::parse(&raw) else {
            panic!("an array passed as an object");
        };
        assert_eq!(
            reason,
            "tool input must not be nested more than 64 levels deep"
        );
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
