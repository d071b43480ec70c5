//! A run in an order that every dialect can say.
//!
//! The events of a run are told as they happen. The dialects want more order than that: a part is begun, grows and is
//! done, one at a time; a tool call is begun, has its input, and has one result; a step is done before the next
//! begins. [`Telling`] keeps that order, so that each dialect only has to find words for a [`Beat`]. It holds the names
//! of the calls and nothing of what was said.

use std::collections::HashMap;

use serde_json::Value;
use switchboard_domain::{ModelId, ToolContent};
use switchboard_orchestration::{
    AnswerItem, RunEvent, RunEventKind, RunPhase, RunReport, ToolFailure,
};

use super::client_tools;

/// What a dialect finds words for.
///
/// ```text
/// run    = Began (step | call | Note | Void)* Ended?
/// step   = StepBegan (part | call | Note | Void)* StepDone
/// part   = PartBegan PartGrew* PartDone
/// call   = CallBegan CallGrew* (CallReady … CallDone | CallDropped)
/// ```
///
/// Between `CallReady` and `CallDone` come `CallChanged`, `CallAsks` and `CallDenied`. Parts never overlap; calls may.
#[derive(Debug, Clone, Copy)]
pub(super) enum Beat<'a> {
    /// The first of all, once.
    Began {
        /// The event that says so.
        event: &'a RunEvent,
        /// The model that will be asked.
        model: &'a ModelId,
    },
    /// A model is asked.
    StepBegan {
        /// 1 for the first time.
        step: u32,
    },
    /// What was begun by it is done.
    StepDone {
        /// Which.
        step: u32,
    },
    /// Text or thinking begins.
    PartBegan(Part),
    /// More of it.
    PartGrew(Part, &'a str),
    /// It is whole.
    PartDone(Part),
    /// The model begins to write a call.
    CallBegan(&'a Call),
    /// More of its input, as JSON text.
    CallGrew(&'a Call, &'a str),
    /// The input is whole.
    CallReady(&'a Call, &'a Value),
    /// The input is another one now: mended, or changed by a person.
    CallChanged(&'a Call, &'a Value),
    /// The input was never whole, and there is no call.
    CallDropped(&'a Call),
    /// A person is asked whether it may run.
    CallAsks(&'a Call),
    /// It will not run.
    CallDenied(&'a Call),
    /// It has its result.
    CallDone(&'a Call, Outcome<'a>),
    /// The text since the step began is no part of the answer: it is said again, or in another way.
    Void,
    /// Something a dialect has no word of its own for.
    Note(&'a RunEvent),
    /// An item of the answer that stands for itself.
    Artifact(&'a AnswerItem),
    /// The run is over.
    Ended(&'a RunReport),
}

/// Text or thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) kind: PartKind,
    /// Unique within the run: 1, 2, 3, …
    pub(super) number: u32,
    /// Text that does not go on where the text before it stopped.
    pub(super) is_fresh: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartKind {
    Text,
    Reasoning,
}

/// A tool call, as a client knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// The id that the client sees: the run's own, unless that stood for a call that was dropped.
    pub(super) id: String,
    /// The run's id of it.
    pub(super) tool_use: String,
    /// As it was declared to the model, where that is known, else the tool's own name.
    pub(super) name: String,
    /// The server that offers the tool.
    pub(super) server: Option<String>,
    /// The tool's own name.
    pub(super) tool: Option<String>,
    /// Its input was told piece by piece.
    pub(super) is_streamed: bool,
    /// A person was asked about it.
    pub(super) was_asked: bool,
    stage: Stage,
}

impl Call {
    /// It is of a tool that runs at the client.
    pub(super) fn is_clients(&self) -> bool {
        self.server.as_deref() == Some(client_tools::SERVER)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The model writes its input.
    Written,
    /// The input is whole.
    Ready,
    /// A person is asked.
    Asked,
    /// It will not run.
    Denied,
    /// It has its result.
    Done,
    Dropped,
}

/// The result of a tool call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome<'a> {
    pub(super) is_error: bool,
    pub(super) failure: Option<ToolFailure>,
    /// [`Beat::CallDenied`] said it already.
    pub(super) was_denied: bool,
    pub(super) content: &'a [ToolContent],
    pub(super) structured: Option<&'a Value>,
}

/// The state between two events.
#[derive(Debug, Default)]
pub(super) struct Telling {
    has_begun: bool,
    is_over: bool,
    step: Option<u32>,
    part: Option<Part>,
    parts: u32,
    /// Calls by the run's id.
    calls: HashMap<String, Call>,
    dropped: u32,
    /// Text was said that counts.
    has_said: bool,
    /// Text was said since the step began.
    said_in_step: bool,
    /// A model is at it.
    is_asking: bool,
    /// The next text does not go on where the last one stopped.
    is_fresh: bool,
    /// There was a call since the step began.
    has_called: bool,
    is_formatting: bool,
}

impl Telling {
    pub(super) fn event(&mut self, event: &RunEvent, say: &mut dyn FnMut(Beat<'_>)) {
        if self.is_over {
            return;
        }
        if !self.has_begun {
            // A log is read from its first event; were it not, there would still be a beginning.
            let unknown = ModelId::new("unknown", "unknown");
            let model = match &event.kind {
                RunEventKind::RunStarted { model, .. }
                | RunEventKind::ModelCallStarted { model, .. } => model,
                _ => &unknown,
            };
            self.has_begun = true;
            say(Beat::Began { event, model });
        }
        match &event.kind {
            RunEventKind::RunStarted { resumed: true, .. } => {
                // What a model had begun to say is void: it is asked again.
                self.takes_back(say);
                say(Beat::Note(event));
            }
            RunEventKind::RunStarted { .. } => {}
            RunEventKind::ModelCallStarted { step, .. } => {
                self.ends_step(say);
                self.step = Some(*step);
                self.said_in_step = false;
                self.is_asking = true;
                // What is said after a call's result is another saying.
                self.is_fresh |= std::mem::take(&mut self.has_called);
                say(Beat::StepBegan { step: *step });
            }
            RunEventKind::TextDelta { text } => self.grows(PartKind::Text, text, say),
            RunEventKind::ReasoningDelta { text } => self.grows(PartKind::Reasoning, text, say),
            RunEventKind::ToolInputStarted { id, name } => {
                self.ends_part(say);
                self.has_called = true;
                let call = self.begins(id, name);
                say(Beat::CallBegan(call));
            }
            RunEventKind::ToolInputDelta { id, json } => {
                if let Some(call) = self.calls.get(id)
                    && call.stage == Stage::Written
                {
                    say(Beat::CallGrew(call, json));
                }
            }
            RunEventKind::ModelCallFinished { .. } => {
                self.is_asking = false;
                self.ends_part(say);
                say(Beat::Note(event));
            }
            RunEventKind::ModelCallFailed { .. } => {
                self.is_asking = false;
                self.ends_part(say);
                self.drops_what_was_written(say);
                say(Beat::Note(event));
            }
            RunEventKind::ModelCallRetried { .. } => {
                self.ends_part(say);
                self.drops_what_was_written(say);
                say(Beat::Note(event));
            }
            RunEventKind::AskedAgain { .. } => {
                self.ends_part(say);
                self.drops_what_was_written(say);
                if self.is_formatting {
                    self.voids(say);
                }
                say(Beat::Note(event));
            }
            RunEventKind::PhaseStarted { phase, .. } => {
                self.ends_part(say);
                self.is_formatting = *phase == RunPhase::Formatting;
                say(Beat::Note(event));
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

    /// Closes what is open in a response that ends while the run does not: the rest is told in another one.
    pub(super) fn rests(&mut self, say: &mut dyn FnMut(Beat<'_>)) {
        self.takes_back(say);
        self.ends_step(say);
    }

    /// The calls that wait for a person, in no order.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Call> {
        let calls = self.calls.values();
        calls.filter(|call| call.stage == Stage::Asked)
    }

    /// What happens to a call that is planned; everything else is a note.
    fn about_a_call(&mut self, event: &RunEvent, say: &mut dyn FnMut(Beat<'_>)) {
        match &event.kind {
            RunEventKind::ToolInputRepaired { id, input, .. } => {
                if let Some(call) = self.open(id) {
                    say(Beat::CallChanged(call, input));
                }
                say(Beat::Note(event));
            }
            RunEventKind::ToolAwaitingApproval { id } => {
                if let Some(call) = self.open(id)
                    && call.stage == Stage::Ready
                {
                    call.stage = Stage::Asked;
                    call.was_asked = true;
                    say(Beat::CallAsks(call));
                }
                say(Beat::Note(event));
            }
            RunEventKind::ToolApproved { id, .. } => {
                if let Some(call) = self.open(id) {
                    call.stage = Stage::Ready;
                }
                say(Beat::Note(event));
            }
            RunEventKind::ToolDenied { id, .. } => {
                if let Some(call) = self.open(id)
                    && call.stage != Stage::Denied
                {
                    call.stage = Stage::Denied;
                    say(Beat::CallDenied(call));
                }
                say(Beat::Note(event));
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
                    say(Beat::CallDone(call, outcome));
                }
                say(Beat::Note(event));
            }
            _ => say(Beat::Note(event)),
        }
    }

    fn open(&mut self, id: &str) -> Option<&mut Call> {
        let call = self.calls.get_mut(id)?;
        let is_open = matches!(call.stage, Stage::Ready | Stage::Asked | Stage::Denied);
        is_open.then_some(call)
    }

    /// A call of this id begins. One that was dropped under the same id keeps it for a client.
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
        say: &mut dyn FnMut(Beat<'_>),
    ) {
        self.ends_part(say);
        self.has_called = true;
        let stage = self.calls.get(id).map(|call| call.stage);
        match stage {
            Some(Stage::Written) => {}
            None | Some(Stage::Dropped) => {
                // It came whole, or its pieces were told to somebody else.
                let call = self.begins(id, tool);
                call.is_streamed = false;
                say(Beat::CallBegan(call));
            }
            // Told again to whoever watches only from here on.
            Some(_) => return,
        }
        if let Some(call) = self.calls.get_mut(id) {
            call.stage = Stage::Ready;
            call.server = server.map(ToOwned::to_owned);
            call.tool = Some(tool.to_owned());
            say(Beat::CallReady(call, input));
        }
    }

    fn grows(&mut self, kind: PartKind, text: &str, say: &mut dyn FnMut(Beat<'_>)) {
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
            say(Beat::PartBegan(part));
        }
        if kind == PartKind::Text {
            self.has_said = true;
            self.said_in_step = true;
        }
        if let Some(part) = self.part {
            say(Beat::PartGrew(part, text));
        }
    }

    fn finishes(&mut self, report: &RunReport, say: &mut dyn FnMut(Beat<'_>)) {
        self.ends_part(say);
        self.drops_what_was_written(say);
        if !self.has_said && !report.answer.is_empty() {
            // An answer of which nothing was told on the way.
            self.grows(PartKind::Text, &report.answer, say);
            self.ends_part(say);
        }
        self.ends_step(say);
        let artifacts = report.content.iter();
        for item in artifacts.filter(|item| !matches!(item, AnswerItem::Text { .. })) {
            say(Beat::Artifact(item));
        }
        self.is_over = true;
        say(Beat::Ended(report));
    }

    /// An answer that was being given is given anew, or by nobody.
    fn takes_back(&mut self, say: &mut dyn FnMut(Beat<'_>)) {
        self.ends_part(say);
        self.drops_what_was_written(say);
        if std::mem::take(&mut self.is_asking) {
            self.voids(say);
        }
    }

    fn voids(&mut self, say: &mut dyn FnMut(Beat<'_>)) {
        if std::mem::take(&mut self.said_in_step) {
            self.has_said = false;
            self.is_fresh = true;
            say(Beat::Void);
        }
    }

    fn drops_what_was_written(&mut self, say: &mut dyn FnMut(Beat<'_>)) {
        let calls = self.calls.values_mut();
        let mut written: Vec<_> = calls.filter(|call| call.stage == Stage::Written).collect();
        written.sort_by(|one, other| one.id.cmp(&other.id));
        for call in written {
            call.stage = Stage::Dropped;
            say(Beat::CallDropped(call));
        }
    }

    fn ends_part(&mut self, say: &mut dyn FnMut(Beat<'_>)) {
        if let Some(part) = self.part.take() {
            say(Beat::PartDone(part));
        }
    }

    fn ends_step(&mut self, say: &mut dyn FnMut(Beat<'_>)) {
        self.ends_part(say);
        if self.step.is_some() {
            self.drops_what_was_written(say);
        }
        if let Some(step) = self.step.take() {
            say(Beat::StepDone { step });
        }
    }
}

/// The name under which an event is told where a dialect has no word of its own for it: the `type` of its JSON.
pub(super) fn name(event: &RunEvent) -> &'static str {
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
#[path = "telling_tests.rs"]
mod tests;
