//! Guards: conditions on a tool result. If a condition is met, the later tool calls of the same
//! model answer are not executed.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{ToolContent, ToolOutput};

use crate::tools::name_pattern::NamePattern;

/// A guard of a tool. If the tool's result meets the condition, or is missing, the later tool calls
/// of the same model answer are not executed.
///
/// The later tool calls wait until the guarded tool has a result. An example of a guard in a
/// configuration:
///
/// ```json
/// {"tool": "crm__check_credit", "when": {"pointer": "/approved", "equals": false}}
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolGuard {
    /// Pattern of the tool's name as the model sees it.
    pub tool: NamePattern,
    /// Condition on the result of the tool. If it is met, the later tool calls of the same model
    /// answer are not executed.
    pub when: GuardCondition,
}

/// A condition on the result of a guarded tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GuardCondition {
    /// The structured result, or a text result that is JSON, has the value `equals` at `pointer`.
    Holds {
        /// JSON pointer to the compared value (RFC 6901), such as `/approved`.
        pointer: String,
        /// Value that meets the condition, such as `false`.
        equals: Value,
    },
    /// A condition that a configuration writes as one word: `error`. It is met if the tool returned
    /// an error or has no result.
    Word(NamedGuardCondition),
}

/// A guard condition that is written as one word in a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NamedGuardCondition {
    /// The tool returned an error or has no result.
    Error,
}

impl ToolGuard {
    /// Returns whether the pattern of the guard matches the name `tool`, as the model sees it.
    pub fn applies_to_tool(&self, tool: &str) -> bool {
        self.tool.matches(tool)
    }

    /// Returns whether the guard applies to `tool` and `output` meets its condition. The later tool
    /// calls of the model answer must then not be executed. An error output always meets the
    /// condition.
    pub fn stops_later_calls(&self, tool: &str, output: &ToolOutput) -> bool {
        self.applies_to_tool(tool)
            && match &self.when {
                // An error has no value to compare, so it always meets the condition.
                _ if output.is_error => true,
                GuardCondition::Word(NamedGuardCondition::Error) => false,
                GuardCondition::Holds { pointer, equals } => match &output.structured {
                    Some(structured) => structured.pointer(pointer) == Some(equals),
                    None => output.content.iter().any(|content| {
                        matches!(content, ToolContent::Text { text }
                            if serde_json::from_str::<Value>(text)
                                .is_ok_and(|value| value.pointer(pointer) == Some(equals)))
                    }),
                },
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn guard(when: &Value) -> ToolGuard {
        serde_json::from_value(json!({"tool": "crm__*", "when": when})).unwrap()
    }

    #[test]
    fn a_value_is_found_in_structured_content_and_in_json_text() {
        let guard = guard(&json!({"pointer": "/approved", "equals": false}));
        let structured = |value: Value| ToolOutput {
            structured: Some(value),
            ..ToolOutput::text("no")
        };
        assert!(guard.stops_later_calls("crm__check", &structured(json!({"approved": false}))));
        assert!(!guard.stops_later_calls("crm__check", &structured(json!({"approved": true}))));
        assert!(!guard.stops_later_calls("crm__check", &structured(json!({}))));
        assert!(guard.stops_later_calls("crm__check", &ToolOutput::text(r#"{"approved":false}"#)));
        assert!(!guard.stops_later_calls("crm__check", &ToolOutput::text("approved: false")));
        assert!(!guard.stops_later_calls("shop__check", &structured(json!({"approved": false}))));
        let failed = ToolOutput {
            is_error: true,
            ..ToolOutput::text("the database is down")
        };
        assert!(
            guard.stops_later_calls("crm__check", &failed),
            "an error stops in any case"
        );
    }

    #[test]
    fn an_error_is_a_named_condition() {
        let guard = guard(&json!("error"));
        let failed = ToolOutput {
            is_error: true,
            ..ToolOutput::text("no")
        };
        assert!(guard.stops_later_calls("crm__check", &failed));
        assert!(!guard.stops_later_calls("crm__check", &ToolOutput::text("yes")));
    }
}
