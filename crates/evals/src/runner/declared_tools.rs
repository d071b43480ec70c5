//! Provides the tools that a scenario declares, without an MCP server.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream;
use serde_json::Value;
use switchboard_domain::{
    ToolCall, ToolCallError, ToolCatalog, ToolContent, ToolDefinition, ToolHost, ToolHostChanges,
    ToolOrigin, ToolOutput,
};

use crate::suite::{DECLARED_SERVER, DeclaredTool};

/// A tool host for the tools that a scenario declares. It executes nothing: each call of a tool
/// returns the result that the scenario declares for this tool.
pub(super) struct DeclaredToolHost {
    pub(super) tools: Vec<Arc<ToolDefinition>>,
    results: Vec<Value>,
}

impl DeclaredToolHost {
    pub(super) fn new(tools: &[DeclaredTool]) -> Self {
        let definition = |tool: &DeclaredTool| {
            let mut definition =
                ToolDefinition::new(&tool.name, &tool.description, tool.input_schema.clone());
            definition.origin = Some(ToolOrigin {
                server: DECLARED_SERVER.to_owned(),
                tool: tool.name.clone(),
            });
            definition.annotations.read_only = Some(true);
            Arc::new(definition)
        };
        Self {
            tools: tools.iter().map(definition).collect(),
            results: tools.iter().map(|tool| tool.result.clone()).collect(),
        }
    }
}

#[async_trait]
impl ToolHost for DeclaredToolHost {
    async fn list_tools(&self) -> ToolCatalog {
        ToolCatalog {
            tools: self.tools.clone(),
            problems: Vec::new(),
        }
    }

    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        match self.tools.iter().position(|tool| tool.name == call.name) {
            Some(position) => Ok(match &self.results[position] {
                Value::String(text) => ToolOutput::text(text),
                value => ToolOutput {
                    content: vec![ToolContent::text(value.to_string())],
                    structured: value.is_object().then(|| value.clone()),
                    is_error: false,
                },
            }),
            None => Err(ToolCallError::UnknownTool {
                name: call.name,
                available: self.tools.iter().map(|tool| tool.name.clone()).collect(),
            }),
        }
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}
