//! Faults of model servers on loopback, as one table: six faults, after 0, 1 and 3 chunks of an answer,
//! on five wires, once in the middle of a text and once in the middle of tool calls.
//!
//! An answer of which nothing was shown is asked for again, and then another model is asked. An answer
//! whose text was shown fails. The table in `docs/providers.md` describes the same rules.

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

/// How long a server of a stalling case may be silent.
const SILENCE: Duration = Duration::from_millis(500);

/// How long one case may take. A case that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(1);

const ATTEMPTS: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The server limits the rate: HTTP 429, or an error within the answer.
    Status429,
    /// The server is overloaded: HTTP 529, or an error within the answer.
    Status529,
    /// The connection breaks.
    Disconnect,
    /// The body ends regularly before the answer does.
    Truncate,
    /// A frame cannot be read.
    Malformed,
    /// Nothing comes any more, and the connection stays open.
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

/// What the chunks of an answer are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Text,
    Calls,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    wire: Wire,
    fault: Fault,
    /// Chunks before the fault.
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

    /// Whether text of the answer was shown before the fault.
    fn is_shown(self) -> bool {
        self.content == Content::Text && self.after > 0
    }

    /// What a reader sees of the answer before the fault.
    fn shown(self) -> String {
        match self.content {
            Content::Text => TEXT[..self.after].concat(),
            Content::Calls => String::new(),
        }
    }

    /// The answer with its fault.
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

/// Pieces of one input, which is not complete.
const INPUT: [&str; 3] = [r#"{"city":"#, r#" "Ham"#, "bu"];

fn sse(event: &Value) -> String {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n")
}

fn data(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

impl Wire {
    /// A whole answer.
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

    /// The first chunks of an answer. What the wire sends before the first one is part of it. Gemini and
    /// Ollama send calls whole: each chunk is one call.
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

    /// An error within an answer that began with status 200.
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

/// A host that counts the calls of its one tool.
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

/// A run that is over.
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

/// The models of one wire, and their servers.
struct Bench {
    fake: FakeModel,
    /// The model that is asked first, and the same with the time-outs of the stalling cases.
    model: Arc<dyn ChatModel>,
    hasty: Arc<dyn ChatModel>,
    other_fake: FakeModel,
    other: Arc<dyn ChatModel>,
}

impl Bench {
    /// The server answers a question that names a case with its fault: the first time if it says
    /// `once`, else always.
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

/// How a question names a case.
fn named(number: usize) -> String {
    format!("case-{number}-")
}

/// How many of the requests hold this question.
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

/// The answer was shown in part: its run fails, and nobody is asked again.
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

/// One bad answer, then good ones.
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
    // With its short time-outs a busy machine may need another attempt.
    let is_expected = requests == 2 || (case.fault == Fault::Stall && requests == 3);
    assert!(is_expected, "{case:?}: {requests} requests");
}

/// Bad answers only, and another model.
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
