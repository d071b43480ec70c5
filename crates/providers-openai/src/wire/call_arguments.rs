//! Serializes the arguments of function calls.

use serde::{Serialize, Serializer};
use serde_json::json;
use switchboard_domain::ToolInput;

/// A tool input as a *string* of compact JSON, with its keys in their original order.
///
/// The string is always a JSON object, because servers parse it for their chat templates.
/// Malformed input is sent as `{"malformed_input": …}`.
#[derive(Debug)]
pub struct CallArguments<'a>(pub &'a ToolInput);

impl Serialize for CallArguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = match self.0 {
            ToolInput::Object(object) => serde_json::to_string(object),
            ToolInput::Malformed { raw, .. } => {
                serde_json::to_string(&json!({ "malformed_input": raw }))
            }
        };
        serializer.serialize_str(&text.map_err(serde::ser::Error::custom)?)
    }
}
