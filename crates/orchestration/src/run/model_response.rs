//! Processing of model responses: complete, partial and failed ones.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use switchboard_domain::{
    ChatResponse, FinishReason, Message, ModelCapabilities, ModelError, ModelErrorKind, ModelId,
    Part, ServerProblem, ToolUse, Warning, WarningKind,
};

use super::{AgentLoopState, Events, Run, UnexpectedInput};
use crate::{Outcome, RunError, RunErrorKind, RunEventKind};

impl Run {
    /// Adds a warning for each unavailable tool server and returns the events of new warnings. The
    /// run continues without the tools of these servers.
    pub fn report_unavailable_tools(&mut self, problems: &[ServerProblem]) -> Events {
        let mut events = Vec::new();
        for problem in problems {
            let message = format!("{}: {}", problem.server, problem.message);
            let warning = Warning::new(WarningKind::ToolUnavailable, message);
            // Tools are listed before each model call, so the problem may already have been
            // reported before an earlier model call.
            if !self.state.warnings.contains(&warning) {
                self.state.warnings.push(warning);
                events.push(RunEventKind::ToolsUnavailable {
                    problem: problem.clone(),
                });
            }
        }
        events
    }

    /// Adds a warning for each problem of the recipe: a tool that no server offers, or an omitted
    /// example. `problems` contains the texts of the warnings.
    pub(crate) fn report_recipe_problems(&mut self, problems: Vec<String>) -> Events {
        let warn = |problem| self.add_warning(Warning::new(WarningKind::ToolUnavailable, problem));
        problems.into_iter().flat_map(warn).collect()
    }

    /// Processes a complete response of the model: records its usage, plans its tool calls, or ends
    /// the run. Returns an error if no model call is in progress.
    pub fn apply_model_response(
        &mut self,
        answer: ChatResponse,
    ) -> Result<Events, UnexpectedInput> {
        self.check_model_call_running()?;
        let mut events = vec![RunEventKind::ModelCallFinished {
            step: self.step_count(),
            model: answer.model,
            finish_reason: answer.finish.clone(),
            finish_raw: answer.finish_raw,
            usage: Box::new(answer.usage),
            tool_choice: answer.tool_choice,
        }];
        self.record_usage(&answer.usage, &answer.message);
        self.state.ledger.reset_response_call_count();
        for warning in answer.warnings {
            events.extend(self.add_warning(warning));
        }
        self.state.finish = Some(answer.finish.clone());
        self.state.turn.nudge = None;
        if let FinishReason::Other(word) = &answer.finish {
            let message =
                format!("the answer ended with the unknown reason `{word}`; it may be incomplete");
            let warning = Warning::new(WarningKind::UnknownWireValue, message);
            events.extend(self.add_warning(warning));
        }
        let mut message = answer.message;
        self.make_tool_use_ids_unique(&mut message);
        if self.is_formatting() {
            events.extend(self.finish_formatting(message, &answer.finish));
            return Ok(events);
        }
        let tool_uses: Vec<ToolUse> = message.tool_uses().cloned().collect();
        let has_content = !message.parts.is_empty();
        self.state.turn.has_content = has_content;
        if self.is_gathering() {
            self.evaluate_gathering_step(&message);
        }
        if has_content {
            self.messages.push(Arc::new(message));
        }
        if tool_uses.is_empty() {
            events.extend(self.apply_text_response(answer.finish, has_content));
        } else {
            events.extend(self.plan_tool_calls(tool_uses, answer.finish));
        }
        Ok(events)
    }

    fn check_model_call_running(&self) -> Result<(), UnexpectedInput> {
        if matches!(self.state.phase, AgentLoopState::CallingModel) {
            return Ok(());
        }
        Err(UnexpectedInput("no model call is in progress".to_owned()))
    }

