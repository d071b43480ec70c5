//! A run as the UI message stream of the Vercel AI SDK, version 1.
//!
//! The chunks are those of `uiMessageChunkSchema` and their order is what `processUIMessageStream`
//! accepts, both of the npm package `ai` 7.0.173 (`src/ui-message-stream/ui-message-chunks.ts`,
//! `src/ui/process-ui-message-stream.ts`).
//!
//! Every tool is dynamic, because a front end does not know the tools. Results have the format of
//! MCP's `CallToolResult`. An event without its own chunk is a data part of the type `data-EVENT`
//! with the event as in `GET /runs/{id}/events`. Most are transient: `onData` receives them, but
//! the message does not contain them.

use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{FinishReason, ModelId, Usage};
use switchboard_orchestration::{
    Outcome as RunOutcome, RunError, RunErrorKind, RunEvent, RunEventKind, RunReport,
};

use super::super::{
    encoder::EventEncoder,
    response::frames::SseFrames,
    sequencer::{self, Call, CallOutcome, ClientEvent, Part, PartKind},
    tools::tool_output::{self, ToolOutput},
};

/// An encoder of UI message chunks.
#[derive(Debug, Default)]
pub(crate) struct AiSdkStream {
    session: Option<String>,
    run: String,
    model: Option<ModelId>,
    /// The number of the current event.
    seq: u64,
    is_closed: bool,
}

impl AiSdkStream {
    pub(crate) fn new(session: Option<String>) -> Self {
        Self {
            session,
            ..Self::default()
        }
    }
}

impl EventEncoder for AiSdkStream {
    fn observe(&mut self, event: &RunEvent) {
        self.seq = event.seq;
    }

    fn encode(&mut self, event: &ClientEvent<'_>, out: &mut SseFrames) {
        match *event {
            ClientEvent::RunStarted { event, model } => {
                self.run = event.run_id.to_string();
                self.model = Some(model.clone());
                self.start(out);
            }
            ClientEvent::StepStarted { .. } => out.data(&Chunk::StartStep),
            ClientEvent::StepFinished { .. } => out.data(&Chunk::FinishStep),
            ClientEvent::PartStarted(part) => out.data(&Chunk::part_start(part, &part_id(part))),
            ClientEvent::PartDelta(part, text) => {
                out.data(&Chunk::part_delta(part, &part_id(part), text));
            }
            ClientEvent::PartFinished(part) => out.data(&Chunk::part_end(part, &part_id(part))),
            ClientEvent::CallStarted(call) => {
                if call.is_streamed {
                    out.data(&Chunk::ToolInputStart {
                        tool_call_id: &call.id,
                        tool_name: &call.name,
                        dynamic: true,
                    });
                }
            }
            ClientEvent::CallInputDelta(call, json) => out.data(&Chunk::ToolInputDelta {
                tool_call_id: &call.id,
                input_text_delta: json,
            }),
            ClientEvent::CallInputReady(call, input)
            | ClientEvent::CallInputReplaced(call, input) => {
                out.data(&Chunk::input_available(call, input));
            }
            ClientEvent::CallDropped(call) => out.data(&Chunk::ToolInputError {
                tool_call_id: &call.id,
                tool_name: &call.name,
                input: &Value::Null,
                dynamic: true,
                error_text: "the model did not finish this call",
            }),
            ClientEvent::CallAwaitsDecision(call) => out.data(&Chunk::ToolApprovalRequest {
                approval_id: &call.tool_use_id,
                tool_call_id: &call.id,
            }),
            // The state `output-denied` requires an approval request before it.
            ClientEvent::CallDenied(call) => {
                if call.needed_decision {
                    out.data(&Chunk::ToolOutputDenied {
                        tool_call_id: &call.id,
                    });
                }
            }
            ClientEvent::CallFinished(call, outcome) => Self::result(call, outcome, out),
            ClientEvent::TextSuperseded => out.data(&Data {
                kind: "data-superseded",
                value: "the text of this step so far is not part of the answer",
                transient: false,
            }),
            ClientEvent::Other(event) => Self::note(event, out),
            ClientEvent::Artifact(item) => out.data(&Data {
                kind: "data-artifact",
                value: item,
                transient: false,
            }),
            ClientEvent::RunFinished(report) => self.end(report, out),
        }
    }

    fn resume(&mut self, out: &mut SseFrames) {
        self.is_closed = false;
        self.start(out);
    }

