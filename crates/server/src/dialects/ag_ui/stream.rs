//! A run as AG-UI events, protocol version 1.0.
//!
//! The events are those of the npm package `@ag-ui/core` 1.0.0 (`src/generated/types.ts`) and their
//! order is what `verifyEvents` of `@ag-ui/client` 1.0.0 (`src/verify/verify.ts`) accepts.
//!
//! A call that needs approval ends the response with an interrupt. The decision comes in `resume`
//! of the next run of the thread. A call of a client tool ends the response with success and its id
//! in `pendingToolCallIds`. Its result comes as a message of the next run. An event without an
//! equivalent is `CUSTOM` with the name `switchboard.EVENT` and the event as in `GET
//! /runs/{id}/events`.

use serde::Serialize;
use serde_json::{Value, json};
use switchboard_domain::{ModelId, Usage};
use switchboard_orchestration::{
    AnswerItem, Outcome as RunOutcome, RunError, RunEvent, RunEventKind, RunReport, ToolFailure,
};

use super::super::{
    encoder::EventEncoder,
    response::failure::{self, Failure},
    response::frames::SseFrames,
    sequencer::{self, Call, CallOutcome, ClientEvent, Part, PartKind},
    tools::tool_output,
};

/// The version of the protocol.
const PROTOCOL: &str = "1.0";

/// An encoder of AG-UI events.
#[derive(Debug, Default)]
pub(crate) struct AgUiStream {
    thread: String,
    /// The session of the thread.
    session: String,
    /// The client's id of this run.
    client_run: String,
    run: String,
    /// The number of the current event.
    seq: u64,
    /// The time of the current event in milliseconds since 1970.
    time: i64,
    /// The message that contains the calls of the step.
    message: Option<String>,
    step: u32,
    /// The usage of the model calls of this response.
    usage: Vec<(ModelId, Usage)>,
    called_model: Option<ModelId>,
    is_closed: bool,
}

impl AgUiStream {
    /// `run` is the client's id of the run.
    pub(crate) fn new(
        thread: impl Into<String>,
        run: impl Into<String>,
        session: impl Into<String>,
    ) -> Self {
        Self {
            thread: thread.into(),
            session: session.into(),
            client_run: run.into(),
            ..Self::default()
        }
    }
}

impl EventEncoder for AgUiStream {
    fn observe(&mut self, event: &RunEvent) {
        self.seq = event.seq;
        self.time = event.time.as_millisecond();
        self.count(event);
    }

    fn encode(&mut self, event: &ClientEvent<'_>, out: &mut SseFrames) {
        match *event {
            ClientEvent::RunStarted { event, .. } => {
                self.run = event.run_id.to_string();
                self.begin(out);
            }
            ClientEvent::StepStarted { step } => {
                self.step = step;
                self.message = None;
                out.data(&Event::StepStarted {
                    timestamp: self.time,
                    step_name: &step_name(step),
                });
            }
            ClientEvent::StepFinished { step } => out.data(&Event::StepFinished {
                timestamp: self.time,
                step_name: &step_name(step),
            }),
            ClientEvent::PartStarted(part) => self.start_part(part, out),
            ClientEvent::PartDelta(part, delta) => {
                let message_id = &self.part_id(part);
                let timestamp = self.time;
                out.data(&match part.kind {
                    PartKind::Text => Event::TextMessageContent {
                        timestamp,
                        message_id,
                        delta,
                    },
                    PartKind::Reasoning => Event::ReasoningMessageContent {
                        timestamp,
                        message_id,
                        delta,
                    },
                });
            }
            ClientEvent::PartFinished(part) => {
                let message_id = &self.part_id(part);
                let timestamp = self.time;
                match part.kind {
                    PartKind::Text => out.data(&Event::TextMessageEnd {
                        timestamp,
                        message_id,
                    }),
                    PartKind::Reasoning => {
                        out.data(&Event::ReasoningMessageEnd {
                            timestamp,
                            message_id,
                        });
                        out.data(&Event::ReasoningEnd {
                            timestamp,
                            message_id,
                        });
                    }
                }
            }
            ClientEvent::CallStarted(call) => self.start_call(call, out),
            ClientEvent::CallInputDelta(call, delta) => out.data(&Event::ToolCallArgs {
                timestamp: self.time,
                tool_call_id: &call.id,
                delta,
            }),
            ClientEvent::CallInputReady(call, input) => {
                if !call.is_streamed {
                    // Input that is not an object is emitted unchanged.
                    let text = match input {
                        Value::String(raw) => raw.clone(),
                        object => object.to_string(),
                    };
                    out.data(&Event::ToolCallArgs {
                        timestamp: self.time,
                        tool_call_id: &call.id,
                        delta: &text,
                    });
                }
                self.finish_call(call, out);
            }
            ClientEvent::CallDropped(call) => {
                self.finish_call(call, out);
                self.result(
                    call,
                    "the model did not finish this call",
                    true,
                    Some(ToolFailure::MalformedInput),
                    out,
                );
            }
            ClientEvent::CallFinished(call, outcome) => self.write_outcome(call, outcome, out),
            // Emitted as `Other` too.
            ClientEvent::CallInputReplaced(..)
            | ClientEvent::CallAwaitsDecision(_)
            | ClientEvent::CallDenied(_) => {}
            ClientEvent::TextSuperseded => self.custom(
                "switchboard.superseded",
                "the text of this step so far is not part of the answer",
                out,
            ),
            ClientEvent::Other(event) => self.note(event, out),
            ClientEvent::Artifact(item) => {
                self.custom::<&AnswerItem>("switchboard.artifact", item, out);
            }
            ClientEvent::RunFinished(report) => self.end(report, out),
        }
    }