    /// Plans a call for each tool use of a response.
    fn plan_tool_calls(&mut self, tool_uses: Vec<ToolUse>, finish: FinishReason) -> Events {
        let mut events = Vec::new();
        let withheld = reason_to_withhold_calls(&finish);
        self.state.phase = AgentLoopState::Batch(Vec::new());
        for tool_use in tool_uses {
            self.plan_tool_call(tool_use, withheld, &mut events);
        }
        for position in 0..self.state.batch_calls().len() {
            events.extend(self.skip_calls_after_denial_or_guard(position));
        }
        let mut closed = self.finish_batch_if_complete();
        if withheld.is_some() {
            // `finish_batch_if_complete` may have started the formatting phase. The run ends here,
            // so the phase is never executed and its start event is omitted.
            closed.retain(|event| !is_phase_start_event(event));
            self.end_run_by_finish_reason(finish);
        }
        events.extend(closed);
        events
    }

    /// Processes the failure of a model call. `partial` is the received part of the response;
    /// `None` if no text, reasoning or provider block was emitted. `next` is the fallback model, if
    /// any.
    ///
    /// The call is repeated only if no part of the response was emitted.
    pub fn apply_model_failure(
        &mut self,
        error: &ModelError,
        partial: Option<ChatResponse>,
        next: Option<(ModelId, ModelCapabilities)>,
    ) -> Result<Events, UnexpectedInput> {
        self.check_model_call_running()?;
        let run_error = RunError::from(error);
        let mut events = vec![RunEventKind::ModelCallFailed {
            step: self.step_count(),
            error: Box::new(run_error.clone()),
        }];
        if partial.is_none() {
            if let Some(event) = self.use_next_formatter_mode(error) {
                self.repeat_model_call();
                events.push(event);
                return Ok(events);
            }
            let turn = &mut self.state.turn;
            let has_tools = turn.tools_dropped.is_none() && !turn.tools.is_empty();
            if has_tools && is_tools_rejected_error(error) {
                let reason = error.message().to_owned();
                turn.tools_dropped = Some(reason.clone());
                self.repeat_model_call();
                events.push(RunEventKind::ToolsDropped { reason });
                return Ok(events);
            }
            if let Some((model, capabilities)) = next {
                self.repeat_model_call();
                events.extend(self.replace_model(model, capabilities, error.to_string()));
                return Ok(events);
            }
        }
        self.store_partial_response(partial);
        self.end_with_error(run_error);
        Ok(events)
    }

    /// Prepares the repetition of a failed model call. Both attempts count as one step of the run.
    fn repeat_model_call(&mut self) {
        self.state.ledger.uncount_model_call();
        self.state.phase = AgentLoopState::Model;
    }

    /// Switches the run to another model. Returns an event with the reason.
    pub(crate) fn replace_model(
        &mut self,
        model: ModelId,
        capabilities: ModelCapabilities,
        reason: String,
    ) -> Events {
        let from = std::mem::replace(&mut self.state.model, model);
        self.state.capabilities = capabilities;
        // The previous model rejected tools, but the new model may accept them.
        self.state.turn.tools_dropped = None;
        let switched = RunEventKind::ModelSwitched {
            from,
            to: self.state.model.clone(),
            reason,
        };
        std::iter::once(switched)
            .chain(self.restart_formatting())
            .collect()
    }

    /// Stores the received part of a response for the report. The part does not become a message,
    /// because its tool calls must not run and its reasoning is not signed.
    pub(super) fn store_partial_response(&mut self, partial: Option<ChatResponse>) {
        let Some(partial) = partial else { return };
        self.record_usage(&partial.usage, &partial.message);
        for warning in partial.warnings {
            let _ = self.add_warning(warning);
        }
        if self.is_formatting() {
            self.store_partial_answer(&partial.message);
        } else {
            let text = partial.message.text();
            self.state.partial_answer = Some(text).filter(|text| !text.is_empty());
        }
        self.state.finish = Some(FinishReason::Interrupted);
    }

