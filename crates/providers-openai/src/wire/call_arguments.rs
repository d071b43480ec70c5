//! Serializes the arguments of function calls.

use serde::{Serialize, Serializer};
use switchboard_domain::ToolInput;
use switchboard_providers_common::ToolUseInput;

/// A tool input as a *string* of compact JSON, with its keys in their original order.
///
/// The string is always a JSON object, because servers parse it for their chat templates.
/// Malformed input is sent as `{"malformed_input": …}`.
#[derive(Debug)]
pub struct CallArguments<'a>(pub &'a ToolInput);

impl Serialize for CallArguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(&ToolUseInput(self.0));
        serializer.serialize_str(&text.map_err(serde::ser::Error::custom)?)
    }
}
