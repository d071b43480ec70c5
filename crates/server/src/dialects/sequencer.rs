//! Ordering of run events for the dialects.
//!
//! The events of different calls interleave. Dialects need more order: a part starts, grows and
//! ends before the next one; a tool call starts, has its input, and has one result; a step ends
//! before the next one starts. [`EventSequencer`] establishes this order, so that a dialect only converts
//! each [`ClientEvent`]. It stores the names of calls, but no content.

use std::collections::HashMap;

use serde_json::Value;
use switchboard_domain::{ModelId, ToolContent};
use switchboard_orchestration::{
    AnswerItem, RunEvent, RunEventKind, RunPhase, RunReport, ToolFailure,
};

use crate::hub::CLIENT_SERVER;

/// An ordered event for a dialect.
///
/// ```text
/// run    = Began (step | call | Note | Void)* Ended?
/// step   = StepBegan (part | call | Note | Void)* StepDone
/// part   = PartBegan PartGrew* PartDone
/// call   = CallBegan CallGrew* (CallReady … CallDone | CallDropped)
/// ```
///
/// `CallChanged`, `CallAsks` and `CallDenied` come between `CallReady` and `CallDone`. Parts do not
/// overlap, but calls may.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClientEvent<'a> {
    /// The first event, emitted once.
    RunStarted {
        /// The original event.
        event: &'a RunEvent,
        /// The model.
        model: &'a ModelId,
    },
    /// Start of a step.
    StepStarted {
        /// The number of the step, from 1.
        step: u32,
    },
    /// End of a step.
    StepFinished {
        /// The step.
        step: u32,
    },
    /// Start of text or reasoning.
    PartStarted(Part),
    /// More text of the part.
    PartDelta(Part, &'a str),
    /// End of the part.
    PartFinished(Part),
    /// Start of a call.
    CallStarted(&'a Call),
    /// More JSON text of the input.
    CallInputDelta(&'a Call, &'a str),
    /// The input is complete.
    CallInputReady(&'a Call, &'a Value),
    /// The input was replaced by a repair or by a person.
    CallInputReplaced(&'a Call, &'a Value),
    /// The input was not completed, and the call does not exist.
    CallDropped(&'a Call),
    /// The call needs an approval decision.
    CallAwaitsDecision(&'a Call),
    /// The call will not be executed.
    CallDenied(&'a Call),
    /// The call has its result.
    CallFinished(&'a Call, Outcome<'a>),
    /// The text since the start of the step is not part of the answer. It is emitted again,
    /// possibly changed.
    TextSuperseded,
    /// An event without an equivalent in the dialect.
    Other(&'a RunEvent),
    /// A separate item of the answer.
    Artifact(&'a AnswerItem),
    /// The run is finished.
    RunFinished(&'a RunReport),
}

/// A text or reasoning part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) kind: PartKind,
    /// The number within the run: 1, 2, 3, …
    pub(crate) number: u32,
    /// Whether the text does not continue the text before it.
    pub(crate) is_fresh: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Text,
    Reasoning,
}

/// A tool call as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// The id for the client: the id of the run, unless a dropped call had it.
    pub(crate) id: String,
    /// The id in the run.
    pub(crate) tool_use: String,
    /// The name declared to the model if known, otherwise the original name.
    pub(crate) name: String,
    /// The server of the tool.
    pub(crate) server: Option<String>,
    /// The original name of the tool.
    pub(crate) tool: Option<String>,
    /// Whether the input was streamed.
    pub(crate) is_streamed: bool,
    /// Whether a decision was requested.
    pub(crate) was_asked: bool,
    stage: Stage,
}

impl Call {
    /// Whether the tool runs at the client.
    pub(crate) fn is_clients(&self) -> bool {
        self.server.as_deref() == Some(CLIENT_SERVER)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The model writes the input.
    Written,
    /// The input is complete.
    Ready,
    /// A decision was requested.
    Asked,
    /// It will not be executed.
    Denied,
    /// It has its result.
    Done,
    Dropped,
}

/// The result of a tool call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome<'a> {
    pub(crate) is_error: bool,
    pub(crate) failure: Option<ToolFailure>,
    /// Whether [`ClientEvent::CallDenied`] was already emitted.
    pub(crate) was_denied: bool,
    pub(crate) content: &'a [ToolContent],
    pub(crate) structured: Option<&'a Value>,
}

/// The state between two events.
#[derive(Debug, Default)]
pub(crate) struct EventSequencer {
    has_begun: bool,
    is_over: bool,
    step: Option<u32>,
    part: Option<Part>,
    parts: u32,
    /// The calls by their id in the run.
    calls: HashMap<String, Call>,
    dropped: u32,
    /// Whether text of the answer was emitted.
    has_said: bool,
    /// Whether text was emitted since the start of the step.
    said_in_step: bool,
    /// Whether a model call is in progress.
    is_asking: bool,
    /// Whether the next text does not continue the last one.
    is_fresh: bool,
    /// Whether there was a call since the start of the step.
    has_called: bool,
    is_formatting: bool,
}

impl EventSequencer {
    pub(crate) fn event(&mut self, event: &RunEvent, say: &mut dyn FnMut(ClientEvent<'_>)) {
        if self.is_over {
            return;
        }
        if !self.has_begun {
            // A log starts with this event; other input still needs a beginning.
            let unknown = ModelId::new("unknown", "unknown");
            let model = match &event.kind {
                RunEventKind::RunStarted { model, .. }
                | RunEventKind::ModelCallStarted { model, .. } => model,
                _ => &unknown,
            };
            self.has_begun = true;
            say(ClientEvent::RunStarted { event, model });
        }
        match &event.kind {
            RunEventKind::RunStarted { resumed: true, .. } => {
                // The partial answer is void, because the model is called again.
                self.takes_back(say);
                say(ClientEvent::Other(event));
            }
            RunEventKind::RunStarted { .. } => {}
            RunEventKind::ModelCallStarted { step, .. } => {
                self.ends_step(say);
                self.step = Some(*step);
                self.said_in_step = false;
                self.is_asking = true;
                // Text after a result is a new part.
                self.is_fresh |= std::mem::take(&mut self.has_called);
                say(ClientEvent::StepStarted { step: *step });
            }
            RunEventKind::TextDelta { text } => self.grows(PartKind::Text, text, say),
            RunEventKind::ReasoningDelta { text } => self.grows(PartKind::Reasoning, text, say),
            RunEventKind::ToolInputStarted { id, name } => {
                self.ends_part(say);
                self.has_called = true;
                let call = self.begins(id, name);
                say(ClientEvent::CallStarted(call));
            }
            RunEventKind::ToolInputDelta { id, json } => {
                if let Some(call) = self.calls.get(id)
                    && call.stage == Stage::Written
                {
                    say(ClientEvent::CallInputDelta(call, json));
                }
            }
            RunEventKind::ModelCallFinished { .. } => {
                self.is_asking = false;
                self.ends_part(say);
                say(ClientEvent::Other(event));
            }
            RunEventKind::ModelCallFailed { .. } => {
                self.is_asking = false;
                self.ends_part(say);
                self.drops_what_was_written(say);
                say(ClientEvent::Other(event));
            }
            RunEventKind::ModelCallRetried { .. } => {
                self.ends_part(say);
                self.drops_what_was_written(say);
                say(ClientEvent::Other(event));
            }
            RunEventKind::AskedAgain { .. } => {
                self.ends_part(say);
                self.drops_what_was_written(say);
                if self.is_formatting {
                    self.voids(say);
                }
                say(ClientEvent::Other(event));
            }
            RunEventKind::PhaseStarted { phase, .. } => {
                self.ends_part(say);
                self.is_formatting = *phase == RunPhase::Formatting;
                say(ClientEvent::Other(event));
            }
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => self.plans(id, server.as_deref(), tool, input, say),
            RunEventKind::RunFinished { report } => self.finishes(report, say),
            _ => self.about_a_call(event, say),
        }
    }

    /// Closes open parts in a response that ends before the run. The next response contains the
    /// rest.
    pub(crate) fn rests(&mut self, say: &mut dyn FnMut(ClientEvent<'_>)) {
        self.takes_back(say);
        self.ends_step(say);
    }

    /// Returns the waiting calls, unordered.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &Call> {
        let calls = self.calls.values();
        calls.filter(|call| call.stage == Stage::Asked)
    }

    /// Handles events of planned calls. All others are notes.
    fn about_a_call(&mut self, event: &RunEvent, say: &mut dyn FnMut(ClientEvent<'_>)) {
        match &event.kind {
            RunEventKind::ToolInputRepaired { id, input, .. } => {
                if let Some(call) = self.open(id) {
                    say(ClientEvent::CallInputReplaced(call, input));
                }
                say(ClientEvent::Other(event));
            }
            RunEventKind::ToolAwaitingApproval { id } => {
                if let Some(call) = self.open(id)
                    && call.stage == Stage::Ready
                {
                    call.stage = Stage::Asked;
                    call.was_asked = true;
                    say(ClientEvent::CallAwaitsDecision(call));
                }
                say(ClientEvent::Other(event));
            }
            RunEventKind::ToolApproved { id, .. } => {
                if let Some(call) = self.open(id) {
                    call.stage = Stage::Ready;
                }
                say(ClientEvent::Other(event));
            }
            RunEventKind::ToolDenied { id, .. } => {
                if let Some(call) = self.open(id)
                    && call.stage != Stage::Denied
                {
                    call.stage = Stage::Denied;
                    say(ClientEvent::CallDenied(call));
                }
                say(ClientEvent::Other(event));
            }
            RunEventKind::ToolFinished {
                id,
                is_error,
                failure,
                content,
                structured,
                ..
            } => {
                if let Some(call) = self.open(id) {
                    let outcome = Outcome {
                        is_error: *is_error,
                        failure: *failure,
                        was_denied: call.stage == Stage::Denied,
                        content,
                        structured: structured.as_deref(),
                    };
                    call.stage = Stage::Done;
                    say(ClientEvent::CallFinished(call, outcome));
                }
                say(ClientEvent::Other(event));
            }
            _ => say(ClientEvent::Other(event)),
        }
    }

    fn open(&mut self, id: &str) -> Option<&mut Call> {
        let call = self.calls.get_mut(id)?;
        let is_open = matches!(call.stage, Stage::Ready | Stage::Asked | Stage::Denied);
        is_open.then_some(call)
    }

    /// Starts a call. A call that reuses the id of a dropped one gets another id for the client.
    fn begins(&mut self, id: &str, name: &str) -> &mut Call {
        let visible = if self.calls.contains_key(id) {
            self.dropped += 1;
            format!("{id}~{}", self.dropped)
        } else {
            id.to_owned()
        };
        let call = Call {
            id: visible,
            tool_use: id.to_owned(),
            name: name.to_owned(),
            server: None,
            tool: None,
            is_streamed: true,
            was_asked: false,
            stage: Stage::Written,
        };
        let slot = self.calls.entry(id.to_owned()).insert_entry(call);
        slot.into_mut()
    }

    fn plans(
        &mut self,
        id: &str,
        server: Option<&str>,
        tool: &str,
        input: &Value,
        say: &mut dyn FnMut(ClientEvent<'_>),
    ) {
        self.ends_part(say);
        self.has_called = true;
        let stage = self.calls.get(id).map(|call| call.stage);
        match stage {
            Some(Stage::Written) => {}
            None | Some(Stage::Dropped) => {
                // The input was not streamed, or another reader received it.
                let call = self.begins(id, tool);
                call.is_streamed = false;
                say(ClientEvent::CallStarted(call));
            }
            // Repeated for readers that start here.
            Some(_) => return,
        }
        if let Some(call) = self.calls.get_mut(id) {
            call.stage = Stage::Ready;
            call.server = server.map(ToOwned::to_owned);
            call.tool = Some(tool.to_owned());
            say(ClientEvent::CallInputReady(call, input));
        }
    }

    fn grows(&mut self, kind: PartKind, text: &str, say: &mut dyn FnMut(ClientEvent<'_>)) {
        if text.is_empty() {
            return;
        }
        if self.part.is_none_or(|part| part.kind != kind) {
            self.ends_part(say);
            self.parts += 1;
            let is_text = kind == PartKind::Text;
            let part = Part {
                kind,
                number: self.parts,
                is_fresh: is_text && std::mem::take(&mut self.is_fresh),
            };
            self.part = Some(part);
            say(ClientEvent::PartStarted(part));
        }
        if kind == PartKind::Text {
            self.has_said = true;
            self.said_in_step = true;
        }
        if let Some(part) = self.part {
            say(ClientEvent::PartDelta(part, text));
        }
    }

    fn finishes(&mut self, report: &RunReport, say: &mut dyn FnMut(ClientEvent<'_>)) {
        self.ends_part(say);
        self.drops_what_was_written(say);
        if !self.has_said && !report.answer.is_empty() {
            // An answer without any delta.
            self.grows(PartKind::Text, &report.answer, say);
            self.ends_part(say);
        }
        self.ends_step(say);
        let artifacts = report.content.iter();
        for item in artifacts.filter(|item| !matches!(item, AnswerItem::Text { .. })) {
            say(ClientEvent::Artifact(item));
        }
        self.is_over = true;
        say(ClientEvent::RunFinished(report));
    }

    /// Marks the partial answer as void.
    fn takes_back(&mut self, say: &mut dyn FnMut(ClientEvent<'_>)) {
        self.ends_part(say);
        self.drops_what_was_written(say);
        if std::mem::take(&mut self.is_asking) {
            self.voids(say);
        }
    }

    fn voids(&mut self, say: &mut dyn FnMut(ClientEvent<'_>)) {
        if std::mem::take(&mut self.said_in_step) {
            self.has_said = false;
            self.is_fresh = true;
            say(ClientEvent::TextSuperseded);
        }
    }

    fn drops_what_was_written(&mut self, say: &mut dyn FnMut(ClientEvent<'_>)) {
        let calls = self.calls.values_mut();
        let mut written: Vec<_> = calls.filter(|call| call.stage == Stage::Written).collect();
        written.sort_by(|one, other| one.id.cmp(&other.id));
        for call in written {
            call.stage = Stage::Dropped;
            say(ClientEvent::CallDropped(call));
        }
    }

    fn ends_part(&mut self, say: &mut dyn FnMut(ClientEvent<'_>)) {
        if let Some(part) = self.part.take() {
            say(ClientEvent::PartFinished(part));
        }
    }

    fn ends_step(&mut self, say: &mut dyn FnMut(ClientEvent<'_>)) {
        self.ends_part(say);
        if self.step.is_some() {
            self.drops_what_was_written(say);
        }
        if let Some(step) = self.step.take() {
            say(ClientEvent::StepFinished { step });
        }
    }
}

/// Returns the name of an event without an equivalent: the `type` of its JSON.
pub(crate) fn name(event: &RunEvent) -> &'static str {
    match &event.kind {
        RunEventKind::RunStarted { .. } => "run_started",
        RunEventKind::ToolsUnavailable { .. } => "tools_unavailable",
        RunEventKind::ServerChanged { .. } => "server_changed",
        RunEventKind::PhaseStarted { .. } => "phase_started",
        RunEventKind::HistoryTrimmed { .. } => "history_trimmed",
        RunEventKind::HistorySummarised { .. } => "history_summarised",
        RunEventKind::ModelSwitched { .. } => "model_switched",
        RunEventKind::ToolsDropped { .. } => "tools_dropped",
        RunEventKind::AskedAgain { .. } => "asked_again",
        RunEventKind::FormatRepaired { .. } => "format_repaired",
        RunEventKind::ModelCallStarted { .. } => "model_call_started",
        RunEventKind::TextDelta { .. } => "text_delta",
        RunEventKind::ReasoningDelta { .. } => "reasoning_delta",
        RunEventKind::ToolInputStarted { .. } => "tool_input_started",
        RunEventKind::ToolInputDelta { .. } => "tool_input_delta",
        RunEventKind::ProviderBlock { .. } => "provider_block",
        RunEventKind::ModelCallFinished { .. } => "model_call_finished",
        RunEventKind::ModelCallRetried { .. } => "model_call_retried",
        RunEventKind::ModelCallFailed { .. } => "model_call_failed",
        RunEventKind::Warning { .. } => "warning",
        RunEventKind::ToolPlanned { .. } => "tool_planned",
        RunEventKind::ToolInputRepaired { .. } => "tool_input_repaired",
        RunEventKind::ToolAwaitingApproval { .. } => "tool_awaiting_approval",
        RunEventKind::ToolApproved { .. } => "tool_approved",
        RunEventKind::ToolDenied { .. } => "tool_denied",
        RunEventKind::ToolStarted { .. } => "tool_started",
        RunEventKind::ToolProgressed { .. } => "tool_progressed",
        RunEventKind::ToolRetried { .. } => "tool_retried",
        RunEventKind::ToolFinished { .. } => "tool_finished",
        RunEventKind::RunParked { .. } => "run_parked",
        RunEventKind::RunFinished { .. } => "run_finished",
        RunEventKind::QuestionAsked { .. } => "question_asked",
        RunEventKind::QuestionAnswered { .. } => "question_answered",
        _ => "event",
    }
}

#[cfg(test)]
#[path = "sequencer_tests.rs"]
mod tests;
