//! Guards: results after which the rest of an answer's calls is not run.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{ToolContent, ToolOutput};

use crate::tools::pattern::Pattern;

/// When `tool` gives such a result, or none at all, the calls behind it in the same answer are not executed.
///
/// A tool that has a guard is a barrier: the calls behind it begin when its result is there. In a
/// configuration:
///
/// ```json
/// {"tool": "crm__check_credit", "when": {"pointer": "/approved", "equals": false}}
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// Which tools, by their names as the model sees them.
    pub tool: Pattern,
    /// Which of their results stop what comes after.
    pub when: GuardCondition,
}

/// Which results stop what comes after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GuardCondition {
    /// The structured result, or the JSON that the text is, holds this value at this place.
    Holds {
        /// A JSON pointer (RFC 6901), such as `/approved`.
        pointer: String,
        /// The value there.
        equals: Value,
    },
    /// A word: `error` is a result that says the tool failed, or no result at all.
    Word(GuardWord),
}

/// A condition in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuardWord {
    /// The tool failed.
    Error,
}

impl Guard {
    /// Whether it watches this tool.
    pub fn watches(&self, tool: &str) -> bool {
        self.tool.matches(tool)
    }

    /// Whether this result stops the calls behind it.
    pub fn stops(&self, tool: &str, output: &ToolOutput) -> bool {
        self.watches(tool)
            && match &self.when {
                // Whoever cannot tell does not say yes: an error stops in any case.
                _ if output.is_error => true,
                GuardCondition::Word(GuardWord::Error) => false,
                GuardCondition::Holds { pointer, equals } => match &output.structured {
                    Some(structured) => structured.pointer(pointer) == Some(equals),
                    None => output.content.iter().any(|content| {
                        let ToolContent::Text { text } = content else {
                            return false;
                        };
                        serde_json::from_str::<Value>(text)
                            .is_ok_and(|value| value.pointer(pointer) == Some(equals))
                    }),
                },
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn guard(when: &Value) -> Guard {
        serde_json::from_value(json!({"tool": "crm__*", "when": when})).unwrap()
    }

    #[test]
    fn a_value_is_found_in_data_and_in_text_that_is_data() {
        let guard = guard(&json!({"pointer": "/approved", "equals": false}));
        let structured = |value: Value| ToolOutput {
            structured: Some(value),
            ..ToolOutput::text("no")
        };
        assert!(guard.stops("crm__check", &structured(json!({"approved": false}))));
        assert!(!guard.stops("crm__check", &structured(json!({"approved": true}))));
        assert!(!guard.stops("crm__check", &structured(json!({}))));
        assert!(guard.stops("crm__check", &ToolOutput::text(r#"{"approved":false}"#)));
        assert!(!guard.stops("crm__check", &ToolOutput::text("approved: false")));
        assert!(!guard.stops("shop__check", &structured(json!({"approved": false}))));
        let failed = ToolOutput {
            is_error: true,
            ..ToolOutput::text("the database is down")
        };
        assert!(
            guard.stops("crm__check", &failed),
            "whoever cannot tell does not say yes"
        );
    }

    #[test]
    fn an_error_is_a_condition_of_its_own() {
        let guard = guard(&json!("error"));
        let failed = ToolOutput {
            is_error: true,
            ..ToolOutput::text("no")
        };
        assert!(guard.stops("crm__check", &failed));
        assert!(!guard.stops("crm__check", &ToolOutput::text("yes")));
    }
}
