//! The input of a tool use in a request.

use serde::{Serialize, Serializer};
use serde_json::json;
use switchboard_domain::ToolInput;

/// A tool input as a JSON object with its keys in their original order.
///
/// Malformed input is sent as `{"malformed_input": …}`, because the APIs accept only objects and
/// the model must see its own text.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUseInput<'a>(pub &'a ToolInput);

impl Serialize for ToolUseInput<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ToolInput::Object(object) => object.serialize(serializer),
            ToolInput::Malformed { raw, .. } => {
                json!({ "malformed_input": raw }).serialize(serializer)
            }
        }
    }
}
