//! Real runs with scripted models and tools.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, Approver, ChatModel, ChatRequest, FinishReason, Media,
    ModelCapabilities, ModelError, ModelErrorKind, ModelEvent, ModelId, ModelStream, Opaque, Part,
    PartStart, ProviderState, ToolCall, ToolCallError, ToolCatalog, ToolContent, ToolDefinition,
    ToolHost, ToolHostChanges, ToolOrigin, ToolOutput, ToolProgress, Usage,
};
use switchboard_orchestration::{
    Agent, ApprovalPolicy, Run, RunEvent, RunEventKind, RunOptions,
    persistence::checkpoint::{Checkpoint, CheckpointError, CheckpointStore},
    strategy::{GatherFormat, Strategy},
};

/// A function that changes the agent of a run.
type Customizer = Box<dyn FnOnce(Agent) -> Agent>;

/// The response of a model to one request.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) pieces: Vec<Piece>,
    pub(super) end: End,
}

#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text(&'static str),
    Thought(&'static str),
    /// A call whose input arrives in pieces: tool, call id, and JSON text of the input.
    Call(&'static str, &'static str, &'static str),
    Block,
    /// A call whose input arrives in one piece: tool and call id.
    WholeCall(&'static str, &'static str),
}

#[derive(Debug, Clone)]
pub(super) enum End {
    Finishes(FinishReason),
    Breaks,
    FailsAtOnce,
    Fails(ModelErrorKind),
}

#[derive(Debug)]
pub(super) struct Scripted {
    id: ModelId,
    capabilities: ModelCapabilities,
    turns: Mutex<VecDeque<Turn>>,
}

impl Scripted {
    pub(super) fn new(name: &str, turns: Vec<Turn>) -> Self {
        Self {
            id: ModelId::new("test", name),
            capabilities: ModelCapabilities::default(),
            turns: Mutex::new(turns.into()),
        }
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

    async fn stream(&self, _: &ChatRequest) -> Result<ModelStream, ModelError> {
        let turn = self.turns.lock().unwrap().pop_front();
        let turn = turn.unwrap_or_else(|| Turn {
            pieces: vec![Piece::Text("That is all.")],
            end: End::Finishes(FinishReason::Stop),
        });
        if matches!(turn.end, End::FailsAtOnce) {
            let kind = ModelErrorKind::Overloaded { retry_after: None };
            return Err(ModelError::new("test", kind, "too much to do"));
        }
        if let End::Fails(kind) = turn.end {
            return Err(ModelError::new("test", kind, "too much to do"));
        }
        Ok(Box::pin(stream::iter(events(turn))))
    }
}

fn events(turn: Turn) -> Vec<Result<ModelEvent, ModelError>> {
    let mut events = Vec::new();
    for (index, piece) in (0..).zip(turn.pieces) {
        let started = |part| ModelEvent::PartStarted { index, part };
        match piece {
            Piece::Text(text) => {
                events.push(started(PartStart::Text));
                let half = text.len() / 2;
                for text in [&text[..half], &text[half..]] {
                    let text = text.to_owned();
                    events.push(ModelEvent::TextDelta { index, text });
                }
                events.push(ModelEvent::PartFinished { index });
            }
            Piece::Thought(text) => {
                let text = text.to_owned();
                events.push(started(PartStart::Reasoning));
                events.push(ModelEvent::ReasoningDelta { index, text });
            }
            Piece::Call(name, id, input) => {
                let (id, name) = (id.to_owned(), name.to_owned());
                events.push(started(PartStart::ToolUse { id, name }));
                let half = input.len() / 2;
                for json in [&input[..half], &input[half..]] {
                    let json = json.to_owned();
                    events.push(ModelEvent::ToolInputDelta { index, json });
                }
                // An incomplete input has no `PartFinished` event.
                if input.ends_with('}') {
                    events.push(ModelEvent::PartFinished { index });
                }
            }
            Piece::WholeCall(name, id) => {
                let input = switchboard_domain::ToolInput::parse_input(r#"{"n":1}"#);
                let call = switchboard_domain::ToolUse::new(id, name, input);
                let part = Box::new(Part::ToolUse(call));
                events.push(started(PartStart::Whole { part }));
            }
            Piece::Block => {
                let block = Opaque {
                    kind: "web_search_tool_result".to_owned(),
                    text: Some("three pages".to_owned()),
                    provider_state: ProviderState {
                        provider: "test".into(),
                        model: None,
                        data: json!({}),
                    },
                };
                let part = Box::new(Part::Opaque(block));
                events.push(started(PartStart::Whole { part }));
            }
        }
    }
    let usage = Usage {
        input_tokens: Some(100),
        output_tokens: Some(20),
        cache_read_tokens: Some(60),
        reasoning_tokens: Some(5),
        ..Usage::default()
    };
    events.push(ModelEvent::Usage {
        usage: Box::new(usage),
    });
    let mut events: Vec<_> = events.into_iter().map(Ok).collect();
    events.push(match turn.end {
        End::Finishes(reason) => Ok(ModelEvent::Finished { reason, raw: None }),
        End::Breaks | End::FailsAtOnce | End::Fails(_) => Err(ModelError::new(
            "test",
            ModelErrorKind::Interrupted,
            "the connection broke",
        )),
    });
    events
}

/// The tools: `look` is read-only, `change` is not, `fail` returns an error, and `draw` returns all
/// kinds of content.
#[derive(Debug)]
pub(super) struct Tools;

fn definition(name: &str, reads: bool) -> Arc<ToolDefinition> {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    });
    let mut tool = ToolDefinition::new(format!("desk__{name}"), format!("Does {name}."), schema);
    tool.annotations.read_only = Some(reads);
    tool.origin = Some(ToolOrigin {
        server: "desk".to_owned(),
        tool: name.to_owned(),
    });
    Arc::new(tool)
}

#[async_trait]
impl ToolHost for Tools {
    async fn list_tools(&self) -> ToolCatalog {
        ToolCatalog {
            tools: vec![
                definition("look", true),
                definition("change", false),
                definition("fail", true),
                definition("draw", true),
            ],
            problems: Vec::new(),
        }
    }

    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        call.progress.report_progress(ToolProgress {
            progress: 1.0,
            total: Some(2.0),
            message: Some("half".to_owned()),
        });
        match call.name.as_str() {
            "desk__fail" => Ok(ToolOutput {
                is_error: true,
                ..ToolOutput::text("there is no such thing")
            }),
            "desk__draw" => Ok(ToolOutput {
                content: vec![
                    ToolContent::text("a picture"),
                    ToolContent::Image(Media::from_base64("image/png", "AA==")),
                ],
                structured: Some(json!({"width": 1})),
                is_error: false,
            }),
            _ => Ok(ToolOutput::text(format!(
                "{} of {}",
                call.name,
                call.input.as_value()
            ))),
        }
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

/// Decisions of a person, used in turn and then again from the beginning: 0 denies, 1 allows with
/// another input, 2 means that no person can be asked, 3 postpones the decision. Any other number
/// allows the call.
#[derive(Debug)]
pub(super) struct People(pub(super) Mutex<Vec<u8>>);

#[async_trait]
impl Approver for People {
    async fn decide(&self, _: &ApprovalRequest) -> ApprovalDecision {
        let mut words = self.0.lock().unwrap();
        let word = words.first().copied();
        if let Some(word) = word {
            words.rotate_left(1);
            if word == 3 {
                // A decision is postponed only once. Otherwise, the run would never end.
                words.retain(|word| *word != 3);
            }
        }
        let scope = switchboard_domain::ApprovalScope::Once;
        match word {
            Some(0) => ApprovalDecision::Deny {
                reason: Some("not today".to_owned()),
                scope,
            },
            Some(1) => ApprovalDecision::Allow {
                input: json!({"n": 7}).as_object().cloned(),
                scope,
            },
            Some(2) => ApprovalDecision::NobodyThere,
            Some(3) => ApprovalDecision::Later,
            _ => ApprovalDecision::Allow { input: None, scope },
        }
    }
}

/// A store that discards the run. A parked run continues in the same process.
struct DiscardingStore;

#[async_trait]
impl CheckpointStore for DiscardingStore {
    async fn save_checkpoint(&self, _: &Run, _: Checkpoint) -> Result<(), CheckpointError> {
        Ok(())
    }
}

/// A script for a run.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) turns: Vec<Turn>,
    pub(super) has_second_model: bool,
    pub(super) formats: bool,
    pub(super) asks: bool,
    pub(super) people: Vec<u8>,
    pub(super) cancelled_at: Option<usize>,
    pub(super) max_steps: u32,
}

impl Script {
    pub(super) fn of(turns: Vec<Turn>) -> Self {
        Self {
            turns,
            has_second_model: false,
            formats: false,
            asks: false,
            people: Vec::new(),
            cancelled_at: None,
            max_steps: 8,
        }
    }

    /// Plays the run to its end, including all pauses.
    pub(super) fn played(&self) -> Vec<RunEvent> {
        self.played_with(Box::new(|agent| agent))
    }

    /// Plays the run like [`played`](Self::played), with a change to the agent.
    pub(super) fn played_with(&self, customize: Customizer) -> Vec<RunEvent> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(self.play(customize))
    }

    async fn play(&self, customize: Customizer) -> Vec<RunEvent> {
        let mut options = RunOptions::default();
        options.limits.max_steps = self.max_steps;
        options.tool_timeout = Some(Duration::from_secs(5));
        if self.asks {
            options.approval.policy = ApprovalPolicy::Ask;
        }
        if self.formats {
            options.strategy = Strategy::GatherFormat(GatherFormat::default());
        }
        let clock = Mutex::new(Timestamp::from_second(1_790_000_000).unwrap());
        let model = Scripted::new("one", self.turns.clone());
        let mut agent = Agent::new(Arc::new(model))
            .with_tools(Arc::new(Tools))
            .with_approver(Arc::new(People(Mutex::new(self.people.clone()))))
            .with_checkpoints(Arc::new(DiscardingStore))
            .with_clock(Arc::new(move || {
                let mut clock = clock.lock().unwrap();
                *clock += SignedDuration::from_millis(1);
                *clock
            }))
            .with_options(options);
        if self.has_second_model {
            agent = agent.with_fallback(Arc::new(Scripted::new("two", Vec::new())));
        }
        let agent = customize(agent);
        let mut all: Vec<RunEvent> = Vec::new();
        let mut stream = agent.ask("What of it?");
        loop {
            let cancel = stream.cancel_handle();
            while let Some(event) = stream.next().await {
                all.push(the_same_every_time(event));
                if self.cancelled_at == Some(all.len()) {
                    cancel.cancel_run();
                }
            }
            assert!(all.len() < 5_000, "it never ends");
            if matches!(
                all.last().map(|event| &event.kind),
                Some(RunEventKind::RunFinished { .. })
            ) {
                return all;
            }
            let run = stream.into_run().expect("the stream has ended");
            stream = agent.resume_run(run);
        }
    }
}

