//! JSON that is nested more deeply than the stores can read, through every input.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use proptest::{
    prelude::{Just, Strategy as _, prop, prop_oneof},
    strategy::ValueTree as _,
    test_runner::TestRunner,
};
use serde_json::{Value, json};
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, Approver, ChatModel, ChatRequest,
    FinishReason, MAX_JSON_DEPTH, Message, ModelCapabilities, ModelError, ModelEvent, ModelId,
    ModelStream, PartStart, Principal, ProviderState, Role, RunState, RunStore as _, Session,
    SessionId, SessionStore as _, ToolCall, ToolCallError, ToolCatalog, ToolContent,
    ToolDefinition, ToolHost, ToolHostChanges, ToolOutput, check_depth,
};
use switchboard_orchestration::{
    Agent, ApprovalPolicy, RunEvent, RunOptions,
    persistence::{DurableRuns, PersistedEvent, PersistedRun, PersistedRunEnd},
};
use switchboard_sessions::{ImportIdPolicy, Store, StoreOptions};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{
    serving::{Serving, place, says, with_server},
    slow_server::SlowServer,
};

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({"k": inner}))
}

#[tokio::test]
async fn the_depth_of_client_input_is_limited() {
    let (slow, fake) = (SlowServer::start().await, FakeModel::start().await.unwrap());
    slow.answer(1);
    let mut config = with_server(&slow);
    config["approve"] = json!("ask");
    let server = Serving::start_owned(place(&fake, &config), &[]).await;
    let deep = json!({"message": "Dig.", "more": nested(100)});
    assert_eq!(server.post("/chat", &deep).await.problem(400), "malformed");
    let parameters = nested(MAX_JSON_DEPTH + 1);
    let tool = json!({"type": "function", "function": {"name": "own", "parameters": parameters}});
    let said = json!([{"role": "user", "content": "Dig."}]);
    let asked = json!({"model": "default", "messages": said, "tools": [tool]});
    let refused = server.post("/v1/chat/completions", &asked).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(
        refused.text.contains("nested more than 64 levels deep"),
        "{refused:?}"
    );

    fake.answer(Answer::openai_chat([Say::call(
        "call_1",
        "slow__left",
        json!({"far": 1}),
    )]));
    fake.answer(says("Done."));
    let accepted = server.post("/chat", &json!({"message": "Dig."})).await;
    let run = accepted.expect(202)["run_id"].as_str().unwrap().to_owned();
    let path = format!("/runs/{run}/approvals/call_1");
    for levels in [MAX_JSON_DEPTH + 1, 90] {
        let edited = json!({"decision": "allow", "input": {"far": 1, "deep": nested(levels - 1)}});
        assert_eq!(server.post(&path, &edited).await.problem(422), "invalid");
    }
    // The call still waits for a decision.
    let allowed = json!({"decision": "allow"});
    server.post(&path, &allowed).await.expect(202);
    let report = server.report(&run).await;
    assert_eq!(report["outcome"], "completed", "{report}");
}

/// A model, a tool and an approver. Each of six values enters the run in another way: four in the
/// calls of one response, one in an approval with another input, one in the final answer.
struct Deep {
    id: ModelId,
    capabilities: ModelCapabilities,
    arguments: Value,
    /// The argument is a string with JSON. The tool requires an object, so the string is parsed.
    in_string: Value,
    structured: Value,
    unknown: Value,
    edited: Value,
    state: Value,
    was_parked: AtomicBool,
}

/// Ids of the calls, in the order of the response.
const CALLS: [&str; 5] = ["arguments", "in_string", "structured", "unknown", "edited"];

impl Deep {
    fn new([arguments, in_string, structured, unknown, edited, state]: [Value; 6]) -> Self {
        Self {
            id: ModelId::new("test", "deep"),
            capabilities: ModelCapabilities::default(),
            arguments,
            in_string,
            structured,
            unknown,
            edited,
            state,
            was_parked: AtomicBool::new(false),
        }
    }