    fn apply_text_response(&mut self, finish: FinishReason, has_content: bool) -> Events {
        let recovery = self.state.options.recovery;
        match finish {
            // The provider paused a long response. The next request continues the response and
            // counts as another step.
            FinishReason::Paused => {
                self.state.phase = AgentLoopState::Model;
                Vec::new()
            }
            FinishReason::Stop | FinishReason::ToolUse | FinishReason::Other(_) => {
                if self.is_gathering() {
                    return self.finish_gathering_step();
                }
                if has_content {
                    self.state.phase = AgentLoopState::Done(Outcome::Completed);
                    return Vec::new();
                }
                let reason = "the model returned an empty answer";
                if self.state.turn.retries.empty < recovery.empty_answer {
                    self.state.turn.retries.empty += 1;
                    return self.retry_with_message(
                        reason,
                        "Your last answer was empty. Answer the question, or call a tool if you \
                         need one.",
                    );
                }
                self.end_with_error(RunError::new(
                    RunErrorKind::EmptyAnswer,
                    format!("{reason}; ask again or use another model"),
                ));
                Vec::new()
            }
            FinishReason::MalformedToolCall
                if self.state.turn.retries.malformed < recovery.malformed_call =>
            {
                self.state.turn.retries.malformed += 1;
                self.retry_with_message(
                    "the provider could not parse the tool call of the model",
                    "Your last tool call could not be parsed. Write it again with one complete \
                     JSON object as its input, or answer without a tool.",
                )
            }
            // A response that was cut off at the model's output limit is continued. If the caller
            // set the limit with `max_output_tokens`, it is not continued.
            FinishReason::Length
                if has_content
                    && self.state.options.max_output_tokens.is_none()
                    && self.state.turn.retries.cut_off < recovery.cut_off
                    && !self.is_gathering() =>
            {
                self.state.turn.retries.cut_off += 1;
                self.retry_with_message(
                    "the answer reached the output limit and was cut off",
                    "Your answer was cut off. Continue exactly where it stopped. Do not repeat \
                     anything, and do not mention the interruption.",
                )
            }
            other => {
                if self.is_gathering() {
                    // The response is unusable, but the run does not fail, because the data
                    // gathered so far can become an answer.
                    return self.finish_gathering_step();
                }
                self.end_run_by_finish_reason(other);
                Vec::new()
            }
        }
    }

    /// Repeats the model call with an additional message, which is sent once and is not stored in
    /// the conversation.
    fn retry_with_message(&mut self, reason: &str, text: &str) -> Events {
        self.state.turn.nudge = Some(Arc::new(Message::user(text)));
        self.state.phase = AgentLoopState::Model;
        vec![self.create_retry_event(reason.to_owned())]
    }

    pub(super) fn create_retry_event(&mut self, reason: String) -> RunEventKind {
        self.state.turn.retries.total += 1;
        RunEventKind::AskedAgain {
            attempt: self.state.turn.retries.total,
            reason,
        }
    }

    /// Switches the run to the fallback model `next` if the model refused the request or a filter
    /// withheld the response. The response must have no content. Returns `None` without a switch in
    /// other cases, without a fallback model, and if the options disable this switch.
    pub(crate) fn switch_after_refusal(
        &mut self,
        next: Option<(ModelId, ModelCapabilities)>,
    ) -> Option<Events> {
        let (model, capabilities) = next?;
        let reason = match self.state.error.as_ref().map(|error| &error.kind) {
            Some(RunErrorKind::Refusal) => "the model declined to answer",
            Some(RunErrorKind::ContentFilter) => "the provider's filter withheld the answer",
            _ => return None,
        };
        let has_answer = self.state.turn.has_content || self.formatted_answer_items().is_some();
        if !self.state.options.recovery.switch_after_refusal || has_answer {
            return None;
        }
        self.state.error = None;
        self.repeat_model_call();
        Some(self.replace_model(model, capabilities, reason.to_owned()))
    }

    /// Ends the run with the error for this finish reason, such as a refusal.
    pub(super) fn end_run_by_finish_reason(&mut self, finish: FinishReason) {
        let (kind, message) = match finish {
            FinishReason::Length => (
                RunErrorKind::OutputLimit,
                "the answer reached the output limit and was cut off".to_owned(),
            ),
            FinishReason::ContextOverflow => (
                RunErrorKind::ContextOverflow,
                "the conversation exceeds the model's context window".to_owned(),
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
                "the provider could not parse the tool call of the model; ask again".to_owned(),
            ),
            other => (
                RunErrorKind::Model(other.as_str().to_owned()),
                format!("the answer ended with `{}`", other.as_str()),
            ),
        };
        self.end_with_error(RunError::new(kind, message));
    }

