//! Encodes a run as AG-UI events, protocol version 1.0.
//!
//! The events are those of the npm package `@ag-ui/core` 1.0.0 (`src/generated/types.ts`) and their
//! order is what `verifyEvents` of `@ag-ui/client` 1.0.0 (`src/verify/verify.ts`) accepts.
//!
//! A call that needs approval ends the response with an interrupt. The decision comes in `resume`
//! of the next run of the thread. A call of a client tool ends the response with success and its id
//! in `pendingToolCallIds`. Its result comes as a message of the next run. A run event without an
//! AG-UI equivalent becomes a `CUSTOM` event with the name `switchboard.EVENT` and the event as in
//! `GET /runs/{id}/events`.

use serde_json::{Value, json};
use switchboard_domain::{ModelId, Usage};
use switchboard_orchestration::{
    Outcome as RunOutcome, RunEvent, RunEventKind, RunReport, ToolFailure,
};

use super::super::{
    event_encoder::EventEncoder,
    event_sequencer::{self, AnswerPart, AnswerPartKind, ClientEvent, ToolCallView},
    response::run_failure::{self, RunFailure},
    response::sse_frames::{SseFrames, remove_null_fields},
    tools::tool_output,
};

/// The AG-UI protocol version that the stream declares.
const PROTOCOL: &str = "1.0";

/// An encoder that converts the events of one run to AG-UI events.
#[derive(Debug, Default)]
pub(crate) struct AgUiStream {
    thread: String,
    /// The id of the session that stores the AG-UI thread.
    session: String,
    /// The run id that the client chose. The field `run` contains the server's id of the run.
    client_run: String,
    run: String,
    /// The sequence number of the run event that is being encoded.
    seq: u64,
    /// The time of the run event that is being encoded, in milliseconds since 1970.
    time: i64,
    /// The id of the AG-UI message that the tool calls of the current step belong to.
    message: Option<String>,
    step: u32,
    /// The token usage of the model calls in this response, one entry for each model.
    usage: Vec<(ModelId, Usage)>,
    called_model: Option<ModelId>,
}

impl AgUiStream {
    /// Creates an encoder. `thread` and `run` are ids that the client chose. `session` is the id of
    /// the session that stores the thread.
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
    const IS_DURABLE: bool = true;

    fn observe_event(&mut self, event: &RunEvent) {
        self.seq = event.seq;
        self.time = event.time.as_millisecond();
        match &event.kind {
            RunEventKind::ModelCallStarted { model, .. } => self.called_model = Some(model.clone()),
            RunEventKind::ModelCallFinished { usage, .. } => {
                if let Some(model) = self.called_model.take() {
                    self.add_usage(model, usage);
                }
            }
            RunEventKind::HistorySummarised { model, usage, .. } => {
                self.add_usage(model.clone(), usage);
            }
            _ => {}
        }
    }

    fn encode_event(&mut self, event: &ClientEvent<'_>, out: &mut SseFrames) {
        match *event {
            ClientEvent::RunStarted { event, .. } => {
                self.run = event.run_id.to_string();
                self.write_run_started(out);
            }
            ClientEvent::StepStarted { step } => {
                self.step = step;
                self.message = None;
                self.write_step_event("STEP_STARTED", step, out);
            }
            ClientEvent::StepFinished { step } => {
                self.write_step_event("STEP_FINISHED", step, out);
            }
            ClientEvent::PartStarted(part) => self.write_part_started(part, out),
            ClientEvent::PartDelta(part, delta) => {
                let kind = match part.kind {
                    AnswerPartKind::Text => "TEXT_MESSAGE_CONTENT",
                    AnswerPartKind::Reasoning => "REASONING_MESSAGE_CONTENT",
                };
                let fields = json!({"messageId": self.part_id(part), "delta": delta});
                self.write_event(kind, fields, out);
            }
            ClientEvent::PartFinished(part) => {
                let kinds: &[&str] = match part.kind {
                    AnswerPartKind::Text => &["TEXT_MESSAGE_END"],
                    AnswerPartKind::Reasoning => &["REASONING_MESSAGE_END", "REASONING_END"],
                };
                for kind in kinds {
                    self.write_event(kind, json!({"messageId": self.part_id(part)}), out);
                }
            }
            ClientEvent::CallStarted(call) => self.write_call_started(call, out),
            ClientEvent::CallInputDelta(call, delta) => self.write_call_input(call, delta, out),
            ClientEvent::CallInputReady(call, input) => {
                if !call.is_streamed {
                    // If the model wrote invalid JSON, `input` is a string with this text.
                    match input {
                        Value::String(raw) => self.write_call_input(call, raw, out),
                        object => self.write_call_input(call, &object.to_string(), out),
                    }
                }
                self.write_event("TOOL_CALL_END", json!({"toolCallId": call.id}), out);
            }
            ClientEvent::CallDropped(call) => {
                self.write_event("TOOL_CALL_END", json!({"toolCallId": call.id}), out);
                let failure = Some(ToolFailure::MalformedInput);
                let text = "the model did not finish this call";
                self.write_call_result(call, text, true, failure, out);
            }
            ClientEvent::CallFinished(call, outcome) => {
                // Omits the result of a client tool, because the client itself sent this result.
                if !(call.is_client_tool() && call.needed_decision) {
                    let text = tool_output::tool_result_text(outcome.content, outcome.structured);
                    self.write_call_result(call, &text, outcome.is_error, outcome.failure, out);
                }
            }
            // Writes nothing, because these changes also arrive as `ClientEvent::Other`.
            ClientEvent::CallInputReplaced(..)
            | ClientEvent::CallAwaitsDecision(_)
            | ClientEvent::CallDenied(_) => {}
            ClientEvent::TextSuperseded => {
                let text = "the text of this step so far is not part of the answer";
                self.write_custom_event("superseded", &json!(text), out);
            }
            ClientEvent::Other(event) => match &event.kind {
                // `TOOL_CALL_RESULT` and `RUN_FINISHED` already contain this information.
                RunEventKind::ToolFinished { .. } | RunEventKind::ModelCallFinished { .. } => {}
                _ => {
                    let (kind, value) = event_sequencer::event_to_json(event);
                    self.write_custom_event(&kind, &value, out);
                }
            },
            ClientEvent::Artifact(item) => self.write_custom_event("artifact", &json!(item), out),
            ClientEvent::RunFinished(report) => self.write_run_end(report, out),
        }
    }