    fn arguments(&self, call: &str) -> String {
        match call {
            "arguments" => self.arguments.to_string(),
            "in_string" => json!({"field": self.in_string.to_string()}).to_string(),
            other => json!({"call": other}).to_string(),
        }
    }

    /// Returns for each call whether it gets a normal result, and whether the final answer is
    /// complete.
    fn expected(&self) -> ([bool; 5], bool) {
        let fits = |value: &Value| check_depth(value).is_ok();
        let calls = [
            fits(&self.arguments),
            // A string with deeply nested JSON is not parsed to the object that the schema
            // requires.
            false,
            fits(&self.structured),
            fits(&self.unknown),
            fits(&self.edited),
        ];
        (calls, fits(&self.state))
    }
}

#[async_trait]
impl ChatModel for Deep {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let mut events = Vec::new();
        if request.messages.last().unwrap().role == Role::Tool {
            let (part, text) = (PartStart::Text, "Done.".to_owned());
            let state = Box::new(ProviderState::new_for_model(&self.id, self.state.clone()));
            events.extend([
                ModelEvent::PartStarted { index: 0, part },
                ModelEvent::TextDelta { index: 0, text },
                ModelEvent::PartState { index: 0, state },
            ]);
        } else {
            for (index, call) in (0..).zip(CALLS) {
                let part = PartStart::ToolUse {
                    id: call.to_owned(),
                    name: "dig".to_owned(),
                };
                let json = self.arguments(call);
                events.extend([
                    ModelEvent::PartStarted { index, part },
                    ModelEvent::ToolInputDelta { index, json },
                    ModelEvent::PartFinished { index },
                ]);
            }
        }
        let (reason, raw) = (FinishReason::Stop, None);
        events.push(ModelEvent::Finished { reason, raw });
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}

#[async_trait]
impl ToolHost for Deep {
    async fn list_tools(&self) -> ToolCatalog {
        let schema = json!({"type": "object", "properties": {"field": {"type": "object"}}});
        ToolCatalog {
            tools: vec![Arc::new(ToolDefinition::new("dig", "Digs.", schema))],
            problems: Vec::new(),
        }
    }

    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let mut output = ToolOutput::text("dug");
        match call.idempotency_key.unwrap().rsplit('/').next() {
            Some("structured") => output.structured = Some(self.structured.clone()),
            Some("unknown") => output.content.push(ToolContent::Unknown {
                value: self.unknown.clone(),
            }),
            _ => {}
        }
        Ok(output)
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

#[async_trait]
impl Approver for Deep {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        // The first decision is postponed, so that the waiting run is stored and then resumed from
        // the store.
        if !self.was_parked.swap(true, Ordering::Relaxed) {
            return ApprovalDecision::Later;
        }
        let input = match (&self.edited, request.tool_use.id.as_str()) {
            (Value::Object(fields), "edited") => Some(fields.clone()),
            _ => None,
        };
        let scope = ApprovalScope::Once;
        ApprovalDecision::Allow { input, scope }
    }
}

/// Generates objects with up to 126 levels. `serde_json` reads at most 127.
fn values() -> impl Iterator<Item = Value> {
    let leaf = prop_oneof![Just(json!("]}\"[{")), Just(json!(1.5)), Just(json!(null))];
    let levels = prop_oneof![0..126_usize, 58..70_usize, 110..126_usize];
    let shape = prop::collection::vec(0..4_u8, 1..4);
    let value = (leaf, levels, shape).prop_map(|(leaf, levels, shape)| {
        let inner = (0..levels).zip(shape.into_iter().cycle());
        let inner = inner.fold(leaf, |inner, (_, shape)| match shape {
            0 => json!([inner]),
            1 => json!([{}, inner, "["]),
            2 => json!({"a": inner}),
            _ => json!({"a": [], "b": inner, "{": 1}),
        });
        json!({"v": inner})
    });
    let mut runner = TestRunner::deterministic();
    std::iter::repeat_with(move || value.new_tree(&mut runner).unwrap().current())
}