    /// Makes the tool use ids of a response unique within the conversation, because tool results
    /// refer to them. Some model servers number their ids from zero in every response, and some
    /// send no ids.
    fn make_tool_use_ids_unique(&self, message: &mut Message) {
        if message.tool_uses().next().is_none() {
            return;
        }
        let mut ids = self.create_tool_id_generator();
        for part in &mut message.parts {
            if let Part::ToolUse(tool_use) = part {
                tool_use.id = ids.make_unique_id(&tool_use.id);
            }
        }
    }

    /// Returns a generator of ids for the tool uses of the next response. It avoids all tool use
    /// ids in the conversation.
    pub(crate) fn create_tool_id_generator(&self) -> ToolUseIdGenerator {
        let initial = self.messages.iter().take(self.state.initial_messages);
        let parts = initial.flat_map(|message| &message.parts);
        let initial = parts.filter_map(|part| match part {
            Part::ToolUse(tool_use) => Some(&tool_use.id),
            Part::ToolResult(result) => Some(&result.tool_use_id),
            _ => None,
        });
        let own = self.state.records.iter().map(|record| &record.id);
        ToolUseIdGenerator {
            used: initial.chain(own).cloned().collect(),
            next: HashMap::new(),
        }
    }
}

/// A generator of tool use ids that are unique within a run. The streamed events and the complete
/// message of a response use separate generators, which generate equal ids.
#[derive(Debug)]
pub(crate) struct ToolUseIdGenerator {
    used: HashSet<String>,
    /// Next suffix for each id that occurred more than once, such as 3 after `call_2`. A new
    /// duplicate then does not try all lower suffixes.
    next: HashMap<String, u64>,
}

impl ToolUseIdGenerator {
    /// Returns an id that is unique within the run for a tool use id that the model sent. A
    /// duplicate gets a suffix such as `_2`, and an empty id becomes `call`.
    pub(crate) fn make_unique_id(&mut self, id_of_model: &str) -> String {
        let base = if id_of_model.is_empty() {
            "call"
        } else {
            id_of_model
        };
        let mut id = base.to_owned();
        if self.used.contains(&id) {
            let mut n = self.next.get(base).copied().unwrap_or(2);
            while self.used.contains(&id) {
                id = format!("{base}_{n}");
                n += 1;
            }
            self.next.insert(base.to_owned(), n);
        }
        self.used.insert(id.clone());
        id
    }
}

/// Returns whether an error states that the model or its server does not accept tools.
fn is_tools_rejected_error(error: &ModelError) -> bool {
    let mentions_tools = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.contains("tool") || text.contains("function")
    };
    match &error.kind {
        ModelErrorKind::Unsupported { feature } => mentions_tools(feature),
        ModelErrorKind::InvalidRequest { field } => {
            field.as_deref() == Some("tools")
                || (mentions_tools(error.message())
                    && ["support", "not enabled", "not available"]
                        .iter()
                        .any(|phrase| error.message().to_ascii_lowercase().contains(phrase)))
        }
        _ => false,
    }
}

pub(super) fn is_phase_start_event(event: &RunEventKind) -> bool {
    matches!(event, RunEventKind::PhaseStarted { .. })
}

/// Returns the reason why the tool calls of a response with this finish reason must not run; `None`
/// if they may run.
fn reason_to_withhold_calls(finish: &FinishReason) -> Option<&'static str> {
    match finish {
        FinishReason::Refusal => Some("the answer was declined by the model"),
        FinishReason::ContentFilter => Some("the answer was withheld by a content filter"),
        FinishReason::ContextOverflow => Some("the conversation exceeds the context window"),
        FinishReason::Interrupted => Some("the answer was interrupted"),
        // After `Length` (the output limit was reached), complete tool calls may run. An incomplete
        // call is rejected later, because its input is malformed.
        _ => None,
    }
}
