//! Tools that run at the client. A request declares them, a response ends with their calls, and the
//! next request contains their results.
//!
//! The run treats them as tools of another server that all need approval. When the run waits for
//! such an approval, the response ends with the calls, and the run stays in memory. The next
//! request stores the client's results here and approves the calls, which then return these
//! results. No other call of the run is repeated.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use crate::{
    App, Problem,
    dialects::conversation::unsupported_field,
    hub::{CLIENT_SERVER, lock_mutex},
};
use async_trait::async_trait;
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_domain::{
    ToolCall, ToolCallError, ToolCatalog, ToolDefinition, ToolHost, ToolHostChanges, ToolOrigin,
    ToolOutput, check_depth,
};

/// Prefix of the call ids (`sb_RUN_CALL`) in responses of OpenAI's and Anthropic's formats. They
/// contain the run id, so that the client's next request identifies the run.
pub(crate) const CALL_ID_PREFIX: &str = "sb";

/// A tool that the client declares in a request and executes itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct DeclaredTool {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// The JSON Schema of the tool input. A tool without a schema has no parameters.
    #[serde(alias = "input_schema")]
    pub(crate) parameters: Option<Value>,
}

/// A tool host with the tools that a client declared in its request and executes itself.
pub(crate) struct ClientTools {
    definitions: Vec<Arc<ToolDefinition>>,
    /// Results that the client sent, by the run's call id. A call removes and returns its result.
    results: Mutex<HashMap<String, ToolOutput>>,
}

impl ClientTools {
    /// Checks and stores the tools that a client declares. Every provider must accept their names,
    /// and the server must not have a tool with such a name. Otherwise, the result is an error with
    /// status 400. Returns `None` if the client declares no tools.
    pub(crate) async fn new(
        app: &App,
        tools: Vec<DeclaredTool>,
    ) -> Result<Option<Arc<Self>>, Problem> {
        if tools.is_empty() {
            return Ok(None);
        }
        let catalog = app.engine().tool_catalog().await;
        let mut definitions: Vec<Arc<ToolDefinition>> = Vec::with_capacity(tools.len());
        for (index, tool) in tools.into_iter().enumerate() {
            let name = tool.name;
            let no_parameters = || json!({"type": "object", "properties": {}});
            let schema = tool.parameters.unwrap_or_else(no_parameters);
            let refused =
                |reason: &str| unsupported_field("tools", &format!("tools[{index}]: {reason}"));
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if !(1..=64).contains(&name.len()) || !name.chars().all(is_allowed) {
                return Err(refused(
                    "its name must have 1 to 64 letters, digits, `_` or `-`",
                ));
            }
            if definitions.iter().any(|tool| tool.name == name) {
                return Err(refused(&format!(
                    "the name `{name}` is used by another tool"
                )));
            }
            if catalog.tools.iter().any(|tool| tool.name == name) {
                return Err(refused(&format!(
                    "the server already has a tool `{name}`: choose another name"
                )));
            }
            if !schema.is_object() {
                return Err(refused("its schema must be an object"));
            }
            check_depth(&schema).map_err(|error| refused(&format!("its schema is {error}")))?;
            let description = tool.description.unwrap_or_default();
            definitions.push(build_tool_definition(&name, description, schema));
        }
        Ok(Some(Self::from_definitions(definitions)))
    }

    pub(crate) fn from_definitions(definitions: Vec<Arc<ToolDefinition>>) -> Arc<Self> {
        Arc::new(Self {
            definitions,
            results: Mutex::default(),
        })
    }

    /// Stores the client's result of a tool call. `call` is the run's id of the tool call.
    pub(crate) fn add_tool_result(&self, call: String, output: ToolOutput) {
        lock_mutex(&self.results).insert(call, output);
    }
}

#[async_trait]
impl ToolHost for ClientTools {
    async fn list_tools(&self) -> ToolCatalog {
        ToolCatalog {
            tools: self.definitions.clone(),
            problems: Vec::new(),
        }
    }

    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        // The idempotency key is `RUN/STEP/CALL`. The call id at its end may contain slashes.
        let key = call.idempotency_key.as_deref().unwrap_or_default();
        let id = key.splitn(3, '/').nth(2).unwrap_or_default();
        lock_mutex(&self.results)
            .remove(id)
            .ok_or_else(|| ToolCallError::Refused {
                server: CLIENT_SERVER.to_owned(),
                tool: call.name,
                code: 0,
                message: "the client sent no result".to_owned(),
            })
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

/// Creates the definition of a tool that the client executes.
pub(crate) fn build_tool_definition(
    name: &str,
    description: String,
    schema: Value,
) -> Arc<ToolDefinition> {
    let mut tool = ToolDefinition::new(name, description, schema);
    tool.origin = Some(ToolOrigin {
        server: CLIENT_SERVER.to_owned(),
        tool: name.to_owned(),
    });
    Arc::new(tool)
}

/// Returns the call id `sb_RUN_CALL` that the client receives for the tool call `call` of the run
/// `run`. `RUN` is the run id without hyphens. All SDKs accept the characters of this id.
pub(crate) fn build_client_call_id(run: &str, call: &str) -> String {
    let run = run.replace('-', "");
    format!("{CALL_ID_PREFIX}_{run}_{call}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_takes_its_result_once() {
        let tools = ClientTools::from_definitions(Vec::new());
        let output = ToolOutput::text("17 degrees");
        tools.add_tool_result("a/b".to_owned(), output.clone());
        let call = |key: Option<&str>| {
            tools.call_tool(ToolCall {
                name: "mine".to_owned(),
                idempotency_key: key.map(ToOwned::to_owned),
                ..ToolCall::default()
            })
        };
        assert!(call(Some("run/1/b")).await.is_err());
        assert!(call(None).await.is_err());
        assert_eq!(call(Some("run/1/a/b")).await.ok(), Some(output));
        let again = call(Some("run/1/a/b")).await.unwrap_err();
        assert!(
            again.to_string().contains("the client sent no result"),
            "{again}"
        );
        assert!(again.did_not_run());
    }
}