async fn driven(mut run: PersistedRun) {
    while let Some(PersistedEvent { event, json }) = run.next().await {
        let read: RunEvent = serde_json::from_str(&json).unwrap();
        assert_eq!(read, *event);
    }
    let end = run.run_end().unwrap();
    assert!(!matches!(end, PersistedRunEnd::Failed(_)), "{end:?}");
}

/// Reads all stored data of a session. Returns its messages.
async fn read_all(store: &Store, owner: &Principal, session: &SessionId) -> Vec<Arc<Message>> {
    let messages = store.load_messages(owner, session, 0).await.unwrap();
    for run in store.list_runs(owner, Some(session), 10).await.unwrap() {
        assert_eq!(run.state, RunState::Finished);
        let events = store.load_events(owner, &run.id, 0, 1000).await.unwrap();
        assert_eq!(events.len() as u64, run.last_event);
        for event in events {
            serde_json::from_str::<RunEvent>(&event.json).unwrap();
        }
    }
    messages
}

/// Stores a run while it waits and at its end. Reads all of its stored data.
async fn stored(store: &Arc<Store>, owner: &Principal, session: SessionId, deep: Deep) {
    let durable_runs = DurableRuns::new(store.clone(), store.clone(), owner.clone());
    let (calls, is_complete) = deep.expected();
    let deep = Arc::new(deep);
    let options = RunOptions {
        approval: ApprovalPolicy::Ask.into(),
        stop_after_denial: false,
        ..RunOptions::default()
    };
    let agent = Agent::new(deep.clone())
        .with_tools(deep.clone())
        .with_approver(deep)
        .with_options(options);
    let session = Session {
        id: session,
        title: "deep".to_owned(),
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        messages: 0,
    };
    let asked = vec![Arc::new(Message::user("Dig."))];
    let begun = durable_runs
        .begin_run_in_new_session(&agent, &session, asked, None)
        .await;
    let begun = begun.unwrap();
    let run = begun.id().to_owned();
    driven(begun).await;
    let taken = durable_runs.acquire_run(&run).await.unwrap();
    driven(durable_runs.resume_run(&agent, taken)).await;
    let messages = read_all(store, owner, &session.id).await;
    let results = messages.iter().flat_map(|message| message.tool_results());
    let good: Vec<bool> = results.map(|result| !result.is_error).collect();
    assert_eq!(good, calls, "{messages:?}");
    let record = store.find_run(owner, &run).await.unwrap().unwrap();
    let outcome = if is_complete { "completed" } else { "failed" };
    assert_eq!(record.outcome.as_deref(), Some(outcome));
}

#[tokio::test]
async fn every_stored_deep_value_can_be_read_and_exported() {
    const RUNS: usize = 167;
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| Store::open(StoreOptions::sqlite(folder.path().join(name)));
    let store = Arc::new(open("one.db").await.unwrap());
    let owner = Principal::default();
    let mut values = values();
    let runs = (0..RUNS).map(|_| Deep::new(std::array::from_fn(|_| values.next().unwrap())));
    stream::iter(runs.enumerate())
        .for_each_concurrent(16, async |(number, deep)| {
            let session = SessionId(format!("session-{number}"));
            stored(&store, &owner, session, deep).await;
        })
        .await;

    let pieces: Vec<_> = store.export(&owner, None).collect().await;
    let text: String = pieces.into_iter().map(Result::unwrap).collect();
    let other = open("two.db").await.unwrap();
    let imported = other
        .import(&owner, text.as_bytes(), ImportIdPolicy::Keep)
        .await
        .unwrap();
    assert_eq!(imported.sessions.len(), RUNS);
    for session in &imported.sessions {
        let before = store.load_messages(&owner, session, 0).await.unwrap();
        assert_eq!(read_all(&other, &owner, session).await, before);
    }
    other.close().await;
    store.close().await;
}
