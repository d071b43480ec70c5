//! What a function is given, as the API has it.

use serde::{Serialize, Serializer};
use serde_json::json;
use switchboard_domain::ToolInput;

/// A tool input as both wires have it: a *string* of compact JSON, keys in the order given.
///
/// The string is always a JSON object, because servers parse it to fill their chat template: input
/// that was malformed goes back as `{"malformed_input": …}`.
#[derive(Debug)]
pub struct Arguments<'a>(pub &'a ToolInput);

impl Serialize for Arguments<'_> {
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