    fn resume(&mut self, out: &mut SseFrames) {
        self.is_closed = false;
        self.usage.clear();
        self.begin(out);
    }

    fn pause(&mut self, waiting: &[&Call], out: &mut SseFrames) {
        let (of_client, of_server): (Vec<&Call>, Vec<&Call>) =
            waiting.iter().partition(|call| call.is_client_tool());
        let mut interrupts: Vec<_> = of_server
            .iter()
            .map(|call| self.interrupt_for(call))
            .collect();
        interrupts.sort_by(|one, other| one.id.cmp(&other.id));
        let mut pending: Vec<_> = of_client.iter().map(|call| call.id.clone()).collect();
        pending.sort();
        let outcome = if interrupts.is_empty() {
            Ending::Success {
                pending_tool_call_ids: pending,
            }
        } else {
            Ending::Interrupt { interrupts }
        };
        out.data(&Event::RunFinished {
            timestamp: self.time,
            thread_id: &self.thread,
            run_id: &self.client_run,
            result: None,
            outcome,
            usage: self.token_usage(),
        });
        self.is_closed = true;
    }

    fn interrupt(&mut self, reason: &str, out: &mut SseFrames) {
        let failure = Failure::interrupted(reason);
        self.fail(&failure.code, reason, out);
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Decisions and results of client tools come with the next run of the thread.
    fn ends_response_at(&self, _: &Call) -> bool {
        true
    }
}

impl AgUiStream {
    fn begin(&self, out: &mut SseFrames) {
        out.data(&Event::RunStarted {
            timestamp: self.time,
            thread_id: &self.thread,
            run_id: &self.client_run,
            protocol_version: PROTOCOL,
            metadata: json!({"switchboard": {"runId": self.run, "sessionId": self.session}}),
        });
    }

    fn start_part(&mut self, part: Part, out: &mut SseFrames) {
        let message_id = self.part_id(part);
        let timestamp = self.time;
        match part.kind {
            PartKind::Text => {
                out.data(&Event::TextMessageStart {
                    timestamp,
                    message_id: &message_id,
                    role: "assistant",
                });
                self.message = Some(message_id);
            }
            PartKind::Reasoning => {
                out.data(&Event::ReasoningStart {
                    timestamp,
                    message_id: &message_id,
                });
                out.data(&Event::ReasoningMessageStart {
                    timestamp,
                    message_id: &message_id,
                    role: "reasoning",
                });
            }
        }
    }

    fn start_call(&mut self, call: &Call, out: &mut SseFrames) {
        let (run, step) = (&self.run, self.step);
        let parent = self
            .message
            .get_or_insert_with(|| format!("{run}-step-{step}"));
        out.data(&Event::ToolCallStart {
            timestamp: self.time,
            tool_call_id: &call.id,
            tool_call_name: &call.name,
            parent_message_id: parent,
        });
    }

    fn finish_call(&self, call: &Call, out: &mut SseFrames) {
        out.data(&Event::ToolCallEnd {
            timestamp: self.time,
            tool_call_id: &call.id,
        });
    }

    fn write_outcome(&self, call: &Call, outcome: CallOutcome<'_>, out: &mut SseFrames) {
        if call.is_client_tool() && call.needed_decision {
            // The client sent the result and has it.
            return;
        }
        let text = tool_output::as_text(outcome.content, outcome.structured);
        self.result(call, &text, outcome.is_error, outcome.failure, out);
    }

