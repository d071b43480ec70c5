//! Encodes a run as the UI message stream of the Vercel AI SDK, version 1.
//!
//! The chunks are those of `uiMessageChunkSchema` and their order is what `processUIMessageStream`
//! accepts, both of the npm package `ai` 7.0.173 (`src/ui-message-stream/ui-message-chunks.ts`,
//! `src/ui/process-ui-message-stream.ts`).
//!
//! Every tool is dynamic, because a front end does not know the tools. Results have the format of
//! MCP's `CallToolResult`. A run event without its own chunk type becomes a data part of the type
//! `data-EVENT`, with the event as in `GET /runs/{id}/events`. Most data parts are transient:
//! `onData` receives them, but the message does not contain them.

use serde_json::{Value, json};
use switchboard_domain::{FinishReason, Usage};
use switchboard_orchestration::{
    Outcome as RunOutcome, RunErrorKind, RunEvent, RunEventKind, RunReport,
};

use super::super::{
    event_encoder::EventEncoder,
    event_sequencer::{self, AnswerPart, ClientEvent, ToolCallResult, ToolCallView},
    response::sse_frames::{SseFrames, remove_null_fields},
    tools::tool_output,
};

/// An encoder that converts the events of one run to the AI SDK's UI message chunks.
#[derive(Debug, Default)]
pub(crate) struct AiSdkStream {
    session: Option<String>,
    run: String,
    model: String,
    /// The sequence number of the run event that is being encoded.
    seq: u64,
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
    const IS_DURABLE: bool = true;

    fn observe_event(&mut self, event: &RunEvent) {
        self.seq = event.seq;
    }

    fn encode_event(&mut self, event: &ClientEvent<'_>, out: &mut SseFrames) {
        let chunk = match *event {
            ClientEvent::RunStarted { event, model } => {
                self.run = event.run_id.to_string();
                self.model = model.to_string();
                return self.encode_run_resume(out);
            }
            ClientEvent::StepStarted { .. } => json!({"type": "start-step"}),
            ClientEvent::StepFinished { .. } => json!({"type": "finish-step"}),
            ClientEvent::PartStarted(part) => part_chunk(part, "start", None),
            ClientEvent::PartDelta(part, text) => part_chunk(part, "delta", Some(text)),
            ClientEvent::PartFinished(part) => part_chunk(part, "end", None),
            ClientEvent::CallStarted(ToolCallView {
                id,
                name,
                is_streamed: true,
                ..
            }) => json!({
                "type": "tool-input-start",
                "toolCallId": id,
                "toolName": name,
                "dynamic": true,
            }),
            ClientEvent::CallInputDelta(call, text) => {
                json!({"type": "tool-input-delta", "toolCallId": call.id, "inputTextDelta": text})
            }
            ClientEvent::CallInputReady(call, input)
            | ClientEvent::CallInputReplaced(call, input) => input_available_chunk(call, input),
            ClientEvent::CallDropped(call) => json!({
                "type": "tool-input-error",
                "toolCallId": call.id,
                "toolName": call.name,
                "input": null,
                "dynamic": true,
                "errorText": "the model did not finish this call",
            }),
            ClientEvent::CallAwaitsDecision(call) => json!({
                "type": "tool-approval-request",
                "approvalId": call.tool_use_id,
                "toolCallId": call.id,
            }),
            // The AI SDK accepts the state `output-denied` only after an approval request.
            ClientEvent::CallDenied(call) if call.needed_decision => {
                json!({"type": "tool-output-denied", "toolCallId": call.id})
            }
            ClientEvent::CallFinished(call, outcome)
                if !(outcome.was_denied && call.needed_decision) =>
            {
                call_result_chunk(call, outcome)
            }
            ClientEvent::CallStarted(_)
            | ClientEvent::CallDenied(_)
            | ClientEvent::CallFinished(..) => return,
            ClientEvent::TextSuperseded => json!({
                "type": "data-superseded",
                "data": "the text of this step so far is not part of the answer",
            }),
            ClientEvent::Other(event) => match run_event_chunk(event) {
                Some(chunk) => chunk,
                None => return,
            },
            ClientEvent::Artifact(item) => json!({"type": "data-artifact", "data": item}),
            ClientEvent::RunFinished(report) => return self.write_run_end(report, out),
        };
        out.push_unnamed_event(&chunk);
    }

    fn encode_run_resume(&mut self, out: &mut SseFrames) {
        let metadata = self.message_metadata(None);
        let start = json!({"type": "start", "messageId": self.run, "messageMetadata": metadata});
        out.push_unnamed_event(&start);
    }

    fn encode_run_pause(&mut self, _: &[&ToolCallView], out: &mut SseFrames) {
        write_finish("tool-calls", &self.message_metadata(None), out);
    }

    fn encode_run_interruption(&mut self, reason: &str, out: &mut SseFrames) {
        out.push_unnamed_event(&json!({"type": "error", "errorText": reason}));
        write_finish("error", &Value::Null, out);
    }
}

