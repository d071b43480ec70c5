//! A model's request to run a tool.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ProviderState, SharedObject, check_depth};

/// A JSON object that preserves the order of its keys.
pub type JsonObject = Map<String, Value>;

/// A request of the model to run a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The id, unique within the conversation. The [`ToolResult`](crate::ToolResult) refers to it.
    /// It is generated locally if the provider sends no ids.
    pub id: String,
    /// The tool's name as in [`ToolDefinition::name`](crate::ToolDefinition::name). If the provider
    /// received an alias for the tool, the adapter converts the alias back to this name. If no
    /// declared tool has this name, the model invented it.
    pub name: String,
    /// The input that the model wrote for the tool.
    pub input: ToolInput,
    /// Opaque provider data that later requests must contain unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<ProviderState>,
}

impl ToolUse {
    /// Returns a tool use without provider state.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: ToolInput) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            input,
            provider_state: None,
        }
    }
}

/// The input of a tool use: a JSON object, or malformed input with a reason. Malformed input is
/// never replaced by `{}` and never executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolInput {
    /// The input is a JSON object.
    Object(SharedObject),
    /// The input is not a usable JSON object.
    Malformed {
        /// The input as the model wrote it, truncated if it exceeds the size limit.
        raw: String,
        /// The reason why the input is malformed, for the model and the user.
        reason: String,
    },
}

impl ToolInput {
    /// Parses the complete text of a tool input.
    ///
    /// An empty text, `null` and `""` become the empty object, because some models and servers
    /// write them for a tool without parameters. Other values that are not objects, and objects
    /// with more than [`MAX_JSON_DEPTH`](crate::MAX_JSON_DEPTH) levels, become
    /// [`ToolInput::Malformed`].
    pub fn parse_input(raw: &str) -> Self {
        let text = raw.trim();
        if text.is_empty() {
            return JsonObject::new().into();
        }
        match serde_json::from_str::<Value>(text) {
            Ok(value) => match find_input_fault(&value) {
                None => Self::from_valid_value(value),
                Some(reason) => Self::malformed_input(raw, reason),
            },
            Err(error) => Self::malformed_input(raw, format!("not valid JSON: {error}")),
        }
    }

    /// Converts a JSON value with the rules of [`ToolInput::parse_input`].
    pub fn from_json(value: Value) -> Self {
        match find_input_fault(&value) {
            None => Self::from_valid_value(value),
            Some(reason) => Self::malformed_input(value.to_string(), reason),
        }
    }

    /// Returns malformed input with the text of the model and a reason.
    pub fn malformed_input(raw: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Malformed {
            raw: raw.into(),
            reason: reason.into(),
        }
    }

    /// Returns the value for display: the object, or the malformed text.
    pub fn to_display_value(&self) -> Arc<Value> {
        match self {
            Self::Object(object) => object.to_value(),
            Self::Malformed { raw, .. } => Arc::new(Value::String(raw.clone())),
        }
    }

    /// Returns the object, or `None` for malformed input.
    pub fn as_object(&self) -> Option<&JsonObject> {
        match self {
            Self::Object(object) => Some(object),
            Self::Malformed { .. } => None,
        }
    }

    /// Converts a value without a fault (see `find_input_fault`) to a tool input. `null` and blank
    /// strings become the empty object.
    fn from_valid_value(value: Value) -> Self {
        match value {
            Value::Object(object) => object.into(),
            _ => JsonObject::new().into(),
        }
    }
}

/// Returns the reason why a value cannot be a tool input, or `None` if it can.
fn find_input_fault(value: &Value) -> Option<String> {
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
    fn empty_text_null_and_the_empty_string_mean_no_arguments() {
        for raw in ["", "  \n", "null", "\"\"", "{}"] {
            assert_eq!(
                ToolInput::parse_input(raw),
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
            let input = ToolInput::parse_input(&raw);
            assert_eq!(input.as_object().is_some(), levels <= MAX_JSON_DEPTH);
            if let Ok(value) = serde_json::from_str(&raw) {
                assert_eq!(ToolInput::from_json(value), input);
            }
            // Either form can be stored and read again.
            let stored = serde_json::to_string(&input).unwrap();
            assert_eq!(serde_json::from_str::<ToolInput>(&stored).unwrap(), input);
        }
        let raw = format!("{}{}", "[".repeat(100), "]".repeat(100));
        let ToolInput::Malformed { reason, .. } = ToolInput::parse_input(&raw) else {
            panic!("an array passed as an object");
        };
        assert_eq!(
            reason,
            "tool input must not be nested more than 64 levels deep"
        );
    }

    #[test]
    fn a_value_that_is_not_an_object_is_malformed_with_its_reason() {
        for raw in ["[1]", "3", "true", "\"x\"", "{\"a\":", "{\"a\":1} trailing"] {
            let ToolInput::Malformed { raw: text, reason } = ToolInput::parse_input(raw) else {
                panic!("{raw} passed as an object");
            };
            assert_eq!(text, raw);
            assert!(!reason.is_empty());
        }
    }
}
