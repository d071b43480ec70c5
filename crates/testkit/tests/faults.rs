//! Faults of model servers on loopback, as one table: six faults, after 0, 1 and 3 chunks of an
//! answer, on five wires, once within a text and once within tool calls.
//!
//! If no text of an answer was shown, the request is repeated, and then another model is asked. If
//! a part of its text was shown, the run fails. The table in `docs/providers.md` describes the same
//! rules.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "functions that several tests share"
)]

mod wires;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, future::join_all, stream};
use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel, ToolCall, ToolCallError, ToolCatalog, ToolDefinition, ToolHost, ToolHostChanges,
    ToolOutput,
};
use switchboard_orchestration::{Agent, Outcome, RunErrorKind, RunEventKind, RunReport};
use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Gate, Request, Say},
    fixtures,
};

use crate::wires::{Connection, Wire};

/// Time-out for a silent server in the cases with a stall.
const SILENCE: Duration = Duration::from_millis(500);

/// Maximum time of one case.
const LIMIT: Duration = Duration::from_mins(1);

const ATTEMPTS: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The server returns HTTP 429 (rate limit), or an equivalent error within the answer.
    Status429,
    /// The server returns HTTP 529 (overloaded), or an equivalent error within the answer.
    Status529,
    /// The server aborts the connection.
    Disconnect,
    /// The body ends without an error, but before the end of the answer.
    Truncate,
    /// A frame is not valid.
    Malformed,
    /// The server sends nothing more and keeps the connection open.
    Stall,
}

const FAULTS: [Fault; 6] = [
    Fault::Status429,
    Fault::Status529,
    Fault::Disconnect,
    Fault::Truncate,
    Fault::Malformed,
    Fault::Stall,
];

/// The content of an answer's chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Text,
    Calls,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    wire: Wire,
    fault: Fault,
    /// Number of chunks before the fault.
    after: usize,
    content: Content,
}

impl Case {
    fn all(wire: Wire) -> impl Iterator<Item = Self> {
        let contents = [Content::Text, Content::Calls];
        FAULTS.into_iter().flat_map(move |fault| {
            [0, 1, 3].into_iter().flat_map(move |after| {
                contents.into_iter().map(move |content| Self {
                    wire,
                    fault,
                    after,
                    content,
                })
            })
        })
    }

    /// Returns whether text of the answer was shown before the fault.
    fn is_shown(self) -> bool {
        self.content == Content::Text && self.after > 0
    }

    /// Returns the text that was shown before the fault.
    fn shown(self) -> String {
        match self.content {
            Content::Text => TEXT[..self.after].concat(),
            Content::Calls => String::new(),
        }
    }

    /// Returns the answer with its fault.
    fn answer(self) -> Answer {
        let status = match self.fault {
            Fault::Status429 => 429,
            Fault::Status529 => 529,
            _ => 200,
        };
        if self.after == 0 && status != 200 {
            return Answer::json(status, &json!({"error": {"message": "busy"}}));
        }
        let media_type = match self.wire {
            Wire::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        };
        let mut answer = Answer::new(200).header("content-type", media_type);
        for chunk in self.wire.chunks(self.content, self.after) {
            answer = answer.piece(chunk);
        }
        match self.fault {
            Fault::Status429 | Fault::Status529 => answer.piece(self.wire.in_band(status)),
            Fault::Disconnect => answer.break_off(),
            Fault::Truncate => answer,
            Fault::Malformed => answer.piece(self.wire.malformed()),
            Fault::Stall => answer.gate(&Gate::new()),
        }
    }
}

const TEXT: [&str; 3] = ["One, ", "two, ", "three, "];