impl AiSdkStream {
    /// Returns the metadata of the answer message. The client sends the metadata back with its next
    /// request, so that the server can continue after the last event that the client received.
    fn message_metadata(&self, report: Option<&RunReport>) -> Value {
        remove_null_fields(json!({
            "runId": self.run,
            "sessionId": self.session,
            "model": self.model,
            "lastEvent": self.seq,
            "outcome": report.map(|report| report.outcome),
            "steps": report.map(|report| report.steps),
            "usage": report.and_then(|report| usage_json(&report.usage)),
            "error": report.and_then(|report| report.error.as_ref()),
        }))
    }

    fn write_run_end(&mut self, report: &RunReport, out: &mut SseFrames) {
        let metadata = self.message_metadata(Some(report));
        if matches!(report.outcome, RunOutcome::Completed | RunOutcome::Limited) {
            return write_finish(finish_reason(report), &metadata, out);
        }
        // The client stops reading at an error chunk, so the metadata must come before it.
        out.push_unnamed_event(&json!({"type": "message-metadata", "messageMetadata": metadata}));
        if report.outcome == RunOutcome::Cancelled {
            out.push_unnamed_event(&json!({"type": "abort", "reason": "the run was cancelled"}));
            return out.push_text_event("[DONE]");
        }
        let reason = report.error.as_ref().map(|error| error.message.as_str());
        self.encode_run_interruption(reason.unwrap_or("the run failed"), out);
    }
}

/// Appends the chunk that ends the stream. The metadata is omitted if it is `null`.
fn write_finish(reason: &str, metadata: &Value, out: &mut SseFrames) {
    let finish = json!({"type": "finish", "finishReason": reason, "messageMetadata": metadata});
    out.push_unnamed_event(&remove_null_fields(finish));
    out.push_text_event("[DONE]");
}

/// Creates the chunk that starts, extends or ends a text or reasoning part. `change` is `start`,
/// `delta` or `end`. `delta` is the new text.
fn part_chunk(part: AnswerPart, change: &str, delta: Option<&str>) -> Value {
    let kind = part.kind.as_str();
    let id = format!("{kind}-{}", part.number);
    remove_null_fields(json!({"type": format!("{kind}-{change}"), "id": id, "delta": delta}))
}

fn input_available_chunk(call: &ToolCallView, input: &Value) -> Value {
    let mut chunk = json!({
        "type": "tool-input-available",
        "toolCallId": call.id,
        "toolName": call.name,
        "input": input,
        "dynamic": true,
    });
    if let Some(tool) = &call.tool {
        chunk["title"] = json!(tool);
    }
    chunk["toolMetadata"] = remove_null_fields(json!({"server": call.server, "tool": call.tool}));
    chunk
}

fn call_result_chunk(call: &ToolCallView, outcome: ToolCallResult<'_>) -> Value {
    let (content, structured) = (outcome.content, outcome.structured);
    let (kind, field, result) = if outcome.is_error {
        let text = tool_output::tool_result_text(content, structured);
        ("tool-output-error", "errorText", json!(text))
    } else {
        let output = tool_output::to_mcp_result(content, structured);
        ("tool-output-available", "output", output)
    };
    json!({"type": kind, "toolCallId": call.id, field: result, "dynamic": true})
}

/// Creates the chunk of the type `data-TYPE` for a run event, where `TYPE` is the type of the
/// event. Returns `None` if another chunk already contains the content of the event.
fn run_event_chunk(event: &RunEvent) -> Option<Value> {
    let is_transient = match &event.kind {
        // Chunks for tool calls and for the end of the run already contain these events.
        RunEventKind::ToolAwaitingApproval { .. }
        | RunEventKind::ToolFinished { .. }
        | RunEventKind::ModelCallFinished { .. } => return None,
        // The client keeps these data parts in its message, so they are not transient.
        RunEventKind::Warning { .. }
        | RunEventKind::ToolsUnavailable { .. }
        | RunEventKind::ModelSwitched { .. }
        | RunEventKind::ProviderBlock { .. }
        | RunEventKind::QuestionAsked { .. }
        | RunEventKind::QuestionAnswered { .. } => false,
        _ => true,
    };
    let (kind, value) = event_sequencer::event_to_json(event);
    let mut chunk = json!({"type": format!("data-{}", kind.replace('_', "-")), "data": value});
    if is_transient {
        chunk["transient"] = json!(true);
    }
    Some(chunk)
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

/// Converts token counts to the AI SDK's `LanguageModelUsage`. Unknown counts are omitted. Returns
/// `None` if all counts are unknown.
fn usage_json(usage: &Usage) -> Option<Value> {
    let total = usage.input_tokens.zip(usage.output_tokens);
    let input_details = json!({
        "cacheReadTokens": usage.cache_read_tokens,
        "cacheWriteTokens": usage.cache_write_tokens,
    });
    let output_details = json!({"reasoningTokens": usage.reasoning_tokens});
    let counts = json!({
        "inputTokens": usage.input_tokens,
        "inputTokenDetails": remove_null_fields(input_details),
        "outputTokens": usage.output_tokens,
        "outputTokenDetails": remove_null_fields(output_details),
        "totalTokens": total.map(|(input, output)| input.saturating_add(output)),
    });
    usage.is_known().then(|| remove_null_fields(counts))
}