    fn encode_run_resume(&mut self, out: &mut SseFrames) {
        self.usage.clear();
        self.write_run_started(out);
    }

    fn encode_run_pause(&mut self, waiting: &[&ToolCallView], out: &mut SseFrames) {
        let of_server = waiting.iter().filter(|call| !call.is_client_tool());
        let interrupts: Vec<_> = of_server.map(|call| self.build_interrupt(call)).collect();
        let outcome = if interrupts.is_empty() {
            let pending: Vec<_> = waiting.iter().map(|call| &call.id).collect();
            let pending = (!pending.is_empty()).then_some(pending);
            remove_null_fields(json!({"type": "success", "pendingToolCallIds": pending}))
        } else {
            json!({"type": "interrupt", "interrupts": interrupts})
        };
        self.write_run_finished(&Value::Null, &outcome, out);
    }

    fn encode_run_interruption(&mut self, reason: &str, out: &mut SseFrames) {
        self.write_run_error(&RunFailure::from_interruption(reason).code, reason, out);
    }
}

impl AgUiStream {
    /// Appends an AG-UI event of the type `kind`. Fields with the value `null` are omitted.
    fn write_event(&self, kind: &str, fields: Value, out: &mut SseFrames) {
        let mut event = json!({"type": kind, "timestamp": self.time});
        if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
            event.extend(fields);
        }
        out.push_unnamed_event(&remove_null_fields(event));
    }

    fn write_step_event(&self, kind: &str, step: u32, out: &mut SseFrames) {
        self.write_event(kind, json!({"stepName": format!("step {step}")}), out);
    }

    fn write_custom_event(&self, name: &str, value: &Value, out: &mut SseFrames) {
        let name = format!("switchboard.{name}");
        self.write_event("CUSTOM", json!({"name": name, "value": value}), out);
    }

    fn write_run_started(&self, out: &mut SseFrames) {
        let ids = json!({"runId": self.run, "sessionId": self.session});
        let fields = json!({
            "threadId": self.thread,
            "runId": self.client_run,
            "protocolVersion": PROTOCOL,
            "metadata": {"switchboard": ids},
        });
        self.write_event("RUN_STARTED", fields, out);
    }

    fn write_part_started(&mut self, part: AnswerPart, out: &mut SseFrames) {
        let id = self.part_id(part);
        match part.kind {
            AnswerPartKind::Text => {
                let fields = json!({"messageId": id, "role": "assistant"});
                self.write_event("TEXT_MESSAGE_START", fields, out);
                self.message = Some(id);
            }
            AnswerPartKind::Reasoning => {
                self.write_event("REASONING_START", json!({"messageId": id}), out);
                let fields = json!({"messageId": id, "role": "reasoning"});
                self.write_event("REASONING_MESSAGE_START", fields, out);
            }
        }
    }

    fn write_call_started(&mut self, call: &ToolCallView, out: &mut SseFrames) {
        let new_message = || format!("{}-step-{}", self.run, self.step);
        let parent = self.message.take().unwrap_or_else(new_message);
        let fields =
            json!({"toolCallId": call.id, "toolCallName": call.name, "parentMessageId": parent});
        self.write_event("TOOL_CALL_START", fields, out);
        self.message = Some(parent);
    }

    fn write_call_input(&self, call: &ToolCallView, delta: &str, out: &mut SseFrames) {
        let fields = json!({"toolCallId": call.id, "delta": delta});
        self.write_event("TOOL_CALL_ARGS", fields, out);
    }

    fn write_call_result(
        &self,
        call: &ToolCallView,
        content: &str,
        is_error: bool,
        failure: Option<ToolFailure>,
        out: &mut SseFrames,
    ) {
        let failure = failure.map(ToolFailure::as_str);
        let metadata =
            is_error.then(|| json!({"switchboard": {"isError": true, "failure": failure}}));
        let fields = json!({
            "messageId": format!("{}-result-{}", self.run, call.id),
            "toolCallId": call.id,
            "content": content,
            "role": "tool",
            "metadata": metadata,
        });
        self.write_event("TOOL_CALL_RESULT", fields, out);
    }

    fn write_run_end(&mut self, report: &RunReport, out: &mut SseFrames) {
        let outcome = match report.outcome {
            RunOutcome::Failed => {
                let (code, reason) = match &report.error {
                    Some(error) => (run_failure::error_code(&error.kind), error.message.as_str()),
                    None => ("internal".to_owned(), "the run failed"),
                };
                return self.write_run_error(&code, reason, out);
            }
            RunOutcome::Cancelled => json!({"type": "cancelled"}),
            RunOutcome::Completed | RunOutcome::Limited => json!({"type": "success"}),
        };
        let result = remove_null_fields(json!({
            "answer": report.answer,
            "outcome": report.outcome,
            "steps": report.steps,
            "error": report.error,
        }));
        self.write_run_finished(&result, &outcome, out);
    }

    fn write_run_finished(&self, result: &Value, outcome: &Value, out: &mut SseFrames) {
        let fields = json!({
            "threadId": self.thread,
            "runId": self.client_run,
            "result": result,
            "outcome": outcome,
            "usage": self.token_usage(),
        });
        self.write_event("RUN_FINISHED", fields, out);
    }

    fn write_run_error(&self, code: &str, message: &str, out: &mut SseFrames) {
        let fields = json!({"message": message, "code": code, "usage": self.token_usage()});
        self.write_event("RUN_ERROR", fields, out);
    }

    /// Creates the interrupt that asks a person to approve a tool call. Its id consists of the run
    /// id, the sequence number of the current run event, and the tool call id.
    fn build_interrupt(&self, call: &ToolCallView) -> Value {
        let name = call.tool.as_deref().unwrap_or(&call.name);
        let tool = match &call.server {
            Some(server) => format!("`{name}` of server `{server}`"),
            None => format!("`{name}`"),
        };
        let reason = "Reason of a denial, for the model.";
        let input = "Input that replaces the model's input.";
        json!({
            "id": format!("{}/{}/{}", self.run, self.seq, call.tool_use_id),
            "reason": "tool_approval",
            "message": format!("Allow {tool} to run?"),
            "toolCallId": call.id,
            "responseSchema": {
                "type": "object",
                "properties": {
                    "approved": {"type": "boolean"},
                    "reason": {"type": "string", "description": reason},
                    "input": {"type": "object", "description": input},
                    "scope": {"enum": ["once", "session", "always"]},
                },
                "required": ["approved"],
                "additionalProperties": false,
            },
        })
    }

    fn part_id(&self, part: AnswerPart) -> String {
        format!("{}-{}-{}", self.run, part.kind.as_str(), part.number)
    }

    fn add_usage(&mut self, model: ModelId, usage: &Usage) {
        match self.usage.iter_mut().find(|(known, _)| *known == model) {
            Some((_, sum)) => sum.add_usage(*usage),
            None => self.usage.push((model, *usage)),
        }
    }

    /// Returns the token counts of each model, or `None` if no provider reported any count.
    fn token_usage(&self) -> Option<Vec<Value>> {
        let known = self.usage.iter().filter(|(_, usage)| usage.is_known());
        let counts: Vec<Value> = known
            .map(|(model, usage)| {
                let total = usage.input_tokens.zip(usage.output_tokens);
                remove_null_fields(json!({
                    "provider": model.provider,
                    "model": model.name,
                    "inputTokens": usage.input_tokens,
                    "outputTokens": usage.output_tokens,
                    "totalTokens": total.map(|(input, output)| input.saturating_add(output)),
                    "reasoningTokens": usage.reasoning_tokens,
                    "cachedInputTokens": usage.cache_read_tokens,
                    "cacheWriteInputTokens": usage.cache_write_tokens,
                }))
            })
            .collect();
        (!counts.is_empty()).then_some(counts)
    }
}