/// Replaces the parts of an event that differ between runs.
fn the_same_every_time(mut event: RunEvent) -> RunEvent {
    event.run_id = "run".into();
    match &mut event.kind {
        RunEventKind::ToolFinished { duration_ms, .. } => *duration_ms = 3,
        RunEventKind::RunFinished { report } => {
            report.run_id = "run".to_owned();
            for call in &mut report.tool_calls {
                call.duration_ms = 3;
            }
        }
        _ => {}
    }
    event
}

/// Returns the events of a run whose process ended after `at` events. After the restart, the model
/// repeats the response that was interrupted.
pub(super) fn crashed(events: &[RunEvent], at: usize) -> Vec<RunEvent> {
    let at = at.min(events.len() - 1);
    let before = &events[..at];
    let Some(RunEvent {
        kind: RunEventKind::RunStarted { model, .. },
        ..
    }) = events.first()
    else {
        panic!("a run begins with its start");
    };
    if at == 0 {
        return events.to_vec();
    }
    let open = before
        .iter()
        .rposition(|event| matches!(event.kind, RunEventKind::ModelCallStarted { .. }));
    let is_open = open.is_some_and(|open| {
        !before[open..].iter().any(|event| {
            matches!(
                event.kind,
                RunEventKind::ModelCallFinished { .. } | RunEventKind::ModelCallFailed { .. }
            )
        })
    });
    let from = match open {
        Some(open) if is_open => open,
        _ => at,
    };
    let again = RunEvent {
        kind: RunEventKind::RunStarted {
            model: model.clone(),
            resumed: true,
        },
        ..events[at].clone()
    };
    let all = before
        .iter()
        .cloned()
        .chain([again])
        .chain(events[from..].iter().cloned());
    (1..)
        .zip(all)
        .map(|(seq, event)| RunEvent { seq, ..event })
        .collect()
}
