//! Tools that run at the client: declared with a request, called by ending its response, and answered with the next one.
//!
//! To the run they are tools of one more server whose every call waits for a word. Where it waits for one of these, the response
//! ends with the calls. The run stays in memory; the client's results come with its next request, the calls are let go, and
//! each finds its result here. Nothing that the server's tools did before is done again.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures_util::stream;
use serde_json::Value;
use switchboard_domain::{
    ApprovalDecision, ApprovalScope, Message, Principal, ToolCall, ToolCallError, ToolCatalog,
    ToolDefinition, ToolHost, ToolHostChanges, ToolOrigin, ToolOutput, ToolResult,
};
use switchboard_orchestration::RunEventKind;
use uuid::Uuid;

use super::{
    inbound::unsupported,
    telling::{Beat, Call},
};
use crate::{
    App, Problem,
    hub::{Guard, Reader},
};

/// The name under which the client's tools are told of. No configured server is called so.
const SERVER: &str = "the client";

/// What the id of a call begins with when it is given to a client: its run is named by it.
const PREFIX: &str = "sb";

/// What the client declared.
pub(super) struct ClientTools {
    definitions: Vec<Arc<ToolDefinition>>,
    /// The client's results that nobody has come for yet, by the ids of their calls.
    results: Mutex<HashMap<String, ToolOutput>>,
}

impl ClientTools {
    /// The tools, unless there are none. Names are those that every provider takes, and none of the server's own.
    pub(super) async fn new(
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
            definitions.push(definition(&name, description, schema));
        }
        Ok(Some(Self::of(definitions)))
    }

    pub(super) fn of(definitions: Vec<Arc<ToolDefinition>>) -> Arc<Self> {
        Arc::new(Self {
            definitions,
            results: Mutex::default(),
        })
    }

    /// A change to an agent: it has these tools besides.
    pub(super) fn shape(self: &Arc<Self>) -> crate::hub::Shape {
        let tools = Arc::clone(self);
        Box::new(move |agent| agent.with_asked_tools(SERVER, tools))
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
                server: SERVER.to_owned(),
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
pub(super) fn definition(name: &str, description: String, schema: Value) -> Arc<ToolDefinition> {
    let mut tool = ToolDefinition::new(name, description, schema);
    tool.origin = Some(ToolOrigin {
        server: SERVER.to_owned(),
        tool: name.to_owned(),
    });
    Arc::new(tool)
}

/// A call that the client is to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientCall {
    /// As the client knows it.
    pub(super) id: String,
    pub(super) tool_use: String,
    pub(super) name: String,
    /// Its input as JSON text.
    pub(super) input: String,
    is_asked: bool,
}

/// The calls of a response that the client is to make.
#[derive(Debug, Default)]
pub(super) struct ClientCalls {
    calls: Vec<ClientCall>,
}

impl ClientCalls {
    /// Follows what happens to them.
    pub(super) fn follow(&mut self, run: &str, beat: &Beat<'_>) {
        match beat {
            Beat::CallReady(call, input) | Beat::CallChanged(call, input) if is_clients(call) => {
                self.calls.retain(|it| it.tool_use != call.tool_use);
                self.calls.push(ClientCall {
                    id: call_id(run, &call.tool_use),
                    tool_use: call.tool_use.clone(),
                    name: call.name.clone(),
                    input: input.to_string(),
                    is_asked: false,
                });
            }
            Beat::CallAsks(call) => {
                let mut calls = self.calls.iter_mut();
                if let Some(found) = calls.find(|it| it.tool_use == call.tool_use) {
                    found.is_asked = true;
                }
            }
            Beat::Note(event) => {
                if let RunEventKind::ToolApproved { id, .. } = &event.kind {
                    let mut calls = self.calls.iter_mut();
                    if let Some(found) = calls.find(|it| it.tool_use == *id) {
                        found.is_asked = false;
                    }
                }
            }
            Beat::CallDenied(call) | Beat::CallDone(call, _) => {
                self.calls.retain(|it| it.tool_use != call.tool_use);
            }
            _ => {}
        }
    }

    /// Those that wait for the client.
    pub(super) fn asked(&self) -> impl Iterator<Item = &ClientCall> {
        self.calls.iter().filter(|call| call.is_asked)
    }
}

fn is_clients(call: &Call) -> bool {
    call.server.as_deref() == Some(SERVER)
}

/// The id of a call for a client. It has only what every SDK takes in an id, where the run's own does.
fn call_id(run: &str, call: &str) -> String {
    let run = run.replace('-', "");
    format!("{PREFIX}_{run}_{call}")
}

/// The run and the call of an id that was given to a client.
fn parse_id(id: &str) -> Option<(String, String)> {
    let rest = id.strip_prefix(PREFIX)?.strip_prefix('_')?;
    let (run, call) = rest.split_once('_')?;
    let run = Uuid::parse_str(run).ok()?;
    Some((run.to_string(), call.to_owned()))
}

/// Results of a client for calls of one run.
#[derive(Debug)]
pub(super) struct Results {
    run: String,
    results: Vec<(String, ToolOutput)>,
}