    fn pause(&mut self, _: &[&Call], out: &mut SseFrames) {
        let metadata = self.metadata();
        out.data(&Chunk::Finish {
            finish_reason: "tool-calls",
            message_metadata: Some(metadata),
        });
        self.close(out);
    }

    fn interrupt(&mut self, reason: &str, out: &mut SseFrames) {
        self.fail(reason, out);
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Decisions come with a new request of the chat.
    fn ends_response_at(&self, _: &Call) -> bool {
        true
    }
}

impl AiSdkStream {
    fn start(&self, out: &mut SseFrames) {
        out.data(&Chunk::Start {
            message_id: &self.run,
            message_metadata: self.metadata(),
        });
    }

    fn metadata(&self) -> Metadata<'_> {
        Metadata {
            run_id: &self.run,
            session_id: self.session.as_deref(),
            model: self.model.as_ref().map(ToString::to_string),
            last_event: self.seq,
            ..Metadata::default()
        }
    }

    fn result(call: &Call, outcome: CallOutcome<'_>, out: &mut SseFrames) {
        if outcome.was_denied && call.needed_decision {
            return;
        }
        if outcome.is_error {
            out.data(&Chunk::ToolOutputError {
                tool_call_id: &call.id,
                error_text: tool_output::as_text(outcome.content, outcome.structured),
                dynamic: true,
            });
        } else {
            out.data(&Chunk::ToolOutputAvailable {
                tool_call_id: &call.id,
                output: ToolOutput {
                    content: outcome.content,
                    structured: outcome.structured,
                },
                dynamic: true,
            });
        }
    }

    fn note(event: &RunEvent, out: &mut SseFrames) {
        let is_transient = match &event.kind {
            // The chunks of the call contain it.
            RunEventKind::ToolAwaitingApproval { .. }
            | RunEventKind::ToolFinished { .. }
            | RunEventKind::ModelCallFinished { .. } => return,
            // Stays visible in the message.
            RunEventKind::Warning { .. }
            | RunEventKind::ToolsUnavailable { .. }
            | RunEventKind::ModelSwitched { .. }
            | RunEventKind::ProviderBlock { .. }
            | RunEventKind::QuestionAsked { .. }
            | RunEventKind::QuestionAnswered { .. } => false,
            _ => true,
        };
        let (kind, value) = sequencer::to_json(event);
        let kind = format!("data-{}", kind.replace('_', "-"));
        out.data(&Data {
            kind: &kind,
            value,
            transient: is_transient,
        });
    }

    fn end(&mut self, report: &RunReport, out: &mut SseFrames) {
        let mut metadata = self.metadata();
        metadata.outcome = Some(report.outcome);
        metadata.steps = Some(report.steps);
        metadata.usage = UiUsage::of(&report.usage);
        metadata.error = report.error.as_ref();
        match report.outcome {
            RunOutcome::Completed | RunOutcome::Limited => out.data(&Chunk::Finish {
                finish_reason: finish_reason(report),
                message_metadata: Some(metadata),
            }),
            RunOutcome::Failed => {
                // A client stops reading at the error.
                out.data(&Chunk::MessageMetadata {
                    message_metadata: metadata,
                });
                let reason = report.error.as_ref().map(|error| error.message.as_str());
                return self.fail(reason.unwrap_or("the run failed"), out);
            }
            RunOutcome::Cancelled => {
                out.data(&Chunk::MessageMetadata {
                    message_metadata: metadata,
                });
                out.data(&Chunk::Abort {
                    reason: "the run was cancelled",
                });
            }
        }
        self.close(out);
    }

    fn fail(&mut self, reason: &str, out: &mut SseFrames) {
        out.data(&Chunk::Error { error_text: reason });
        out.data(&Chunk::Finish {
            finish_reason: "error",
            message_metadata: None,
        });
        self.close(out);
    }

    fn close(&mut self, out: &mut SseFrames) {
        out.text("[DONE]");
        self.is_closed = true;
    }
}

fn finish_reason(report: &RunReport) -> &'static str {
    match (&report.error, &report.finish_reason) {
        (Some(error), _) => match error.kind {
            RunErrorKind::OutputLimit
            | RunErrorKind::ContextOverflow
            | RunErrorKind::TokenLimit => "length",
            _ => "other",
        },
        (None, Some(FinishReason::Length)) => "length",
        (None, Some(FinishReason::ContentFilter)) => "content-filter",
        (None, Some(FinishReason::Other(_))) => "other",
        (None, _) => "stop",
    }
}