    fn result(
        &self,
        call: &Call,
        content: &str,
        is_error: bool,
        failure: Option<ToolFailure>,
        out: &mut SseFrames,
    ) {
        let metadata = is_error.then(|| {
            json!({"switchboard": {"isError": true, "failure": failure.map(ToolFailure::as_str)}})
        });
        out.data(&Event::ToolCallResult {
            timestamp: self.time,
            message_id: &format!("{}-result-{}", self.run, call.id),
            tool_call_id: &call.id,
            content,
            role: "tool",
            metadata,
        });
    }

    fn note(&self, event: &RunEvent, out: &mut SseFrames) {
        match &event.kind {
            // The events of the call and the end of the run contain it.
            RunEventKind::ToolFinished { .. } | RunEventKind::ModelCallFinished { .. } => {}
            _ => {
                let (kind, value) = sequencer::to_json(event);
                self.custom(&format!("switchboard.{kind}"), value, out);
            }
        }
    }

    fn custom<V: Serialize>(&self, name: &str, value: V, out: &mut SseFrames) {
        out.data(&Custom {
            kind: "CUSTOM",
            timestamp: self.time,
            name,
            value,
        });
    }

    fn end(&mut self, report: &RunReport, out: &mut SseFrames) {
        let outcome = match report.outcome {
            RunOutcome::Failed => {
                let (code, reason) = match &report.error {
                    Some(error) => (failure::code(&error.kind), error.message.as_str()),
                    None => ("internal".to_owned(), "the run failed"),
                };
                return self.fail(&code, reason, out);
            }
            RunOutcome::Cancelled => Ending::Cancelled,
            RunOutcome::Completed | RunOutcome::Limited => Ending::Success {
                pending_tool_call_ids: Vec::new(),
            },
        };
        out.data(&Event::RunFinished {
            timestamp: self.time,
            thread_id: &self.thread,
            run_id: &self.client_run,
            result: Some(RunResult {
                answer: &report.answer,
                outcome: report.outcome,
                steps: report.steps,
                error: report.error.as_ref(),
            }),
            outcome,
            usage: self.token_usage(),
        });
        self.is_closed = true;
    }

    fn fail(&mut self, code: &str, message: &str, out: &mut SseFrames) {
        out.data(&Event::RunError {
            timestamp: self.time,
            message,
            code,
            usage: self.token_usage(),
        });
        self.is_closed = true;
    }

    /// Creates the interrupt for a call.
    fn interrupt_for(&self, call: &Call) -> Interrupt {
        let name = call.tool.as_deref().unwrap_or(&call.name);
        let tool = match &call.server {
            Some(server) => format!("`{name}` of server `{server}`"),
            None => format!("`{name}`"),
        };
        Interrupt {
            id: InterruptId {
                run: &self.run,
                last_seen: self.seq,
                call: &call.tool_use_id,
            }
            .to_string(),
            reason: "tool_approval",
            message: format!("Allow {tool} to run?"),
            tool_call_id: call.id.clone(),
            response_schema: json!({
                "type": "object",
                "properties": {
                    "approved": {"type": "boolean"},
                    "reason": {"type": "string", "description": "Reason of a denial, for the model."},
                    "input": {"type": "object", "description": "Input that replaces the model's input."},
                    "scope": {"enum": ["once", "session", "always"]},
                },
                "required": ["approved"],
                "additionalProperties": false,
            }),
        }
    }

    fn part_id(&self, part: Part) -> String {
        let kind = match part.kind {
            PartKind::Text => "text",
            PartKind::Reasoning => "reasoning",
        };
        format!("{}-{kind}-{}", self.run, part.number)
    }

    fn count(&mut self, event: &RunEvent) {
        match &event.kind {
            RunEventKind::ModelCallStarted { model, .. } => self.called_model = Some(model.clone()),
            RunEventKind::ModelCallFinished { usage, .. } => {
                if let Some(model) = self.called_model.take() {
                    self.add(model, usage);
                }
            }
            RunEventKind::HistorySummarised { model, usage, .. } => self.add(model.clone(), usage),
            _ => {}
        }
    }

    fn add(&mut self, model: ModelId, usage: &Usage) {
        match self.usage.iter_mut().find(|(known, _)| *known == model) {
            Some((_, sum)) => sum.add(*usage),
            None => self.usage.push((model, *usage)),
        }
    }