/// Pieces of one incomplete input.
const INPUT: [&str; 3] = [r#"{"city":"#, r#" "Ham"#, "bu"];

fn sse(event: &Value) -> String {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n")
}

fn data(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

impl Wire {
    /// Returns a complete answer with this text.
    fn says(self, text: &str) -> Answer {
        let said = [Say::text(text)];
        match self {
            Self::Anthropic => Answer::anthropic(said),
            Self::Chat => Answer::openai_chat(said),
            Self::Responses => Answer::openai_responses(said),
            Self::Gemini => Answer::gemini(said),
            Self::Ollama => Answer::ollama(said),
        }
    }

    /// Returns the first chunks of an answer. The first chunk includes the frames that the wire
    /// sends before it. Gemini and Ollama send whole calls, so each chunk is one call.
    fn chunks(self, content: Content, count: usize) -> Vec<String> {
        let mut chunks: Vec<String> = (0..count).map(|at| self.chunk(content, at)).collect();
        if let Some(first) = chunks.first_mut() {
            first.insert_str(0, &self.prelude(content));
        }
        chunks
    }

    fn prelude(self, content: Content) -> String {
        let events = match self {
            Self::Anthropic => {
                let block = match content {
                    Content::Text => json!({"type": "text", "text": ""}),
                    Content::Calls => {
                        json!({"type": "tool_use", "id": "call_0", "name": "get_weather", "input": {}})
                    }
                };
                [
                    json!({"type": "message_start", "message": {
                        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                        "content": [], "usage": {"input_tokens": 20, "output_tokens": 1}}}),
                    json!({"type": "content_block_start", "index": 0, "content_block": block}),
                ]
            }
            Self::Responses => {
                let item = match content {
                    Content::Text => json!({"id": "item_0", "type": "message",
                        "role": "assistant", "status": "in_progress", "content": []}),
                    Content::Calls => json!({"id": "item_0", "type": "function_call",
                        "status": "in_progress", "call_id": "call_0", "name": "get_weather",
                        "arguments": ""}),
                };
                [
                    json!({"type": "response.created", "response": {"id": "resp_1",
                        "object": "response", "status": "in_progress", "model": "m", "output": []}}),
                    json!({"type": "response.output_item.added", "output_index": 0,
                        "item_id": "item_0", "item": item}),
                ]
            }
            _ => return String::new(),
        };
        events.iter().map(sse).collect()
    }

    fn chunk(self, content: Content, at: usize) -> String {
        let whole_call =
            |id: &str| json!({"id": id, "name": "get_weather", "args": {"city": "Bonn"}});
        let id = format!("call_{at}");
        match (self, content) {
            (Self::Anthropic, _) => {
                let delta = match content {
                    Content::Text => json!({"type": "text_delta", "text": TEXT[at]}),
                    Content::Calls => {
                        json!({"type": "input_json_delta", "partial_json": INPUT[at]})
                    }
                };
                sse(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
            }
            (Self::Chat, _) => {
                let delta = match content {
                    Content::Text => json!({"content": TEXT[at]}),
                    Content::Calls if at == 0 => json!({"tool_calls": [{"index": 0, "id": "call_0",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": INPUT[at]}}]}),
                    Content::Calls => json!({"tool_calls": [{"index": 0,
                        "function": {"arguments": INPUT[at]}}]}),
                };
                data(
                    &json!({"id": "c", "object": "chat.completion.chunk", "model": "m",
                    "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}),
                )
            }
            (Self::Responses, _) => {
                let (kind, delta) = match content {
                    Content::Text => ("response.output_text.delta", TEXT[at]),
                    Content::Calls => ("response.function_call_arguments.delta", INPUT[at]),
                };
                sse(&json!({"type": kind, "output_index": 0, "content_index": 0,
                    "item_id": "item_0", "delta": delta}))
            }
            (Self::Gemini, _) => {
                let part = match content {
                    Content::Text => json!({"text": TEXT[at]}),
                    Content::Calls => json!({"functionCall": whole_call(&id)}),
                };
                data(&json!({"candidates": [{"index": 0,
                    "content": {"role": "model", "parts": [part]}}]}))
            }
            (Self::Ollama, _) => {
                let message = match content {
                    Content::Text => json!({"role": "assistant", "content": TEXT[at]}),
                    Content::Calls => json!({"role": "assistant", "content": "",
                        "tool_calls": [{"id": id, "function":
                            {"name": "get_weather", "arguments": {"city": "Bonn"}}}]}),
                };
                let line = json!({"model": "m", "message": message, "done": false});
                format!("{line}\n")
            }
        }
    }

    /// Returns an error within an answer that began with status 200.
    fn in_band(self, status: u16) -> String {
        let is_limit = status == 429;
        match self {
            Self::Anthropic => {
                let kind = if is_limit {
                    "rate_limit_error"
                } else {
                    "overloaded_error"
                };
                let error = json!({"type": kind, "message": "busy"});
                sse(&json!({"type": "error", "error": error}))
            }
            Self::Chat => data(&json!({"error": {"message": "busy", "code": status}})),
            Self::Responses => {
                let code = if is_limit {
                    "rate_limit_exceeded"
                } else {
                    "server_error"
                };
                sse(&json!({"type": "error", "code": code, "message": "busy", "param": null}))
            }
            Self::Gemini => {
                let word = if is_limit {
                    "RESOURCE_EXHAUSTED"
                } else {
                    "UNAVAILABLE"
                };
                data(&json!({"error": {"code": status, "message": "busy", "status": word}}))
            }
            Self::Ollama => "{\"error\":\"server busy, please try again\"}\n".to_owned(),
        }
    }

    fn malformed(self) -> &'static str {
        match self {
            Self::Anthropic => "event: content_block_delta\ndata: {\"type\": \"content_bl\n\n",
            Self::Responses => "event: response.created\ndata: {\"type\": \"respo\n\n",
            Self::Chat | Self::Gemini => "data: {\"choices\": [{\"ind\n\n",
            Self::Ollama => "{\"model\": \"m\", \"mess\n",
        }
    }
}

/// A host with one tool, which counts its calls.
#[derive(Default)]
struct Host {
    calls: AtomicUsize,
}

#[async_trait]
impl ToolHost for Host {
    async fn list_tools(&self) -> ToolCatalog {
        let tools: [ToolDefinition; 1] = [fixtures::weather()];
        ToolCatalog {
            tools: tools.into_iter().map(Into::into).collect(),
            problems: Vec::new(),
        }
    }

    async fn call_tool(&self, _: ToolCall) -> Result<ToolOutput, ToolCallError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(ToolOutput::default())
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

/// The events and the report of a finished run.
struct Ended {
    events: Vec<RunEventKind>,
    report: RunReport,
}

impl Ended {
    fn count(&self, of: impl Fn(&RunEventKind) -> bool) -> usize {
        self.events.iter().filter(|event| of(event)).count()
    }

    fn retries(&self) -> usize {
        self.count(|event| matches!(event, RunEventKind::ModelCallRetried { .. }))
    }

    fn streamed(&self) -> String {
        let text = |event: &RunEventKind| match event {
            RunEventKind::TextDelta { text } => Some(text.clone()),
            _ => None,
        };
        self.events.iter().filter_map(text).collect()
    }
}

/// The models of one wire, and their fake servers.
struct Bench {
    fake: FakeModel,
    /// The first model. `hasty` is the same model with short time-outs, for the cases with a stall.
    model: Arc<dyn ChatModel>,
    hasty: Arc<dyn ChatModel>,
    other_fake: FakeModel,
    other: Arc<dyn ChatModel>,
}

impl Bench {
    /// Starts the servers. A question names a case, and the server answers it with the fault of
    /// this case: only the first time if the question contains `once`, otherwise always.
    async fn new(wire: Wire, cases: &[Case]) -> Self {
        let fake = FakeModel::start().await.expect("a server");
        let answers: Vec<Answer> = cases.iter().map(|case| case.answer()).collect();
        let asked = Mutex::new(BTreeSet::new());
        fake.otherwise(move |_, request| {
            let body = request.json().to_string();
            let number = (0..answers.len()).find(|number| body.contains(&named(*number)));
            let number = number.expect("a case");
            let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
            if body.contains("once") && !asked.insert(number) {
                return wire.says("Second.");
            }
            answers[number].clone()
        });
        let other_fake = FakeModel::start().await.expect("a server");
        other_fake.otherwise(move |_, _| wire.says("From the other."));
        let model = |fake: &FakeModel, name: &str, silence| -> Arc<dyn ChatModel> {
            let connection = Connection::new(wire, &fake.base_url(), transport(silence));
            connection.with_model(name).chat_model().into()
        };
        Self {
            model: model(&fake, "first", LIMIT),
            hasty: model(&fake, "first", SILENCE),
            fake,
            other: model(&other_fake, "second", LIMIT),
            other_fake,
        }
    }

    fn agent(&self, case: Case) -> Agent {
        let model = match case.fault {
            Fault::Stall => &self.hasty,
            _ => &self.model,
        };
        Agent::new(Arc::clone(model))
    }
}

/// Returns the text with which a question names a case.
fn named(number: usize) -> String {
    format!("case-{number}-")
}

/// Returns the number of requests that contain the question.
fn requests(fake: &FakeModel, question: &str) -> usize {
    let holds = |request: &Request| request.json().to_string().contains(question);
    fake.requests()
        .iter()
        .filter(|request| holds(request))
        .count()
}

fn transport(silence: Duration) -> TransportConfig {
    TransportConfig {
        first_byte_timeout: silence,
        idle_timeout: silence,
        retry: RetryPolicy {
            max_attempts: ATTEMPTS,
            min_delay: Duration::from_millis(1),
            max_delay: Duration::from_millis(1),
            ..RetryPolicy::default()
        },
        ..TransportConfig::default()
    }
}

async fn run(agent: Agent, question: &str, case: Case) -> Ended {
    let host = Arc::new(Host::default());
    let agent = agent.with_tools(Arc::clone(&host) as Arc<dyn ToolHost>);
    let events = agent.ask(question).map(|event| event.kind);
    let events: Vec<RunEventKind> = tokio::time::timeout(LIMIT, events.collect())
        .await
        .unwrap_or_else(|_| panic!("{case:?} hangs"));
    let Some(RunEventKind::RunFinished { report }) = events.last() else {
        panic!("{case:?} has no end: {events:?}");
    };
    let report = (**report).clone();
    let calls = host.calls.load(Ordering::Relaxed);
    assert_eq!(calls, 0, "{case:?}: a void call ran");
    Ended { events, report }
}

/// Checks a run whose answer was shown in part: it fails, and no further request is sent.
fn check_failed(case: Case, ended: &Ended, requests: usize) {
    let report = &ended.report;
    assert_eq!(report.outcome, Outcome::Failed, "{case:?}: {report:?}");
    assert_eq!(report.answer, case.shown(), "{case:?}");
    assert_eq!(ended.streamed(), case.shown(), "{case:?}");
    let error = report.error.as_ref().expect("an error");
    assert!(
        matches!(error.kind, RunErrorKind::Model(_)),
        "{case:?}: {error:?}"
    );
    assert_eq!((requests, ended.retries()), (1, 0), "{case:?}");
}

/// Checks a run whose first answer has the fault and whose later answers have none.
async fn check_retry(bench: &Bench, number: usize, case: Case) {
    let question = format!("once {}", named(number));
    let ended = run(bench.agent(case), &question, case).await;
    let requests = requests(&bench.fake, &question);
    if case.is_shown() {
        return check_failed(case, &ended, requests);
    }
    let report = &ended.report;
    assert_eq!(report.outcome, Outcome::Completed, "{case:?}: {report:?}");
    assert_eq!(report.answer, "Second.", "{case:?}");
    assert_eq!(ended.streamed(), "Second.", "{case:?}");
    assert_eq!((report.steps, report.tool_calls.len()), (1, 0), "{case:?}");
    assert_eq!(ended.retries() + 1, requests, "{case:?}");
    // A stall has a short time-out, so a busy machine may need another attempt.
    let is_expected = requests == 2 || (case.fault == Fault::Stall && requests == 3);
    assert!(is_expected, "{case:?}: {requests} requests");
}

/// Checks a run whose first model always fails and whose second model answers.
async fn check_fallback(bench: &Bench, number: usize, case: Case) {
    let question = format!("always {}", named(number));
    let agent = bench.agent(case).with_fallback(Arc::clone(&bench.other));
    let ended = run(agent, &question, case).await;
    let first = requests(&bench.fake, &question);
    let second = requests(&bench.other_fake, &question);
    if case.is_shown() {
        assert_eq!(second, 0, "{case:?}");
        return check_failed(case, &ended, first);
    }
    let report = &ended.report;
    assert_eq!(report.outcome, Outcome::Completed, "{case:?}: {report:?}");
    assert_eq!(report.answer, "From the other.", "{case:?}");
    assert_eq!(report.tool_calls.len(), 0, "{case:?}");
    assert_eq!((first, ended.retries()), (3, 2), "{case:?}");
    assert_eq!(second, 1, "{case:?}");
    let switched = ended.count(|event| matches!(event, RunEventKind::ModelSwitched { .. }));
    let failed = ended.count(|event| matches!(event, RunEventKind::ModelCallFailed { .. }));
    assert_eq!((failed, switched), (1, 1), "{case:?}");
}

async fn check(wire: Wire) {
    let cases: Vec<Case> = Case::all(wire).collect();
    assert_eq!(cases.len(), 36);
    let bench = Bench::new(wire, &cases).await;
    let numbered = || cases.iter().copied().enumerate();
    join_all(numbered().map(|(number, case)| check_retry(&bench, number, case))).await;
    join_all(numbered().map(|(number, case)| check_fallback(&bench, number, case))).await;
}

#[tokio::test]
async fn every_fault_on_anthropics_wire_is_retried_or_falls_back_or_fails() {
    check(Wire::Anthropic).await;
}

#[tokio::test]
async fn every_fault_on_openais_chat_wire_is_retried_or_falls_back_or_fails() {
    check(Wire::Chat).await;
}

#[tokio::test]
async fn every_fault_on_openais_responses_wire_is_retried_or_falls_back_or_fails() {
    check(Wire::Responses).await;
}

#[tokio::test]
async fn every_fault_on_geminis_wire_is_retried_or_falls_back_or_fails() {
    check(Wire::Gemini).await;
}

#[tokio::test]
async fn every_fault_on_ollamas_wire_is_retried_or_falls_back_or_fails() {
    check(Wire::Ollama).await;
}