fn part_id(part: Part) -> String {
    let kind = match part.kind {
        PartKind::Text => "text",
        PartKind::Reasoning => "reasoning",
    };
    format!("{kind}-{}", part.number)
}

/// One chunk of the stream.
#[derive(Serialize)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
enum Chunk<'a> {
    Start {
        message_id: &'a str,
        message_metadata: Metadata<'a>,
    },
    StartStep,
    FinishStep,
    TextStart {
        id: &'a str,
    },
    TextDelta {
        id: &'a str,
        delta: &'a str,
    },
    TextEnd {
        id: &'a str,
    },
    ReasoningStart {
        id: &'a str,
    },
    ReasoningDelta {
        id: &'a str,
        delta: &'a str,
    },
    ReasoningEnd {
        id: &'a str,
    },
    ToolInputStart {
        tool_call_id: &'a str,
        tool_name: &'a str,
        dynamic: bool,
    },
    ToolInputDelta {
        tool_call_id: &'a str,
        input_text_delta: &'a str,
    },
    ToolInputAvailable {
        tool_call_id: &'a str,
        tool_name: &'a str,
        input: &'a Value,
        dynamic: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        tool_metadata: ToolMetadata<'a>,
    },
    ToolInputError {
        tool_call_id: &'a str,
        tool_name: &'a str,
        input: &'a Value,
        dynamic: bool,
        error_text: &'a str,
    },
    ToolApprovalRequest {
        approval_id: &'a str,
        tool_call_id: &'a str,
    },
    ToolOutputAvailable {
        tool_call_id: &'a str,
        output: ToolOutput<'a>,
        dynamic: bool,
    },
    ToolOutputError {
        tool_call_id: &'a str,
        error_text: String,
        dynamic: bool,
    },
    ToolOutputDenied {
        tool_call_id: &'a str,
    },
    MessageMetadata {
        message_metadata: Metadata<'a>,
    },
    Finish {
        finish_reason: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Metadata<'a>>,
    },
    Error {
        error_text: &'a str,
    },
    Abort {
        reason: &'a str,
    },
}

/// A data part.
#[derive(Serialize)]
struct Data<'a, D> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(rename = "data")]
    value: D,
    /// Whether only `onData` receives it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    transient: bool,
}

impl<'a> Chunk<'a> {
    fn part_start(part: Part, id: &'a str) -> Self {
        match part.kind {
            PartKind::Text => Self::TextStart { id },
            PartKind::Reasoning => Self::ReasoningStart { id },
        }
    }

    fn part_delta(part: Part, id: &'a str, delta: &'a str) -> Self {
        match part.kind {
            PartKind::Text => Self::TextDelta { id, delta },
            PartKind::Reasoning => Self::ReasoningDelta { id, delta },
        }
    }

    fn part_end(part: Part, id: &'a str) -> Self {
        match part.kind {
            PartKind::Text => Self::TextEnd { id },
            PartKind::Reasoning => Self::ReasoningEnd { id },
        }
    }

    fn input_available(call: &'a Call, input: &'a Value) -> Self {
        Self::ToolInputAvailable {
            tool_call_id: &call.id,
            tool_name: &call.name,
            input,
            dynamic: true,
            title: call.tool.as_deref(),
            tool_metadata: ToolMetadata {
                server: call.server.as_deref(),
                tool: call.tool.as_deref(),
            },
        }
    }
}

/// The server and original name of a tool.
#[derive(Serialize)]
struct ToolMetadata<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
}

/// The metadata of a message. A client sends it back with the message, so that the server knows the
/// last event of the client.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    run_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    last_event: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<RunOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UiUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RunError>,
}

/// Token counts as in the SDK's `LanguageModelUsage`. Unknown counts are omitted.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UiUsage {
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    input_token_details: InputDetails,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    output_token_details: OutputDetails,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_tokens: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InputDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_tokens: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutputDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_tokens: Option<u64>,
}

impl UiUsage {
    fn of(usage: &Usage) -> Option<Self> {
        let total = usage.input_tokens.zip(usage.output_tokens);
        usage.is_known().then_some(Self {
            input_tokens: usage.input_tokens,
            input_token_details: InputDetails {
                cache_read_tokens: usage.cache_read_tokens,
                cache_write_tokens: usage.cache_write_tokens,
            },
            output_tokens: usage.output_tokens,
            output_token_details: OutputDetails {
                reasoning_tokens: usage.reasoning_tokens,
            },
            total_tokens: total.map(|(input, output)| input.saturating_add(output)),
        })
    }
}