    fn token_usage(&self) -> Vec<TokenUsage<'_>> {
        let known = self.usage.iter().filter(|(_, usage)| usage.is_known());
        known
            .map(|(model, usage)| TokenUsage::of(model, usage))
            .collect()
    }
}

fn step_name(step: u32) -> String {
    format!("step {step}")
}

/// The id of an interrupt: the run, the number of the client's last event, and the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InterruptId<'a> {
    pub(crate) run: &'a str,
    pub(crate) last_seen: u64,
    pub(crate) call: &'a str,
}

impl std::fmt::Display for InterruptId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.run, self.last_seen, self.call)
    }
}

impl<'a> InterruptId<'a> {
    /// Parses an id. The call id may contain slashes.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut pieces = text.splitn(3, '/');
        let (run, last_seen, call) = (pieces.next()?, pieces.next()?, pieces.next()?);
        let last_seen = last_seen.parse().ok()?;
        (!run.is_empty() && !call.is_empty()).then_some(Self {
            run,
            last_seen,
            call,
        })
    }
}

#[derive(Serialize)]
#[serde(
    tag = "type",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase"
)]
enum Event<'a> {
    RunStarted {
        timestamp: i64,
        thread_id: &'a str,
        run_id: &'a str,
        protocol_version: &'a str,
        metadata: Value,
    },
    RunFinished {
        timestamp: i64,
        thread_id: &'a str,
        run_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<RunResult<'a>>,
        outcome: Ending,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage<'a>>,
    },
    RunError {
        timestamp: i64,
        message: &'a str,
        code: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage<'a>>,
    },
    StepStarted {
        timestamp: i64,
        step_name: &'a str,
    },
    StepFinished {
        timestamp: i64,
        step_name: &'a str,
    },
    TextMessageStart {
        timestamp: i64,
        message_id: &'a str,
        role: &'a str,
    },
    TextMessageContent {
        timestamp: i64,
        message_id: &'a str,
        delta: &'a str,
    },
    TextMessageEnd {
        timestamp: i64,
        message_id: &'a str,
    },
    ReasoningStart {
        timestamp: i64,
        message_id: &'a str,
    },
    ReasoningMessageStart {
        timestamp: i64,
        message_id: &'a str,
        role: &'a str,
    },
    ReasoningMessageContent {
        timestamp: i64,
        message_id: &'a str,
        delta: &'a str,
    },
    ReasoningMessageEnd {
        timestamp: i64,
        message_id: &'a str,
    },
    ReasoningEnd {
        timestamp: i64,
        message_id: &'a str,
    },
    ToolCallStart {
        timestamp: i64,
        tool_call_id: &'a str,
        tool_call_name: &'a str,
        parent_message_id: &'a str,
    },
    ToolCallArgs {
        timestamp: i64,
        tool_call_id: &'a str,
        delta: &'a str,
    },
    ToolCallEnd {
        timestamp: i64,
        tool_call_id: &'a str,
    },
    ToolCallResult {
        timestamp: i64,
        message_id: &'a str,
        tool_call_id: &'a str,
        content: &'a str,
        role: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
}

#[derive(Serialize)]
struct Custom<'a, V> {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: i64,
    name: &'a str,
    value: V,
}

/// The outcome of a run.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Ending {
    Success {
        /// The calls for the client.
        #[serde(rename = "pendingToolCallIds", skip_serializing_if = "Vec::is_empty")]
        pending_tool_call_ids: Vec<String>,
    },
    Cancelled,
    Interrupt {
        interrupts: Vec<Interrupt>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Interrupt {
    id: String,
    reason: &'static str,
    message: String,
    tool_call_id: String,
    response_schema: Value,
}

/// The result of a run.
#[derive(Serialize)]
struct RunResult<'a> {
    answer: &'a str,
    outcome: RunOutcome,
    steps: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RunError>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenUsage<'a> {
    provider: &'a str,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_input_tokens: Option<u64>,
}

impl<'a> TokenUsage<'a> {
    fn of(model: &'a ModelId, usage: &Usage) -> Self {
        let total = usage.input_tokens.zip(usage.output_tokens);
        Self {
            provider: &model.provider,
            model: &model.name,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: total.map(|(input, output)| input.saturating_add(output)),
            reasoning_tokens: usage.reasoning_tokens,
            cached_input_tokens: usage.cache_read_tokens,
            cache_write_input_tokens: usage.cache_write_tokens,
        }
    }
}
