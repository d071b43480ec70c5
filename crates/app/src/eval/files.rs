//! `${SUITE_FILES}` in conversations: models see the placeholder, servers get the folder.
//!
//! The folder has a new name in every evaluation. With the placeholder, requests, recordings and
//! reports stay the same.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use switchboard_domain::{
    ToolCall, ToolCallError, ToolCatalog, ToolHost, ToolHostChanges, ToolOutput,
};

/// The placeholder of the folder of a suite's files.
pub(super) const FILES: &str = "${SUITE_FILES}";

/// A tool host that replaces the placeholder.
pub(super) struct WithFiles {
    pub(super) host: Arc<dyn ToolHost>,
    pub(super) folder: String,
}

#[async_trait]
impl ToolHost for WithFiles {
    async fn tools(&self) -> ToolCatalog {
        self.host.tools().await
    }

    async fn call(&self, mut call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let mut input = Value::Object((*call.input).clone());
        if replace(&mut input, FILES, &self.folder)
            && let Value::Object(input) = input
        {
            call.input = input.into();
        }
        let output = self.host.call(call).await?;
        let mut value = serde_json::to_value(&output).unwrap_or_default();
        if !replace(&mut value, &self.folder, FILES) {
            return Ok(output);
        }
        Ok(serde_json::from_value(value).unwrap_or(output))
    }

    fn changes(&self) -> ToolHostChanges {
        self.host.changes()
    }
}

/// Replaces text in every string of a value. Returns whether it occurred.
pub(super) fn replace(value: &mut Value, from: &str, to: &str) -> bool {
    let mut found = false;
    match value {
        Value::String(text) if text.contains(from) => {
            *text = text.replace(from, to);
            found = true;
        }
        Value::Array(items) => {
            for item in items {
                found |= replace(item, from, to);
            }
        }
        Value::Object(fields) => {
            for field in fields.values_mut() {
                found |= replace(field, from, to);
            }
        }
        _ => {}
    }
    found
}
