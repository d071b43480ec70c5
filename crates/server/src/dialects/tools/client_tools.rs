//! Tools that run at the client: declared with a request, called by ending its response, and answered with the next one.
//!
//! To the run they are tools of one more server whose every call waits for a word. Where it waits for one of these, the response
//! ends with the calls. The run stays in memory; the client's results come with its next request, the calls are let go, and
//! each finds its result here. Nothing that the server's tools did before is done again.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures_util::stream;
use serde_json::Value;
use switchboard_domain::{
    ToolCall, ToolCallError, ToolCatalog, ToolDefinition, ToolHost, ToolHostChanges, ToolOrigin,
    ToolOutput, check_depth,
};
use switchboard_orchestration::RunEventKind;

use crate::dialects::{conversation::unsupported, sequencer::ClientEvent};
use crate::{App, Problem, hub::CLIENT_SERVER};

/// What the id of a call begins with when it is given to a client: its run is named by it.
pub(crate) const PREFIX: &str = "sb";

/// What the client declared.
pub(crate) struct ClientTools {
    definitions: Vec<Arc<ToolDefinition>>,
    /// The client's results that nobody has come for yet, by the ids of their calls.
    results: Mutex<HashMap<String, ToolOutput>>,
}

impl ClientTools {
    /// The tools, unless there are none. Names are those that every provider takes, and none of the server's own.
    pub(crate) async fn new(
        app: &App,
        tools: Vec<(String, String, Value)>,
    ) -> Result<Option<Arc<Self>>, Problem> {
        if tools.is_empty() {
            return Ok(None);
        }
        let catalog = app.engine().tools().await;
        let mut definitions: Vec<Arc<ToolDefinition>> = Vec::with_capacity(tools.len());
        for (place, (name, description, schema)) in tools.into_iter().enumerate() {
            let refused = |why: &str| unsupported("tools", &format!("tools[{place}]: {why}"));
            let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if !(1..=64).contains(&name.len()) || !name.chars().all(is_fit) {
                return Err(refused("a name has 1 to 64 letters, digits, `_` or `-`"));
            }
            if definitions.iter().any(|tool| tool.name == name) {
                return Err(refused(&format!("there are two tools called `{name}`")));
            }
            if catalog.tools.iter().any(|tool| tool.name == name) {
                return Err(refused(&format!(
                    "the server has a tool called `{name}` itself: give yours another name"
                )));
            }
            if !schema.is_object() {
                return Err(refused("its schema is no object"));
            }
            check_depth(&schema)
                .map_err(|too_deep| refused(&format!("its schema is {too_deep}")))?;
            definitions.push(definition(&name, description, schema));
        }
        Ok(Some(Self::of(definitions)))
    }

    pub(crate) fn of(definitions: Vec<Arc<ToolDefinition>>) -> Arc<Self> {
        Arc::new(Self {
            definitions,
            results: Mutex::default(),
        })
    }

    /// A change to an agent: it has these tools besides.
    pub(crate) fn shape(self: &Arc<Self>) -> crate::hub::Shape {
        let tools = Arc::clone(self);
        Box::new(move |agent| agent.with_asked_tools(CLIENT_SERVER, tools))
    }

    /// Lays down the client's result of a call, by the run's id of it.
    pub(crate) fn give(&self, call: String, output: ToolOutput) {
        self.results().insert(call, output);
    }

    fn results(&self) -> MutexGuard<'_, HashMap<String, ToolOutput>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ClientTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTools")
            .field("tools", &self.definitions.len())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ToolHost for ClientTools {
    async fn tools(&self) -> ToolCatalog {
        ToolCatalog {
            tools: self.definitions.clone(),
            problems: Vec::new(),
        }
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        // A call that a run makes has a key that ends with its id: run, step, call.
        let key = call.idempotency_key.as_deref().unwrap_or_default();
        let id = key.splitn(3, '/').nth(2).unwrap_or_default();
        self.results()
            .remove(id)
            .ok_or_else(|| ToolCallError::Refused {
                server: CLIENT_SERVER.to_owned(),
                tool: call.name,
                code: 0,
                message: "the client gave no result".to_owned(),
            })
    }

    fn changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

/// A tool of the client, as a model sees it.
pub(crate) fn definition(name: &str, description: String, schema: Value) -> Arc<ToolDefinition> {
    let mut tool = ToolDefinition::new(name, description, schema);
    tool.origin = Some(ToolOrigin {
        server: CLIENT_SERVER.to_owned(),
        tool: name.to_owned(),
    });
    Arc::new(tool)
}

/// A call that the client is to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientCall {
    /// As the client knows it.
    pub(crate) id: String,
    pub(crate) tool_use: String,
    pub(crate) name: String,
    /// Its input as JSON text.
    pub(crate) input: String,
    is_asked: bool,
}

/// The calls of a response that the client is to make.
#[derive(Debug, Default)]
pub(crate) struct ClientCalls {
    calls: Vec<ClientCall>,
}

impl ClientCalls {
    /// Follows what happens to them.
    pub(crate) fn follow(&mut self, run: &str, beat: &ClientEvent<'_>) {
        match beat {
            ClientEvent::CallInputReady(call, input) | ClientEvent::CallInputReplaced(call, input) if call.is_clients() => {
                self.calls.retain(|it| it.tool_use != call.tool_use);
                self.calls.push(ClientCall {
                    id: call_id(run, &call.tool_use),
                    tool_use: call.tool_use.clone(),
                    name: call.name.clone(),
                    input: input.to_string(),
                    is_asked: false,
                });
            }
            ClientEvent::CallAwaitsDecision(call) => {
                let mut calls = self.calls.iter_mut();
                if let Some(found) = calls.find(|it| it.tool_use == call.tool_use) {
                    found.is_asked = true;
                }
            }
            ClientEvent::Other(event) => {
                if let RunEventKind::ToolApproved { id, .. } = &event.kind {
                    let mut calls = self.calls.iter_mut();
                    if let Some(found) = calls.find(|it| it.tool_use == *id) {
                        found.is_asked = false;
                    }
                }
            }
            ClientEvent::CallDenied(call) | ClientEvent::CallFinished(call, _) => {
                self.calls.retain(|it| it.tool_use != call.tool_use);
            }
            _ => {}
        }
    }

    /// Those that wait for the client.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &ClientCall> {
        self.calls.iter().filter(|call| call.is_asked)
    }
}

/// The id of a call for a client whose ids name runs. It has only what every SDK takes in an id, where the run's own does.
pub(crate) fn call_id(run: &str, call: &str) -> String {
    let run = run.replace('-', "");
    format!("{PREFIX}_{run}_{call}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_finds_its_own_result_once() {
        let tools = ClientTools::of(Vec::new());
        let output = ToolOutput::text("17 degrees");
        tools.give("a/b".to_owned(), output.clone());
        let call = |key: Option<&str>| {
            tools.call(ToolCall {
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
            again.to_string().contains("the client gave no result"),
            "{again}"
        );
        assert!(again.did_not_run());
    }
}
