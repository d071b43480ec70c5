//! Orders run events for the dialects, which are the client protocols.
//!
//! The events of concurrent tool calls interleave. Dialects need more order: a part of the answer
//! ends before the next part starts; a tool call starts, gets its input and then one result; a step
//! ends before the next step starts. [`EventSequencer`] establishes this order, so that a dialect
//! only converts each [`ClientEvent`]. It stores the state of every call, but no answer text.

use serde_json::Value;
use switchboard_domain::{ModelId, ToolContent};
use switchboard_orchestration::{
    AnswerItem, RunEvent, RunEventKind, RunPhase, RunReport, ToolFailure,
};

use crate::hub::CLIENT_SERVER;

/// An event of a run for the encoders of the client protocols. The events of one response have the
/// order of this grammar:
///
/// ```text
/// run    = RunStarted (step | call | Other | TextSuperseded)* Artifact* RunFinished?
/// step   = StepStarted (part | call | Other | TextSuperseded)* StepFinished
/// part   = PartStarted PartDelta* PartFinished
/// call   = CallStarted CallInputDelta* (CallInputReady … CallFinished | CallDropped)
/// ```
///
/// `CallInputReplaced`, `CallAwaitsDecision` and `CallDenied` come between `CallInputReady` and
/// `CallFinished`. Parts do not overlap, but calls may.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClientEvent<'a> {
    /// The run started. This event comes first and only once.
    RunStarted {
        /// The run event that caused this client event. It contains the run id and the time.
        event: &'a RunEvent,
        /// The model of the run, or `unknown/unknown` if the run event does not name it.
        model: &'a ModelId,
    },
    /// A step, which is one model call and its tool calls, started.
    StepStarted {
        /// The number of the started step, from 1.
        step: u32,
    },
    /// A step, which is one model call and its tool calls, finished.
    StepFinished {
        /// The number of the finished step, from 1.
        step: u32,
    },
    /// The model began to write a part of its answer: text or reasoning.
    PartStarted(AnswerPart),
    /// The model wrote more text of the current part.
    PartDelta(AnswerPart, &'a str),
    /// The current part of text or reasoning is complete.
    PartFinished(AnswerPart),
    /// The model began to write a tool call.
    CallStarted(&'a ToolCallView),
    /// The model wrote more JSON text of the tool call's input.
    CallInputDelta(&'a ToolCallView, &'a str),
    /// The input of the tool call is complete.
    CallInputReady(&'a ToolCallView, &'a Value),
    /// An automatic repair or a person replaced the input of the tool call.
    CallInputReplaced(&'a ToolCallView, &'a Value),
    /// The model did not complete the input of the tool call, so the call will not be executed.
    CallDropped(&'a ToolCallView),
    /// The tool call needs an approval decision, or a result if the client executes the tool.
    CallAwaitsDecision(&'a ToolCallView),
    /// The tool call was denied, so it will not be executed.
    CallDenied(&'a ToolCallView),
    /// The tool call has a result, which may be an error.
    CallFinished(&'a ToolCallView, ToolCallResult<'a>),
    /// The text since the start of the step is not part of the answer. The run emits the text
    /// again, possibly changed.
    TextSuperseded,
    /// A run event in its original form. Client events before this one may already contain a part
    /// of its content.
    Other(&'a RunEvent),
    /// An item of the answer that is not text, such as a file.
    Artifact(&'a AnswerItem),
    /// The run finished. This client event is the last one.
    RunFinished(&'a RunReport),
}

/// A function that receives client events in the order of their emission.
type EventEmitter<'f> = dyn FnMut(ClientEvent<'_>) + 'f;

/// A part of the answer: text or reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerPart {
    pub(crate) kind: AnswerPartKind,
    /// The number of the part within the run, from 1.
    pub(crate) number: u32,
    /// Whether this part starts a new paragraph instead of continuing the previous text part.
    pub(crate) starts_paragraph: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerPartKind {
    Text,
    Reasoning,
}

impl AnswerPartKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
        }
    }
}

/// A tool call as the client receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolCallView {
    /// The call id for the client. It differs from `tool_use_id` if an earlier call of the run,
    /// such as a dropped one, already had that id.
    pub(crate) id: String,
    /// The id of the tool call within the run.
    pub(crate) tool_use_id: String,
    /// The tool name that the model wrote. If the response began after the model had started to
    /// write the call, this is the tool's name at its MCP server.
    pub(crate) name: String,
    /// The MCP server of the tool, if known.
    pub(crate) server: Option<String>,
    /// The tool's name at its MCP server, if known.
    pub(crate) tool: Option<String>,
    /// Whether the input of the tool call was sent in deltas while the model wrote it.
    pub(crate) is_streamed: bool,
    /// Whether the tool call needed an approval decision, or a result from the client.
    pub(crate) needed_decision: bool,
    /// The input of a client tool's call as JSON text, once it is complete. Empty for other calls.
    pub(crate) client_input: String,
    stage: CallStage,
}

impl ToolCallView {
    /// Returns whether the client executes the tool.
    pub(crate) fn is_client_tool(&self) -> bool {
        self.server.as_deref() == Some(CLIENT_SERVER)
    }

    fn has_complete_input(&self) -> bool {
        matches!(
            self.stage,
            CallStage::Ready | CallStage::Waiting | CallStage::Denied
        )
    }

    fn set_client_input(&mut self, input: &Value) {
        if self.is_client_tool() {
            self.client_input = input.to_string();
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallStage {
    /// The model is writing the input of the tool call.
    Streaming,
    /// The input of the tool call is complete.
    Ready,
    /// The tool call waits for an approval decision, or for a result if the client executes the
    /// tool.
    Waiting,
    /// The tool call was denied, so it will not be executed.
    Denied,
    /// The tool call has its result.
    Done,
    Dropped,
}

/// The result of a tool call, as [`ClientEvent::CallFinished`] contains it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolCallResult<'a> {
    pub(crate) is_error: bool,
    pub(crate) failure: Option<ToolFailure>,
    /// Whether [`ClientEvent::CallDenied`] was already emitted for this call.
    pub(crate) was_denied: bool,
    pub(crate) content: &'a [ToolContent],
    pub(crate) structured: Option<&'a Value>,
}

/// A state machine that converts run events to the [`ClientEvent`]s of one response.
#[derive(Debug, Default)]
pub(crate) struct EventSequencer {
    has_started: bool,
    is_finished: bool,
    step: Option<u32>,
    part: Option<AnswerPart>,
    parts: u32,
    /// The calls of the run in the order of their start. If several calls have the same
    /// `tool_use_id`, later run events apply to the last of these calls.
    calls: Vec<ToolCallView>,
    dropped: u32,
    /// Whether answer text was emitted. If not, the answer in the run report is emitted when the
    /// run finishes.
    has_text: bool,
    /// Whether text was emitted since the start of the current step.
    has_text_in_step: bool,
    /// Whether a model call is in progress.
    is_model_call_open: bool,
    /// Whether the next text part starts a new paragraph.
    starts_paragraph: bool,
    /// Whether a tool call started since the start of the current step.
    has_call_in_step: bool,
    is_formatting: bool,
}

impl EventSequencer {
    pub(crate) fn handle_event(&mut self, event: &RunEvent, emit: &mut EventEmitter<'_>) {
        if self.is_finished {
            return;
        }
        if !self.has_started {
            // If a reader begins after `RunStarted`, its first event may not contain the model.
            let unknown = ModelId::new("unknown", "unknown");
            let model = match &event.kind {
                RunEventKind::RunStarted { model, .. }
                | RunEventKind::ModelCallStarted { model, .. } => model,
                _ => &unknown,
            };
            self.has_started = true;
            emit(ClientEvent::RunStarted { event, model });
        }
        match &event.kind {
            // A resumed run repeats its unfinished model call, so the partial answer is discarded.
            RunEventKind::RunStarted { resumed: true, .. } => self.discard_partial_answer(emit),
            RunEventKind::RunStarted { .. } => return,
            RunEventKind::ModelCallStarted { step, .. } => return self.start_step(*step, emit),
            RunEventKind::TextDelta { text } => {
                return self.emit_answer_delta(AnswerPartKind::Text, text, emit);
            }
            RunEventKind::ReasoningDelta { text } => {
                return self.emit_answer_delta(AnswerPartKind::Reasoning, text, emit);
            }
            RunEventKind::ToolInputStarted { id, name } => {
                self.finish_answer_part(emit);
                self.has_call_in_step = true;
                return emit(ClientEvent::CallStarted(self.start_tool_call(id, name)));
            }
            RunEventKind::ToolInputDelta { id, json } => {
                if let Some(call) = self.find_tool_call(id)
                    && call.stage == CallStage::Streaming
                {
                    emit(ClientEvent::CallInputDelta(call, json));
                }
                return;
            }
            RunEventKind::ModelCallFinished { .. } => {
                self.is_model_call_open = false;
                self.finish_answer_part(emit);
            }
            RunEventKind::ModelCallFailed { .. } => {
                self.is_model_call_open = false;
                self.drop_unfinished_calls(emit);
            }
            RunEventKind::ModelCallRetried { .. } => self.drop_unfinished_calls(emit),
            RunEventKind::AskedAgain { .. } => {
                self.drop_unfinished_calls(emit);
                if self.is_formatting {
                    self.discard_step_text(emit);
                }
            }
            RunEventKind::PhaseStarted { phase, .. } => {
                self.finish_answer_part(emit);
                self.is_formatting = *phase == RunPhase::Formatting;
            }
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => return self.emit_planned_tool_call(id, server.as_deref(), tool, input, emit),
            RunEventKind::RunFinished { report } => return self.finish_run(report, emit),
            RunEventKind::ToolInputRepaired { id, .. }
            | RunEventKind::ToolAwaitingApproval { id }
            | RunEventKind::ToolApproved { id, .. }
            | RunEventKind::ToolDenied { id, .. }
            | RunEventKind::ToolFinished { id, .. } => {
                let call = self.find_tool_call(id);
                if let Some(call) = call.filter(|call| call.has_complete_input()) {
                    apply_event_to_call(call, &event.kind, emit);
                }
            }
            _ => {}
        }
        emit(ClientEvent::Other(event));
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Emits the client events that close a response before its run has finished. Unfinished tool
    /// calls are dropped. The text of an unfinished model call is marked as not part of the answer
    /// ([`ClientEvent::TextSuperseded`]). The next response contains the remaining events.
    pub(crate) fn emit_closing_events(&mut self, emit: &mut EventEmitter<'_>) {
        self.discard_partial_answer(emit);
        self.finish_step(emit);
    }

    /// Returns the tool calls that wait for an approval decision or a client's result, in the order
    /// of their start.
    pub(crate) fn waiting_tool_calls(&self) -> impl Iterator<Item = &ToolCallView> {
        let calls = self.calls.iter();
        calls.filter(|call| call.stage == CallStage::Waiting)
    }

    fn find_tool_call(&mut self, id: &str) -> Option<&mut ToolCallView> {
        let mut calls = self.calls.iter_mut().rev();
        calls.find(|call| call.tool_use_id == id)
    }

    /// Adds a tool call. If an earlier call of the run has the same id, the new call gets another
    /// id for the client.
    fn start_tool_call(&mut self, id: &str, name: &str) -> &mut ToolCallView {
        let client_id = if self.find_tool_call(id).is_some() {
            self.dropped += 1;
            format!("{id}~{}", self.dropped)
        } else {
            id.to_owned()
        };
        self.calls.push_mut(ToolCallView {
            id: client_id,
            tool_use_id: id.to_owned(),
            name: name.to_owned(),
            server: None,
            tool: None,
            is_streamed: true,
            needed_decision: false,
            client_input: String::new(),
            stage: CallStage::Streaming,
        })
    }

    fn emit_planned_tool_call(
        &mut self,
        id: &str,
        server: Option<&str>,
        tool: &str,
        input: &Value,
        emit: &mut EventEmitter<'_>,
    ) {
        self.finish_answer_part(emit);
        self.has_call_in_step = true;
        match self.find_tool_call(id).map(|call| call.stage) {
            Some(CallStage::Streaming) => {}
            None | Some(CallStage::Dropped) => {
                // The call is new for this response, which contains no deltas of the call's input.
                let call = self.start_tool_call(id, tool);
                call.is_streamed = false;
                emit(ClientEvent::CallStarted(call));
            }
            // The event is repeated for new readers, but this response already contains the call.
            Some(_) => return,
        }
        if let Some(call) = self.find_tool_call(id) {
            call.stage = CallStage::Ready;
            call.server = server.map(ToOwned::to_owned);
            call.tool = Some(tool.to_owned());
            call.set_client_input(input);
            emit(ClientEvent::CallInputReady(call, input));
        }
    }

    fn emit_answer_delta(&mut self, kind: AnswerPartKind, text: &str, emit: &mut EventEmitter<'_>) {
        if text.is_empty() {
            return;
        }
        let is_text = kind == AnswerPartKind::Text;
        let part = match self.part {
            Some(part) if part.kind == kind => part,
            _ => {
                self.finish_answer_part(emit);
                self.parts += 1;
                let part = AnswerPart {
                    kind,
                    number: self.parts,
                    starts_paragraph: is_text && std::mem::take(&mut self.starts_paragraph),
                };
                self.part = Some(part);
                emit(ClientEvent::PartStarted(part));
                part
            }
        };
        self.has_text |= is_text;
        self.has_text_in_step |= is_text;
        emit(ClientEvent::PartDelta(part, text));
    }

    fn start_step(&mut self, step: u32, emit: &mut EventEmitter<'_>) {
        self.finish_step(emit);
        self.step = Some(step);
        self.has_text_in_step = false;
        self.is_model_call_open = true;
        // Text after a tool result does not continue the text before the tool call.
        self.starts_paragraph |= std::mem::take(&mut self.has_call_in_step);
        emit(ClientEvent::StepStarted { step });
    }

    fn finish_run(&mut self, report: &RunReport, emit: &mut EventEmitter<'_>) {
        self.drop_unfinished_calls(emit);
        if !self.has_text {
            // No text was streamed, so the whole answer is emitted as one part.
            self.emit_answer_delta(AnswerPartKind::Text, &report.answer, emit);
        }
        self.finish_step(emit);
        let artifacts = report.content.iter();
        for item in artifacts.filter(|item| !matches!(item, AnswerItem::Text { .. })) {
            emit(ClientEvent::Artifact(item));
        }
        self.is_finished = true;
        emit(ClientEvent::RunFinished(report));
    }

    /// Discards the text and the unfinished tool calls of a model call that did not finish.
    fn discard_partial_answer(&mut self, emit: &mut EventEmitter<'_>) {
        self.drop_unfinished_calls(emit);
        if std::mem::take(&mut self.is_model_call_open) {
            self.discard_step_text(emit);
        }
    }

    fn discard_step_text(&mut self, emit: &mut EventEmitter<'_>) {
        if std::mem::take(&mut self.has_text_in_step) {
            self.has_text = false;
            self.starts_paragraph = true;
            emit(ClientEvent::TextSuperseded);
        }
    }

    /// Ends the open part, and drops the tool calls whose input is incomplete.
    fn drop_unfinished_calls(&mut self, emit: &mut EventEmitter<'_>) {
        self.finish_answer_part(emit);
        for call in &mut self.calls {
            if call.stage == CallStage::Streaming {
                call.stage = CallStage::Dropped;
                emit(ClientEvent::CallDropped(call));
            }
        }
    }

    fn finish_answer_part(&mut self, emit: &mut EventEmitter<'_>) {
        if let Some(part) = self.part.take() {
            emit(ClientEvent::PartFinished(part));
        }
    }

    fn finish_step(&mut self, emit: &mut EventEmitter<'_>) {
        self.drop_unfinished_calls(emit);
        if let Some(step) = self.step.take() {
            emit(ClientEvent::StepFinished { step });
        }
    }
}

/// Applies a run event to a tool call whose input is complete, and emits the resulting client
/// event.
fn apply_event_to_call(call: &mut ToolCallView, event: &RunEventKind, emit: &mut EventEmitter<'_>) {
    match event {
        RunEventKind::ToolInputRepaired { input, .. } => {
            call.set_client_input(input);
            emit(ClientEvent::CallInputReplaced(call, input));
        }
        RunEventKind::ToolAwaitingApproval { .. } if call.stage == CallStage::Ready => {
            call.stage = CallStage::Waiting;
            call.needed_decision = true;
            emit(ClientEvent::CallAwaitsDecision(call));
        }
        RunEventKind::ToolApproved { .. } => call.stage = CallStage::Ready,
        RunEventKind::ToolDenied { .. } if call.stage != CallStage::Denied => {
            call.stage = CallStage::Denied;
            emit(ClientEvent::CallDenied(call));
        }
        RunEventKind::ToolFinished {
            is_error,
            failure,
            content,
            structured,
            ..
        } => {
            let outcome = ToolCallResult {
                is_error: *is_error,
                failure: *failure,
                was_denied: call.stage == CallStage::Denied,
                content,
                structured: structured.as_deref(),
            };
            call.stage = CallStage::Done;
            emit(ClientEvent::CallFinished(call, outcome));
        }
        _ => {}
    }
}

/// Returns the type and the JSON of a run event, for protocols that have no equivalent event.
pub(crate) fn event_to_json(event: &RunEvent) -> (String, Value) {
    let json = serde_json::to_value(event).unwrap_or_default();
    let kind = json["type"].as_str().unwrap_or("event").to_owned();
    (kind, json)
}

#[cfg(test)]
#[path = "event_sequencer_tests.rs"]
mod tests;
