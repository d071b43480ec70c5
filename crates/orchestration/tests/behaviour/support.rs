//! A model that answers from a list and a host whose tools are closures.

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, Approver, ChatModel, ChatRequest,
    FinishReason, Message, ModelCapabilities, ModelError, ModelErrorKind, ModelEvent, ModelId,
    ModelStream, PartStart, Role, ToolCall, ToolCallError, ToolCatalog, ToolDefinition, ToolHost,
    ToolHostChange, ToolHostChanges, ToolOrigin, ToolOutput, Usage,
};
use switchboard_orchestration::{
    Agent, ApprovalPolicy, Clock, Run, RunEvent, RunEventKind, RunOptions, RunReport, RunStream,
    ToolFailure,
    persistence::checkpoint::{Checkpoint, CheckpointError, CheckpointStore},
    policy::approval::ApprovalSettings,
    strategy::{GatherFormat, Strategy},
};

/// The response of a model to one request.
#[derive(Clone)]
pub(crate) enum Answer {
    Says(&'static str),
    /// A text, and tool calls (id, name, input).
    Calls(&'static str, Vec<(&'static str, &'static str, Value)>),
    /// A tool call with a raw input, for example half an object (id, name, input).
    RawCall(&'static str, &'static str, &'static str),
    Ends(&'static str, FinishReason),
    Fails(ModelErrorKind, &'static str),
    /// A text, and then a connection error.
    Breaks(&'static str),
    /// A text, and then no further event.
    Hangs(&'static str),
    Costs(&'static str, Usage),
    /// The given events.
    Streams(Vec<ModelEvent>),
    /// The given events, and then no further event.
    Waits(Vec<ModelEvent>),
}

pub(crate) fn calls(calls: &[(&'static str, &'static str, Value)]) -> Answer {
    Answer::Calls("", calls.to_vec())
}

/// A model that returns the answers of a list.
pub(crate) struct Scripted {
    id: ModelId,
    capabilities: ModelCapabilities,
    answers: Mutex<VecDeque<Answer>>,
    pub(crate) requests: Mutex<Vec<ChatRequest>>,
}

impl Scripted {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        Self::named("scripted", ModelCapabilities::default(), answers)
    }

    /// Returns a model that makes these tool calls and then answers "ok".
    pub(crate) fn calling(uses: &[(&'static str, &'static str, Value)]) -> Arc<Self> {
        Self::new([calls(uses), Answer::Says("ok")])
    }

    pub(crate) fn named(
        name: &str,
        capabilities: ModelCapabilities,
        answers: impl IntoIterator<Item = Answer>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: ModelId::new("test", name),
            capabilities,
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
        })
    }

    pub(crate) fn request(&self, n: usize) -> ChatRequest {
        self.requests.lock().unwrap()[n].clone()
    }

    pub(crate) fn asked(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

#[async_trait]
impl ChatModel for Scripted {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        self.requests.lock().unwrap().push(request.clone());
        let answer = self.answers.lock().unwrap().pop_front();
        let Some(answer) = answer else {
            panic!("the model was asked once more than the test expects: {request:#?}")
        };
        let hangs = matches!(answer, Answer::Hangs(_) | Answer::Waits(_));
        let events = stream::iter(answered(answer)?);
        if hangs {
            return Ok(Box::pin(events.chain(stream::pending())));
        }
        Ok(Box::pin(events))
    }
}

type Events = Vec<Result<ModelEvent, ModelError>>;

/// Returns the events of an answer.
pub(crate) fn answered(answer: Answer) -> Result<Events, ModelError> {
    Ok(match answer {
        Answer::Says(text) => said(text, FinishReason::Stop, None),
        Answer::Ends(text, finish) => said(text, finish, None),
        Answer::Costs(text, usage) => said(text, FinishReason::Stop, Some(usage)),
        Answer::Streams(events) | Answer::Waits(events) => events.into_iter().map(Ok).collect(),
        Answer::Calls(text, calls) => called(
            text,
            calls
                .into_iter()
                .map(|(id, name, input)| (id, name, input.to_string())),
        ),
        Answer::RawCall(id, name, input) => called("", [(id, name, input.to_owned())].into_iter()),
        Answer::Fails(kind, message) => {
            return Err(ModelError::new("test", kind, message));
        }
        Answer::Hangs(text) => {
            let mut events = said(text, FinishReason::Stop, None);
            events.pop();
            events
        }
        Answer::Breaks(text) => {
            let mut events = said(text, FinishReason::Stop, None);
            events.pop();
            events.push(Err(ModelError::new(
                "test",
                ModelErrorKind::Interrupted,
                "the connection broke",
            )));
            events
        }
    })
}

fn said(text: &str, reason: FinishReason, usage: Option<Usage>) -> Events {
    let mut events = Vec::new();
    // The text consists of two deltas.
    if !text.is_empty() {
        let middle = (0..=text.len() / 2)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        events.push(Ok(ModelEvent::PartStarted {
            index: 0,
            part: PartStart::Text,
        }));
        for piece in [&text[..middle], &text[middle..]] {
            events.push(Ok(ModelEvent::TextDelta {
                index: 0,
                text: piece.to_owned(),
            }));
        }
        events.push(Ok(ModelEvent::PartFinished { index: 0 }));
    }
    if let Some(usage) = usage {
        let usage = Box::new(usage);
        events.push(Ok(ModelEvent::Usage { usage }));
    }
    events.push(Ok(ModelEvent::Finished { reason, raw: None }));
    events
}

fn called<'a>(text: &str, calls: impl Iterator<Item = (&'a str, &'a str, String)>) -> Events {
    let mut events = said(text, FinishReason::Stop, None);
    events.pop();
    for (index, (id, name, input)) in (1u32..).zip(calls) {
        events.push(Ok(ModelEvent::PartStarted {
            index,
            part: PartStart::ToolUse {
                id: id.to_owned(),
                name: name.to_owned(),
            },
        }));
        events.push(Ok(ModelEvent::ToolInputDelta { index, json: input }));
        events.push(Ok(ModelEvent::PartFinished { index }));
    }
    events.push(Ok(ModelEvent::Finished {
        reason: FinishReason::ToolUse,
        raw: None,
    }));
    events
}

type Done = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolCallError>> + Send>>;
type Doing = Box<dyn Fn(ToolCall) -> Done + Send + Sync>;

/// A host whose tools are closures. It records every call.
#[derive(Default)]
pub(crate) struct Tools {
    definitions: Mutex<Vec<Arc<ToolDefinition>>>,
    doing: Mutex<BTreeMap<String, Arc<Doing>>>,
    pub(crate) called: Mutex<Vec<(String, Value)>>,
    told: Arc<Mutex<VecDeque<ToolHostChange>>>,
}

impl Tools {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with(
        self,
        definition: ToolDefinition,
        doing: impl Fn(ToolCall) -> Result<ToolOutput, ToolCallError> + Send + Sync + 'static,
    ) -> Self {
        self.with_async(definition, move |call| {
            let done = doing(call);
            async move { done }
        })
    }

    pub(crate) fn with_async<F>(
        self,
        definition: ToolDefinition,
        doing: impl Fn(ToolCall) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ToolOutput, ToolCallError>> + Send + 'static,
    {
        let doing: Doing = Box::new(move |call| Box::pin(doing(call)));
        self.doing
            .lock()
            .unwrap()
            .insert(definition.name.clone(), Arc::new(doing));
        self.definitions.lock().unwrap().push(Arc::new(definition));
        self
    }

    /// Removes a tool.
    pub(crate) fn remove(&self, name: &str) {
        let mut definitions = self.definitions.lock().unwrap();
        definitions.retain(|tool| tool.name != name);
    }

    /// Adds or replaces a tool.
    pub(crate) fn define(&self, definition: ToolDefinition) {
        self.remove(&definition.name);
        self.definitions.lock().unwrap().push(Arc::new(definition));
    }

    /// Reports a change to the run.
    pub(crate) fn tell(&self, change: ToolHostChange) {
        self.told.lock().unwrap().push_back(change);
    }

    pub(crate) fn called(&self) -> Vec<String> {
        let called = self.called.lock().unwrap();
        called.iter().map(|(name, _)| name.clone()).collect()
    }
}

#[async_trait]
impl ToolHost for Tools {
    async fn list_tools(&self) -> ToolCatalog {
        ToolCatalog {
            tools: self.definitions.lock().unwrap().clone(),
            problems: Vec::new(),
        }
    }

    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        self.called
            .lock()
            .unwrap()
            .push((call.name.clone(), call.input.as_value().clone()));
        let doing = self.doing.lock().unwrap().get(&call.name).cloned();
        match doing {
            Some(doing) => doing(call).await,
            None => Err(ToolCallError::UnknownTool {
                name: call.name,
                available: Vec::new(),
            }),
        }
    }

    fn watch_changes(&self) -> ToolHostChanges {
        let told = Arc::clone(&self.told);
        // The driver polls the changes and never waits for them.
        Box::pin(stream::poll_fn(move |_| {
            let change = told.lock().unwrap().pop_front();
            change.map_or(Poll::Pending, |change| Poll::Ready(Some(change)))
        }))
    }
}

/// Returns the definition of a tool of server `srv` with a number `n` as its input.
pub(crate) fn tool(name: &str) -> ToolDefinition {
    let mut tool = ToolDefinition::new(
        format!("srv__{name}"),
        format!("Does {name}."),
        json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
            "additionalProperties": false,
        }),
    );
    tool.origin = Some(ToolOrigin {
        server: "srv".into(),
        tool: name.into(),
    });
    tool
}

pub(crate) fn reading(name: &str) -> ToolDefinition {
    let mut tool = tool(name);
    tool.annotations.read_only = Some(true);
    tool
}

/// Returns the same tool with another server.
pub(crate) fn elsewhere(mut tool: ToolDefinition) -> ToolDefinition {
    if let Some(origin) = &mut tool.origin {
        origin.server = "lib".into();
    }
    tool
}

/// Returns the input as the result.
#[allow(clippy::unnecessary_wraps, clippy::needless_pass_by_value)] // It is one of many that may fail and keep it.
pub(crate) fn echo(call: ToolCall) -> Result<ToolOutput, ToolCallError> {
    Ok(ToolOutput::text(format!(
        "{} {}",
        call.name,
        call.input.as_value()
    )))
}

/// Runs to the end. Returns all events and the run.
pub(crate) async fn played(mut stream: RunStream) -> (Vec<RunEvent>, Run) {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    (events, stream.into_run().expect("the stream has ended"))
}

pub(crate) async fn ask(agent: &Agent, question: &str) -> (Vec<RunEvent>, RunReport) {
    let (events, run) = played(agent.ask(question)).await;
    assert_whole(run.messages());
    assert_grammar(&events);
    (events, run.build_report().expect("the run is over"))
}

/// Asserts that every tool use has exactly one result, in the next message and in call order.
pub(crate) fn assert_whole(messages: &[Arc<Message>]) {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let results: Vec<_> = message
            .tool_results()
            .map(|r| r.tool_use_id.as_str())
            .collect();
        assert_eq!(open, results);
        open = message.tool_uses().map(|call| call.id.as_str()).collect();
    }
    assert!(open.is_empty(), "{open:?} have no results");
}

/// Asserts that events are numbered without gaps, that the first and last events are right, and
/// that every planned call ends once.
pub(crate) fn assert_grammar(events: &[RunEvent]) {
    let numbers: Vec<_> = events.iter().map(|event| event.seq).collect();
    let first = numbers[0];
    assert!(
        numbers
            .iter()
            .zip(first..)
            .all(|(one, other)| *one == other),
        "{numbers:?}"
    );
    assert!(matches!(events[0].kind, RunEventKind::RunStarted { .. }));
    let last = &events.last().unwrap().kind;
    assert!(
        matches!(
            last,
            RunEventKind::RunFinished { .. } | RunEventKind::RunParked { .. }
        ),
        "{last:?}"
    );
    let mut open: Vec<&str> = Vec::new();
    let mut started: Vec<&str> = Vec::new();
    for event in events {
        match &event.kind {
            RunEventKind::ToolPlanned { id, .. } => {
                assert!(!open.contains(&id.as_str()), "{id} is planned twice");
                open.push(id);
            }
            RunEventKind::ToolStarted { id } => {
                assert!(open.contains(&id.as_str()), "{id} was not planned");
                assert!(!started.contains(&id.as_str()), "{id} started twice");
                started.push(id);
            }
            RunEventKind::ToolFinished { id, .. } => {
                let at = open.iter().position(|open| open == id);
                open.remove(at.unwrap_or_else(|| panic!("{id} ended twice or was never planned")));
            }
            _ => {}
        }
    }
    if matches!(last, RunEventKind::RunFinished { .. }) {
        assert!(open.is_empty(), "{open:?} never ended");
    }
}

pub(crate) fn streamed(events: &[RunEvent]) -> String {
    events
        .iter()
        .filter_map(|event| match &event.kind {
            RunEventKind::TextDelta { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// Returns the texts of the newest tool results in request `n`.
pub(crate) fn results(model: &Scripted, n: usize) -> Vec<String> {
    let request = model.request(n);
    let message = request.messages.iter().rev().find(|m| m.role == Role::Tool);
    message
        .map(|message| {
            message
                .tool_results()
                .map(switchboard_domain::ToolResult::as_text)
                .collect()
        })
        .unwrap_or_default()
}

/// Returns the values that `pick` finds in the events.
pub(crate) fn picked<'e, T>(
    events: &'e [RunEvent],
    pick: impl FnMut(&'e RunEventKind) -> Option<T>,
) -> Vec<T> {
    events
        .iter()
        .map(|event| &event.kind)
        .filter_map(pick)
        .collect()
}

pub(crate) fn has(events: &[RunEvent], is_wanted: impl Fn(&RunEventKind) -> bool) -> bool {
    events.iter().any(|event| is_wanted(&event.kind))
}

pub(crate) fn failures(report: &RunReport) -> Vec<Option<ToolFailure>> {
    report.tool_calls.iter().map(|call| call.failure).collect()
}

/// Returns tools of server `srv` that return their input.
pub(crate) fn echoing(names: &[&str]) -> Arc<Tools> {
    let tools = names
        .iter()
        .fold(Tools::new(), |tools, name| tools.with(tool(name), echo));
    Arc::new(tools)
}

pub(crate) fn agent_with(
    model: &Arc<impl ChatModel + 'static>,
    tools: &Arc<impl ToolHost + 'static>,
    options: RunOptions,
) -> Agent {
    Agent::new(model.clone())
        .with_tools(tools.clone())
        .with_options(options)
}

/// Returns options with which every call needs an approval.
pub(crate) fn asking() -> RunOptions {
    RunOptions {
        approval: ApprovalPolicy::Ask.into(),
        ..RunOptions::default()
    }
}

/// Returns options with which every call needs an approval. A request expires after a minute.
pub(crate) fn expiring_options() -> RunOptions {
    RunOptions {
        approval: ApprovalSettings {
            policy: ApprovalPolicy::Ask,
            expire_after: Some(Duration::from_mins(1)),
            ..ApprovalSettings::default()
        },
        ..RunOptions::default()
    }
}

pub(crate) fn gather_format() -> RunOptions {
    RunOptions {
        strategy: Strategy::GatherFormat(GatherFormat::default()),
        ..RunOptions::default()
    }
}

pub(crate) fn allow(scope: ApprovalScope) -> ApprovalDecision {
    ApprovalDecision::Allow { input: None, scope }
}

pub(crate) fn allow_once() -> ApprovalDecision {
    allow(ApprovalScope::Once)
}

pub(crate) fn deny(reason: &str) -> ApprovalDecision {
    ApprovalDecision::Deny {
        reason: Some(reason.to_owned()),
        scope: ApprovalScope::Once,
    }
}

/// An approver with a list of decisions, or with the same decision each time.
pub(crate) struct Person {
    decisions: Mutex<VecDeque<ApprovalDecision>>,
    repeats: bool,
    asked: Mutex<Vec<ApprovalRequest>>,
}

impl Person {
    pub(crate) fn who_says(decisions: impl IntoIterator<Item = ApprovalDecision>) -> Arc<Self> {
        Arc::new(Self {
            decisions: Mutex::new(decisions.into_iter().collect()),
            repeats: false,
            asked: Mutex::default(),
        })
    }

    pub(crate) fn always(decision: ApprovalDecision) -> Arc<Self> {
        Arc::new(Self {
            decisions: Mutex::new([decision].into()),
            repeats: true,
            asked: Mutex::default(),
        })
    }

    pub(crate) fn asked(&self) -> Vec<ApprovalRequest> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Approver for Person {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        self.asked.lock().unwrap().push(request.clone());
        let mut decisions = self.decisions.lock().unwrap();
        let decision = if self.repeats {
            decisions.front().cloned()
        } else {
            decisions.pop_front()
        };
        decision.expect("the person is asked once more than the test expects")
    }
}

/// Stores the last checkpoint and records all checkpoints. Can fail at one checkpoint.
#[derive(Default)]
pub(crate) struct Shelf {
    stored: Mutex<Option<String>>,
    points: Mutex<Vec<Checkpoint>>,
    fails_at: Option<Checkpoint>,
    /// If set, only this checkpoint is stored.
    keeps: Option<Checkpoint>,
}

impl Shelf {
    pub(crate) fn keeping(point: Checkpoint) -> Arc<Self> {
        Arc::new(Self {
            keeps: Some(point),
            ..Self::default()
        })
    }

    pub(crate) fn failing_at(point: Checkpoint) -> Arc<Self> {
        Arc::new(Self {
            fails_at: Some(point),
            ..Self::default()
        })
    }

    pub(crate) fn run(&self) -> Run {
        let stored = self.stored.lock().unwrap();
        serde_json::from_str(stored.as_ref().unwrap()).unwrap()
    }

    pub(crate) fn times(&self, point: Checkpoint) -> usize {
        let points = self.points.lock().unwrap();
        points.iter().filter(|reached| **reached == point).count()
    }
}

#[async_trait]
impl CheckpointStore for Shelf {
    async fn save_checkpoint(&self, run: &Run, point: Checkpoint) -> Result<(), CheckpointError> {
        self.points.lock().unwrap().push(point);
        if self.fails_at == Some(point) {
            return Err(CheckpointError {
                message: "the disk is full".into(),
                source: None,
            });
        }
        if self.keeps.is_none_or(|keeps| keeps == point) {
            *self.stored.lock().unwrap() = Some(serde_json::to_string(run).unwrap());
        }
        Ok(())
    }
}

/// A clock that a test sets.
#[derive(Clone, Default)]
pub(crate) struct TestClock(Arc<AtomicI64>);

impl TestClock {
    pub(crate) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> Clock {
        let seconds = Arc::clone(&self.0);
        Arc::new(move || {
            let seconds = SignedDuration::from_secs(seconds.load(Ordering::SeqCst));
            Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1_000) + seconds
        })
    }
}

/// Returns a clock that follows the clock of tokio, which tests pause.
pub(crate) fn tokio_clock() -> Clock {
    let began = tokio::time::Instant::now();
    Arc::new(move || Timestamp::UNIX_EPOCH + SignedDuration::try_from(began.elapsed()).unwrap())
}
