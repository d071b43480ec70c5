//! How a run takes in what its driver brings back.

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::Arc,
};

use serde_json::Value;
use switchboard_domain::{
    ApprovalDecision, ChatResponse, FinishReason, Message, ModelError, Part, Role, ServerProblem,
    ToolInput, ToolResult, ToolUse, Warning, WarningKind,
};

use super::{
    CallState, PendingCall, Phase, Run, ToolAnswer, UnexpectedInput,
    batch::{self, CallEnd},
    place,
};
use crate::{
    Outcome, RecordedResult, RunError, RunErrorKind, RunEventKind, ToolCallRecord, ToolFailure,
    approval::{Verdict, only_reads},
};

type Events = Vec<RunEventKind>;

impl Run {
    /// Servers or tools are missing; the run goes on without them.
    pub fn tools_unavailable(&mut self, problems: &[ServerProblem]) -> Events {
        let mut events = Vec::new();
        for problem in problems {
            let message = format!("{}: {}", problem.server, problem.message);
            let warning = Warning::new(WarningKind::ToolUnavailable, message);
            // Each step asks the host anew; a person needs to hear of a dead server once.
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
                events.push(RunEventKind::ToolsUnavailable {
                    problem: problem.clone(),
                });
            }
        }
        events
    }

    /// The model answered.
    pub fn model_answered(&mut self, answer: ChatResponse) -> Result<Events, UnexpectedInput> {
        if !matches!(self.phase, Phase::Asked) {
            return Err(unexpected("model_answered", "no model call is under way"));
        }
        let mut events = vec![RunEventKind::ModelCallFinished {
            step: self.steps,
            model: answer.model,
            finish_reason: answer.finish.clone(),
            finish_raw: answer.finish_raw,
            usage: answer.usage,
            tool_choice: answer.tool_choice,
        }];
        self.usage.add(answer.usage);
        self.warnings.extend(answer.warnings);
        self.finish = Some(answer.finish.clone());
        if let FinishReason::Other(word) = &answer.finish {
            // It may be a new word for a good end or one for a crash: nobody here can tell.
            let message = format!(
                "the answer ended with `{word}`, which is not known here; it may be incomplete"
            );
            let warning = Warning::new(WarningKind::UnknownWireValue, message);
            self.warnings.push(warning.clone());
            events.push(RunEventKind::Warning { warning });
        }

        let mut message = answer.message;
        self.make_ids_unique(&mut message);
        let uses: Vec<ToolUse> = message.tool_uses().cloned().collect();
        let silent = message.parts.is_empty();
        if !silent {
            self.messages.push(Arc::new(message));
        }
        if uses.is_empty() {
            self.answered_without_tools(answer.finish, silent);
        } else {
            let withheld = withheld_calls(&answer.finish);
            let calls = uses
                .into_iter()
                .map(|tool_use| self.plan(tool_use, withheld, &mut events))
                .collect();
            self.phase = Phase::Batch(calls);
            self.close_batch_if_settled();
            if withheld.is_some() {
                self.end_by(answer.finish);
            }
        }
        Ok(events)
    }

    /// The model could not be asked, or broke off after `partial`.
    pub fn model_failed(
        &mut self,
        error: &ModelError,
        partial: Option<ChatResponse>,
    ) -> Result<Events, UnexpectedInput> {
        if !matches!(self.phase, Phase::Asked) {
            return Err(unexpected("model_failed", "no model call is under way"));
        }
        self.keep_partial(partial);
        let error = RunError::from(error);
        let event = RunEventKind::ModelCallFailed {
            step: self.steps,
            error: error.clone(),
        };
        self.end_with(error);
        Ok(vec![event])
    }

    /// Somebody decided about a call that waits for approval.
    pub fn decided(
        &mut self,
        id: &str,
        decision: ApprovalDecision,
    ) -> Result<Events, UnexpectedInput> {
        let position = self.position("decided", id)?;
        let Phase::Batch(calls) = &mut self.phase else {
            return Err(unexpected("decided", "no tool calls are under way"));
        };
        let call = &mut calls[position];
        let CallState::Waiting { input } = &mut call.state else {
            return Err(unexpected(
                "decided",
                format!("`{id}` does not wait for approval"),
            ));
        };
        let input = mem::take(input);
        let refusal = match decision {
            ApprovalDecision::Allow { input: None, .. } => {
                call.state = CallState::Ready { input };
                return Ok(Vec::new());
            }
            ApprovalDecision::Allow {
                input: Some(edited),
                ..
            } => {
                let name = call.tool_use.name.clone();
                let record = call.record;
                let checked = match self.definition(&name).cloned() {
                    Some(definition) => self.validators.check(&definition, edited),
                    None => Ok(edited),
                };
                match checked {
                    Ok(edited) => {
                        if let Some(entry) = self.records.get_mut(record) {
                            entry.input = Value::Object(edited.clone());
                        }
                        self.set_state(position, CallState::Ready { input: edited });
                        return Ok(Vec::new());
                    }
                    Err(faults) => (
                        ToolFailure::InvalidInput,
                        format!("the edited input does not fit the tool: {faults}"),
                    ),
                }
            }
            ApprovalDecision::Deny {
                reason: Some(reason),
                ..
            } => (
                ToolFailure::Denied,
                format!("the person declined it: {reason}"),
            ),
            ApprovalDecision::Deny { reason: None, .. } => {
                (ToolFailure::Denied, "the person declined it".to_owned())
            }
            ApprovalDecision::NobodyThere => (
                ToolFailure::NotApproved,
                "it needs a person's approval and nobody is there to ask".to_owned(),
            ),
            ApprovalDecision::Expired => (
                ToolFailure::NotApproved,
                "it needs a person's approval and nobody answered in time".to_owned(),
            ),
            // The question stays open: nothing changes.
            ApprovalDecision::Later => {
                call.state = CallState::Waiting { input };
                return Ok(Vec::new());
            }
        };
        let (failure, refusal) = refusal;
        let mut events = vec![RunEventKind::ToolDenied {
            id: id.to_owned(),
            reason: refusal.clone(),
        }];
        events.extend(self.settle(
            position,
            CallEnd::failed(failure, format!("Not executed: {refusal}.")),
        ));
        self.close_batch_if_settled();
        Ok(events)
    }

    /// The driver starts a call: from here on its effect is not known until it finishes.
    pub fn tool_started(&mut self, id: &str) -> Result<Events, UnexpectedInput> {
        let position = self.position("tool_started", id)?;
        let Phase::Batch(calls) = &mut self.phase else {
            return Err(unexpected("tool_started", "no tool calls are under way"));
        };
        let CallState::Ready { input } = &mut calls[position].state else {
            return Err(unexpected(
                "tool_started",
                format!("`{id}` is not ready to start"),
            ));
        };
        let input = mem::take(input);
        calls[position].state = CallState::Started { input };
        Ok(vec![RunEventKind::ToolStarted { id: id.to_owned() }])
    }

    /// A started call is over.
    pub fn tool_finished(
        &mut self,
        id: &str,
        answer: ToolAnswer,
    ) -> Result<Events, UnexpectedInput> {
        let position = self.position("tool_finished", id)?;
        let started = matches!(&self.phase, Phase::Batch(calls)
            if matches!(calls[position].state, CallState::Started { .. }));
        if !started {
            return Err(unexpected(
                "tool_finished",
                format!("`{id}` was not started"),
            ));
        }
        let event = self.settle(position, CallEnd::from(answer));
        self.close_batch_if_settled();
        Ok(Vec::from_iter(event))
    }

    /// Takes up a run that was stored while its driver was at work. A call with intent and no result
    /// was interrupted and its effect is unknown: it runs again only if its tool says that this does
    /// no harm, else the model and the person are told.
    pub fn recover(&mut self) -> Events {
        let mut events = Vec::new();
        if matches!(self.phase, Phase::Asked) {
            // The answer never came: ask again, and do not count the lost call twice.
            self.phase = Phase::Model;
            self.steps = self.steps.saturating_sub(1);
        }
        for position in 0..self.batch_len() {
            let Phase::Batch(calls) = &mut self.phase else {
                break;
            };
            let call = &mut calls[position];
            let CallState::Started { input } = &mut call.state else {
                continue;
            };
            let annotations = call.annotations;
            if only_reads(annotations) || annotations.idempotent == Some(true) {
                call.state = CallState::Ready {
                    input: mem::take(input),
                };
            } else {
                let end = CallEnd::failed(
                    ToolFailure::Interrupted,
                    "Interrupted: the program ended while the tool was running. Whether it did its \
                     work is not known; check before you try again.",
                );
                events.extend(self.settle(position, end.after(1, 0)));
            }
        }
        self.close_batch_if_settled();
        events
    }

    /// Stops the run. Calls that did not finish get a result that says so, so that the history
    /// stays whole.
    ///
    /// `partial` is what a model call that was under way had answered, `elapsed_ms` for how many
    /// milliseconds the calls that had started were running, by their ids. A call that is not in it
    /// is reported with 0.
    pub fn cancel(
        &mut self,
        partial: Option<ChatResponse>,
        elapsed_ms: &HashMap<String, u64>,
    ) -> Events {
        let mut events = Vec::new();
        self.keep_partial(partial);
        for position in 0..self.batch_len() {
            let Phase::Batch(calls) = &self.phase else {
                break;
            };
            let call = &calls[position];
            let (text, attempts, duration_ms) = match &call.state {
                CallState::Settled { .. } => continue,
                CallState::Started { .. } => (
                    "Cancelled while running; whether the tool did its work is not known.",
                    1,
                    elapsed_ms.get(&call.tool_use.id).copied().unwrap_or(0),
                ),
                CallState::Waiting { .. } | CallState::Ready { .. } => {
                    ("Not executed: the run was cancelled.", 0, 0)
                }
            };
            let end = CallEnd::failed(ToolFailure::Cancelled, text);
            events.extend(self.settle(position, end.after(attempts, duration_ms)));
        }
        self.close_batch_if_settled();
        self.phase = Phase::Done(Outcome::Cancelled);
        events
    }

    /// Ends the run because its driver did what the run had not asked for.
    pub fn abort(&mut self, fault: &UnexpectedInput) -> Events {
        let events = self.cancel(None, &HashMap::new());
        self.end_with(RunError::new(RunErrorKind::Internal, fault.to_string()));
        events
    }

    /// Half an answer is shown but is no message of the history: its calls must not run, and its
    /// thinking is not signed.
    fn keep_partial(&mut self, partial: Option<ChatResponse>) {
        let Some(partial) = partial else { return };
        self.usage.add(partial.usage);
        self.warnings.extend(partial.warnings);
        self.partial_answer = Some(partial.message.text()).filter(|text| !text.is_empty());
        self.finish = Some(FinishReason::Interrupted);
    }

    fn answered_without_tools(&mut self, finish: FinishReason, silent: bool) {
        match finish {
            // The provider paused a long turn: sending it back continues it, counted as a step.
            FinishReason::Paused => self.phase = Phase::Model,
            FinishReason::Stop | FinishReason::ToolUse | FinishReason::Other(_) if silent => {
                self.end_with(RunError::new(
                    RunErrorKind::EmptyAnswer,
                    "the model answered with nothing; ask again or take another model",
                ));
            }
            FinishReason::Stop | FinishReason::ToolUse | FinishReason::Other(_) => {
                self.phase = Phase::Done(Outcome::Completed);
            }
            other => self.end_by(other),
        }
    }

    /// Ends the run for a reason that leaves no proper answer.
    fn end_by(&mut self, finish: FinishReason) {
        let (kind, message) = match finish {
            FinishReason::Length => (
                RunErrorKind::OutputLimit,
                "the answer reached the output limit and is cut off".to_owned(),
            ),
            FinishReason::ContextOverflow => (
                RunErrorKind::ContextOverflow,
                "the conversation no longer fits the model's context window".to_owned(),
            ),
            FinishReason::ContentFilter => (
                RunErrorKind::ContentFilter,
                "the provider's content filter withheld the answer".to_owned(),
            ),
            FinishReason::Refusal => (
                RunErrorKind::Refusal,
                "the model declined to answer".to_owned(),
            ),
            FinishReason::MalformedToolCall => (
                RunErrorKind::MalformedToolCall,
                "the provider could not read the tool call that its model wrote; ask again"
                    .to_owned(),
            ),
            other => (
                RunErrorKind::Model(other.as_str().to_owned()),
                format!("the answer ended with `{}`", other.as_str()),
            ),
        };
        self.end_with(RunError::new(kind, message));
    }

    /// What is to become of one tool use.
    fn plan(
        &mut self,
        tool_use: ToolUse,
        withheld: Option<&'static str>,
        events: &mut Events,
    ) -> PendingCall {
        let definition = self.definition(&tool_use.name).cloned();
        let origin = definition
            .as_ref()
            .and_then(|definition| definition.origin.clone());
        let annotations = definition
            .as_ref()
            .map(|definition| definition.annotations)
            .unwrap_or_default();
        let (server, tool) = place(origin.as_ref(), &tool_use.name);
        let input = batch::shown(&tool_use.input);
        events.push(RunEventKind::ToolPlanned {
            id: tool_use.id.clone(),
            server: server.clone(),
            tool: tool.clone(),
            input: input.clone(),
        });
        let record = self.records.len();
        self.records.push(ToolCallRecord {
            id: tool_use.id.clone(),
            server,
            tool,
            input,
            is_error: false,
            failure: None,
            cached: false,
            attempts: 0,
            duration_ms: 0,
            result: RecordedResult::default(),
        });

        let checked = match (withheld, &tool_use.input, &definition) {
            (Some(why), ..) => Err(CallEnd::failed(
                ToolFailure::Withheld,
                format!("Not executed: {why}."),
            )),
            (None, ToolInput::Malformed { reason, .. }, _) => Err(CallEnd::failed(
                ToolFailure::MalformedInput,
                format!(
                    "Not executed: the input of `{}` is malformed: {reason}. Call the tool again \
                     with a complete JSON object.",
                    tool_use.name
                ),
            )),
            (None, ToolInput::Object(_), None) => Err(CallEnd::failed(
                ToolFailure::UnknownTool,
                self.no_such_tool(&tool_use.name),
            )),
            (None, ToolInput::Object(input), Some(definition)) => self
                .validators
                .check(definition, input.clone())
                .map_err(|faults| {
                    CallEnd::failed(
                        ToolFailure::InvalidInput,
                        format!(
                            "Not executed: the input does not fit the schema of `{}`: {faults}",
                            tool_use.name
                        ),
                    )
                }),
        };
        let planned = match checked {
            Err(end) => Err(end),
            Ok(input) => match self.options.approval.verdict(annotations) {
                Verdict::Run => Ok(CallState::Ready { input }),
                Verdict::Ask => {
                    events.push(RunEventKind::ToolAwaitingApproval {
                        id: tool_use.id.clone(),
                    });
                    Ok(CallState::Waiting { input })
                }
                Verdict::Refuse => {
                    let reason = "tools that may change something are switched off";
                    events.push(RunEventKind::ToolDenied {
                        id: tool_use.id.clone(),
                        reason: reason.to_owned(),
                    });
                    Err(CallEnd::failed(
                        ToolFailure::Denied,
                        format!("Not executed: {reason}."),
                    ))
                }
            },
        };
        let state = planned.unwrap_or_else(|end| {
            let (event, result) = self.record(record, &tool_use, end);
            events.push(event);
            CallState::Settled { result }
        });
        PendingCall {
            tool_use,
            origin,
            annotations,
            state,
            record,
        }
    }

    /// Results are paired with their uses by id, so an id must not come twice in a run. Some servers
    /// count from zero in every answer, and some send none.
    fn make_ids_unique(&self, message: &mut Message) {
        let mut taken: HashSet<String> = self
            .records
            .iter()
            .map(|record| record.id.clone())
            .collect();
        for part in &mut message.parts {
            let Part::ToolUse(tool_use) = part else {
                continue;
            };
            let given = if tool_use.id.is_empty() {
                "call"
            } else {
                &tool_use.id
            };
            let mut id = given.to_owned();
            let mut n = 2;
            while taken.contains(&id) {
                id = format!("{given}_{n}");
                n += 1;
            }
            taken.insert(id.clone());
            tool_use.id = id;
        }
    }

    fn no_such_tool(&self, name: &str) -> String {
        let names: Vec<_> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        if names.is_empty() {
            format!("Not executed: there is no tool `{name}`, and no other tool either.")
        } else {
            format!(
                "Not executed: there is no tool `{name}`. There are: {}.",
                names.join(", ")
            )
        }
    }

    fn settle(&mut self, position: usize, end: CallEnd) -> Option<RunEventKind> {
        let Phase::Batch(calls) = &self.phase else {
            return None;
        };
        let call = calls.get(position)?;
        let (record, tool_use) = (call.record, call.tool_use.clone());
        let (event, result) = self.record(record, &tool_use, end);
        self.set_state(position, CallState::Settled { result });
        Some(event)
    }

    fn record(
        &mut self,
        record: usize,
        tool_use: &ToolUse,
        end: CallEnd,
    ) -> (RunEventKind, ToolResult) {
        let CallEnd {
            output,
            failure,
            attempts,
            duration_ms,
            cached,
        } = end;
        if let Some(entry) = self.records.get_mut(record) {
            entry.is_error = output.is_error;
            entry.failure = failure;
            entry.cached = cached;
            entry.attempts = attempts;
            entry.duration_ms = duration_ms;
            entry.result = RecordedResult {
                content: output.content.clone(),
                structured: output.structured.clone(),
            };
        }
        let event = RunEventKind::ToolFinished {
            id: tool_use.id.clone(),
            is_error: output.is_error,
            failure,
            cached,
            attempts,
            duration_ms,
            content: output.content.clone(),
            structured: output.structured.clone(),
        };
        let result = ToolResult {
            tool_use_id: tool_use.id.clone(),
            name: tool_use.name.clone(),
            content: output.content,
            structured: output.structured,
            is_error: output.is_error,
        };
        (event, result)
    }

    /// When every call has its result, all of them go back together, in call order.
    fn close_batch_if_settled(&mut self) {
        let Phase::Batch(calls) = &mut self.phase else {
            return;
        };
        if !calls
            .iter()
            .all(|call| matches!(call.state, CallState::Settled { .. }))
        {
            return;
        }
        let results = mem::take(calls)
            .into_iter()
            .filter_map(|call| match call.state {
                CallState::Settled { result } => Some(Part::ToolResult(result)),
                _ => None,
            });
        let message = Message::new(Role::Tool, results);
        self.messages.push(Arc::new(message));
        self.phase = Phase::Model;
    }

    fn batch_len(&self) -> usize {
        match &self.phase {
            Phase::Batch(calls) => calls.len(),
            _ => 0,
        }
    }

    fn set_state(&mut self, position: usize, state: CallState) {
        if let Phase::Batch(calls) = &mut self.phase {
            calls[position].state = state;
        }
    }

    /// The first unsettled call with this id: a model may use an id twice.
    fn position(&self, method: &'static str, id: &str) -> Result<usize, UnexpectedInput> {
        let Phase::Batch(calls) = &self.phase else {
            return Err(unexpected(method, "no tool calls are under way"));
        };
        calls
            .iter()
            .position(|call| {
                call.tool_use.id == id && !matches!(call.state, CallState::Settled { .. })
            })
            .ok_or_else(|| unexpected(method, format!("no open tool call has the id `{id}`")))
    }
}

/// Why the calls of an answer that ended so must not run.
fn withheld_calls(finish: &FinishReason) -> Option<&'static str> {
    match finish {
        FinishReason::Refusal => Some("the answer was declined by the model"),
        FinishReason::ContentFilter => Some("the answer was withheld by a content filter"),
        FinishReason::ContextOverflow => Some("the conversation no longer fits the model"),
        FinishReason::Interrupted => Some("the answer broke off"),
        // Calls that are complete may run after `Length`; the one that was cut off is malformed.
        _ => None,
    }
}

fn unexpected(method: &'static str, reason: impl Into<String>) -> UnexpectedInput {
    UnexpectedInput {
        method,
        reason: reason.into(),
    }
}
