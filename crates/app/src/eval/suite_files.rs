//! Hides the path of the folder with the suite's files: models see `${SUITE_FILES}` instead.
//!
//! The folder has a new name in every evaluation. With the placeholder, requests, recordings and
//! reports stay the same.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use switchboard_domain::{
    ToolCall, ToolCallError, ToolCatalog, ToolHost, ToolHostChanges, ToolOutput,
};

use super::suite_servers::StartedServers;

/// Placeholder that models see instead of the path of the folder with the suite's files.
pub(super) const FILES: &str = "${SUITE_FILES}";

/// A tool host that replaces [`FILES`] in tool inputs by the real path of the folder with the
/// suite's files. In tool results, it replaces the real path by [`FILES`].
pub(super) struct SuiteFileToolHost(pub(super) Arc<StartedServers>);

#[async_trait]
impl ToolHost for SuiteFileToolHost {
    async fn list_tools(&self) -> ToolCatalog {
        self.0.host.list_tools().await
    }

    async fn call_tool(&self, mut call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let Some(folder) = self.0.suite_folder() else {
            return self.0.host.call_tool(call).await;
        };
        let mut input = Value::Object((*call.input).clone());
        if replace_in_json_strings(&mut input, FILES, &folder)
            && let Value::Object(input) = input
        {
            call.input = input.into();
        }
        let output = self.0.host.call_tool(call).await?;
        let mut value = serde_json::to_value(&output).unwrap_or_default();
        if !replace_in_json_strings(&mut value, &folder, FILES) {
            return Ok(output);
        }
        Ok(serde_json::from_value(value).unwrap_or(output))
    }

    fn watch_changes(&self) -> ToolHostChanges {
        self.0.host.watch_changes()
    }
}

/// Replaces `from` by `to` in all strings of a JSON value. Returns whether any string changed.
pub(super) fn replace_in_json_strings(value: &mut Value, from: &str, to: &str) -> bool {
    let mut found = false;
    match value {
        Value::String(text) if text.contains(from) => {
            *text = text.replace(from, to);
            found = true;
        }
        Value::Array(items) => {
            for item in items {
                found |= replace_in_json_strings(item, from, to);
            }
        }
        Value::Object(fields) => {
            for field in fields.values_mut() {
                found |= replace_in_json_strings(field, from, to);
            }
        }
        _ => {}
    }
    found
}