impl Results {
    /// What a conversation ends with, if that is results of calls that this server gave to its client.
    pub(super) fn of_last(messages: &[Arc<Message>]) -> Option<Self> {
        Self::of(messages.last()?.results())
    }

    fn of<'r>(last: impl IntoIterator<Item = &'r ToolResult>) -> Option<Self> {
        let mut found: Option<Self> = None;
        for result in last {
            let (run, call) = parse_id(&result.tool_use_id)?;
            let output = ToolOutput {
                content: result.content.clone(),
                structured: result.structured.clone(),
                is_error: result.is_error,
            };
            let these = found.get_or_insert_with(|| Self {
                run: run.clone(),
                results: Vec::new(),
            });
            if these.run != run {
                return None;
            }
            these.results.push((call, output));
        }
        found
    }
}

/// A run that waits for its client.
pub(super) struct Held {
    pub(super) run: String,
    pub(super) tools: Arc<ClientTools>,
    /// The number of the last event that the client was told of.
    pub(super) seen: u64,
    /// The calls that it has, by the run's ids.
    pub(super) calls: Vec<String>,
    /// Ends the run if nobody comes.
    pub(super) guard: Option<Guard>,
    pub(super) owner: Principal,
}

/// The runs that wait for their clients.
#[derive(Clone, Default)]
pub(crate) struct Waiting {
    runs: Arc<Mutex<HashMap<String, (Instant, Held)>>>,
}

impl Waiting {
    /// Keeps a run until its client comes back, or ends it when it does not. `patience` is how long a call of it may wait:
    /// it ends before it would go on without, which nobody would read.
    pub(super) fn put(&self, held: Held, patience: Duration) {
        let run = held.run.clone();
        let since = Instant::now();
        self.runs().insert(run.clone(), (since, held));
        let waiting = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(patience.mul_f32(0.9)).await;
            let is_it = |(kept, _): &(Instant, Held)| *kept == since;
            let gone = {
                let mut runs = waiting.runs();
                let is_there = runs.get(&run).is_some_and(is_it);
                is_there.then(|| runs.remove(&run))
            };
            // Outside of the lock: what is dropped ends the run.
            drop(gone);
        });
    }

    /// Gives a run the results that it waits for, and gives it back to go on with.
    pub(super) async fn answer(
        &self,
        app: &App,
        principal: &Principal,
        results: Results,
    ) -> Result<(Held, Reader), Problem> {
        let held = self.take(principal, &results)?;
        let hub = app.hub();
        // Before the calls are let go: after that, the run may be over at once, and with it what is known of it.
        let reader = hub.reader(principal, &held.run, held.seen).await?;
        for (call, output) in results.results {
            held.tools.results().insert(call.clone(), output);
            let word = ApprovalDecision::Allow {
                input: None,
                scope: ApprovalScope::Once,
            };
            hub.decide(principal, &held.run, &call, word).await?;
        }
        Ok((held, reader))
    }

    fn take(&self, principal: &Principal, results: &Results) -> Result<Held, Problem> {
        let mut runs = self.runs();
        let found = runs
            .get(&results.run)
            .filter(|(_, held)| held.owner == *principal);
        let Some((_, held)) = found else {
            return Err(Problem::conflict(
                "the run that waits for these results is over: it waits for them only so long, and only once; send \
                 the question anew",
            )
            .at("messages"));
        };
        let has = |call: &String| results.results.iter().any(|(id, _)| id == call);
        if let Some(missing) = held.calls.iter().find(|call| !has(call)) {
            return Err(unsupported(
                "messages",
                &format!(
                    "the tool call `{}` has no result",
                    call_id(&results.run, missing)
                ),
            ));
        }
        let taken = runs.remove(&results.run);
        taken.map(|(_, held)| held).ok_or_else(Problem::internal)
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, (Instant, Held)>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_its_run_and_its_call() {
        let run = "01a1ffec-9aa5-7186-a003-3cfc2a778a0d";
        for call in ["call_1", "toolu_01-A", "_"] {
            let id = call_id(run, call);
            assert_eq!(
                parse_id(&id),
                Some((run.to_owned(), call.to_owned())),
                "{id}"
            );
        }
        for other in ["call_1", "sb_x_call_1", "sb_", "", "sb"] {
            assert_eq!(parse_id(other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn a_call_finds_its_own_result_once() {
        let tools = ClientTools::of(Vec::new());
        let output = ToolOutput::text("17 degrees");
        tools.results().insert("a/b".to_owned(), output.clone());
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

    #[test]
    fn results_are_of_one_run_or_of_none() {
        let one = call_id("01a1ffec-9aa5-7186-a003-3cfc2a778a0d", "a");
        let other = call_id("01a1ffec-9aa5-7186-a003-3cfc2a778a0e", "a");
        let result = |id: &str| ToolResult::text(id, "mine", "x");
        assert!(Results::of(&[result(&one)]).is_some());
        assert!(Results::of(&[result(&one), result(&other)]).is_none());
        assert!(Results::of(&[result(&one), result("call_1")]).is_none());
        assert!(Results::of(&[]).is_none());
    }
}
