//! How a run takes in what the model answered.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use switchboard_domain::{
    ChatResponse, FinishReason, Message, ModelCapabilities, ModelError, ModelErrorKind, ModelId,
    Part, ServerProblem, ToolUse, Warning, WarningKind,
};

use crate::run::{Events, Phase, Run, UnexpectedInput, unexpected};
use crate::{Outcome, RunError, RunErrorKind, RunEventKind};

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

    /// Tools that a recipe names are not there.
    pub(crate) fn tools_missing(&mut self, problems: Vec<String>) -> Events {
        let warnings = problems
            .into_iter()
            .map(|problem| Warning::new(WarningKind::ToolUnavailable, problem));
        warnings.flat_map(|warning| self.warn(warning)).collect()
    }

    /// The model answered.
    pub fn model_answered(&mut self, answer: ChatResponse) -> Result<Events, UnexpectedInput> {
        if !matches!(self.phase, Phase::Asked) {
            return Err(unexpected("model_answered", "no model call is under way"));
        }
        let mut events = vec![RunEventKind::ModelCallFinished {
            step: self.steps(),
            model: answer.model,
            finish_reason: answer.finish.clone(),
            finish_raw: answer.finish_raw,
            usage: Box::new(answer.usage),
            tool_choice: answer.tool_choice,
        }];
        self.usage.add(answer.usage);
        self.record_usage(&answer.usage, &answer.message);
        self.ledger.begin_response();
        for warning in answer.warnings {
            // Most are told anew with each answer; to hear of them once is enough.
            events.extend(self.warn(warning));
        }
        self.finish = Some(answer.finish.clone());
        self.nudge = None;
        if let FinishReason::Other(word) = &answer.finish {
            // It may be a new word for a good end or one for a crash: nobody here can tell.
            let message = format!(
                "the answer ended with `{word}`, which is not known here; it may be incomplete"
            );
            let warning = Warning::new(WarningKind::UnknownWireValue, message);
            events.extend(self.warn(warning));
        }
        let mut message = answer.message;
        self.make_ids_unique(&mut message);
        if self.is_formatting() {
            events.extend(self.formatted(message, &answer.finish));
            return Ok(events);
        }
        let uses: Vec<ToolUse> = message.tool_uses().cloned().collect();
        let silent = message.parts.is_empty();
        self.showed = !silent;
        if self.is_gathering() {
            self.gather_heard(&message);
        }
        if !silent {
            self.messages.push(Arc::new(message));
        }
        if uses.is_empty() {
            events.extend(self.answered_without_tools(answer.finish, silent));
        } else {
            let withheld = withheld_calls(&answer.finish);
            if self.records.is_empty() {
                // Mostly no others follow, and those who wait keep what was too much.
                self.records.reserve_exact(uses.len());
            }
            let calls = uses
                .into_iter()
                .map(|tool_use| self.plan(tool_use, withheld, &mut events))
                .collect();
            self.begin_batch(calls);
            events.extend(self.stop_behind_settled());
            let closed = self.close_batch_if_settled();
            if withheld.is_some() {
                // The phase that would come next never will.
                events.extend(closed.into_iter().filter(|event| !begins_a_phase(event)));
                self.end_by(answer.finish);
            } else {
                events.extend(closed);
            }
        }
        Ok(events)
    }

    /// The model could not be asked, or broke off after `partial`. `next` is the model that may be
    /// asked instead, if there is one. `partial` is `None` if nothing of the answer was shown, which is
    /// text, reasoning or a block of the provider, and not the input of a call.
    ///
    /// Nothing is sent a second time once a part of its answer was shown.
    pub fn model_failed(
        &mut self,
        error: &ModelError,
        partial: Option<ChatResponse>,
        next: Option<(ModelId, ModelCapabilities)>,
    ) -> Result<Events, UnexpectedInput> {
        if !matches!(self.phase, Phase::Asked) {
            return Err(unexpected("model_failed", "no model call is under way"));
        }
        let told = RunError::from(error);
        let mut events = vec![RunEventKind::ModelCallFailed {
            step: self.steps(),
            error: Box::new(told.clone()),
        }];
        if partial.is_none() {
            if let Some(event) = self.formatter_refused(error) {
                self.ask_again();
                events.push(event);
                return Ok(events);
            }
            if self.tools_dropped.is_none() && !self.tools.is_empty() && refuses_tools(error) {
                let reason = error.message().to_owned();
                self.tools_dropped = Some(reason.clone());
                self.ask_again();
                events.push(RunEventKind::ToolsDropped { reason });
                return Ok(events);
            }
            if let Some((model, capabilities)) = next {
                events.extend(self.switch_to(model, capabilities, error.to_string()));
                return Ok(events);
            }
        }
        self.keep_partial(partial);
        self.end_with(told);
        Ok(events)
    }

    /// The call that failed does not count: it brought nothing.
    fn ask_again(&mut self) {
        self.ledger.undo_step();
        self.phase = Phase::Model;
    }

    /// Another model goes on with a run that was stored.
    pub(crate) fn goes_on_with(
        &mut self,
        model: ModelId,
        capabilities: ModelCapabilities,
    ) -> Events {
        self.becomes_the_model(
            model,
            capabilities,
            "the run goes on with another model".to_owned(),
        )
    }

    fn switch_to(
        &mut self,
        model: ModelId,
        capabilities: ModelCapabilities,
        reason: String,
    ) -> Events {
        self.ask_again();
        self.becomes_the_model(model, capabilities, reason)
    }

    fn becomes_the_model(
        &mut self,
        model: ModelId,
        capabilities: ModelCapabilities,
        reason: String,
    ) -> Events {
        let from = std::mem::replace(&mut self.model, model);
        self.capabilities = capabilities;
        // Another model may well take tools.
        self.tools_dropped = None;
        let switched = RunEventKind::ModelSwitched {
            from,
            to: self.model.clone(),
            reason,
        };
        std::iter::once(switched)
            .chain(self.formatter_changes_hands())
            .collect()
    }

    /// Half an answer is shown but is no message of the history: its calls must not run, and its
    /// thinking is not signed.
    pub(in crate::run) fn keep_partial(&mut self, partial: Option<ChatResponse>) {
        let Some(partial) = partial else { return };
        self.usage.add(partial.usage);
        self.record_usage(&partial.usage, &partial.message);
        for warning in partial.warnings {
            let _ = self.warn(warning);
        }
        if self.is_formatting() {
            self.formatted_in_part(&partial.message);
        } else {
            self.partial_answer = Some(partial.message.text()).filter(|text| !text.is_empty());
        }
        self.finish = Some(FinishReason::Interrupted);
    }

    fn answered_without_tools(&mut self, finish: FinishReason, silent: bool) -> Events {
        let recovery = self.options.recovery;
        match finish {
            // The provider paused a long turn: sending it back continues it, counted as a step.
            FinishReason::Paused => {
                self.phase = Phase::Model;
                Vec::new()
            }
            FinishReason::Stop | FinishReason::ToolUse | FinishReason::Other(_) => {
                if self.is_gathering() {
                    return self.gathered();
                }
                if !silent {
                    self.phase = Phase::Done(Outcome::Completed);
                    return Vec::new();
                }
                let reason = "the model answered with nothing";
                if self.again.empty < recovery.empty_answer {
                    self.again.empty += 1;
                    return self.nudge(
                        reason,
                        "Your last answer was empty. Answer the question, or call a tool if you \
                         need one.",
                    );
                }
                self.end_with(RunError::new(
                    RunErrorKind::EmptyAnswer,
                    format!("{reason}; ask again or take another model"),
                ));
                Vec::new()
            }
            FinishReason::MalformedToolCall if self.again.malformed < recovery.malformed_call => {
                self.again.malformed += 1;
                self.nudge(
                    "the provider could not read the tool call that its model wrote",
                    "Your last tool call could not be read. Write it again with one complete JSON \
                     object as its input, or answer without a tool.",
                )
            }
            // Whoever sets a limit to an answer wants it kept.
            FinishReason::Length
                if !silent
                    && !self.is_gathering()
                    && self.options.max_output_tokens.is_none()
                    && self.again.cut_off < recovery.cut_off =>
            {
                self.again.cut_off += 1;
                self.nudge(
                    "the answer reached the output limit and is cut off",
                    "Your answer was cut off. Continue exactly where it stopped, without repeating \
                     anything and without a word about this.",
                )
            }
            other => {
                if self.is_gathering() {
                    // What was gathered until here is worth an answer.
                    return self.gathered();
                }
                self.end_by(other);
                Vec::new()
            }
        }
    }

    /// Asks again with a word that is sent once and is no part of the history.
    fn nudge(&mut self, reason: &str, words: &str) -> Events {
        self.nudge = Some(Arc::new(Message::user(words)));
        self.phase = Phase::Model;
        self.again.times += 1;
        vec![RunEventKind::AskedAgain {
            attempt: self.again.times,
            reason: reason.to_owned(),
        }]
    }

    /// A model that refused or was filtered before it showed anything may be replaced by the next
    /// one, just as one that failed. `None` where it does not apply.
    pub(crate) fn declined(
        &mut self,
        next: Option<(ModelId, ModelCapabilities)>,
    ) -> Option<Events> {
        let (model, capabilities) = next?;
        let reason = match self.error.as_ref().map(|error| &error.kind) {
            Some(RunErrorKind::Refusal) => "the model declined to answer",
            Some(RunErrorKind::ContentFilter) => "the provider's filter withheld the answer",
            _ => return None,
        };
        let has_answer = self.showed || self.formatted_items().is_some();
        if !self.options.recovery.switch_after_refusal || has_answer {
            return None;
        }
        self.error = None;
        Some(self.switch_to(model, capabilities, reason.to_owned()))
    }

    /// Ends the run for a reason that leaves no proper answer.
    pub(in crate::run) fn end_by(&mut self, finish: FinishReason) {
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

    /// Results are paired with their uses by id, so an id must not come twice in a conversation. Some servers
    /// count from zero in every answer, and some send none.
    fn make_ids_unique(&self, message: &mut Message) {
        if message.tool_uses().next().is_none() {
            return;
        }
        let mut ids = self.ids();
        for part in &mut message.parts {
            if let Part::ToolUse(tool_use) = part {
                tool_use.id = ids.unique(&tool_use.id);
            }
        }
    }

    /// The ids that tool uses of the next answer get.
    pub(crate) fn ids(&self) -> UniqueIds {
        UniqueIds {
            given: Arc::clone(self.given_ids.get_or_init(|| Arc::new(self.ids_given()))),
            taken: self
                .records
                .iter()
                .map(|record| record.id.clone())
                .collect(),
            next: HashMap::new(),
        }
    }

    /// The ids of the conversation that the run was given, which stay the same.
    fn ids_given(&self) -> HashSet<String> {
        let given = self.messages.iter().take(self.given);
        let parts = given.flat_map(|message| &message.parts);
        let ids = parts.filter_map(|part| match part {
            Part::ToolUse(tool_use) => Some(&tool_use.id),
            Part::ToolResult(result) => Some(&result.tool_use_id),
            _ => None,
        });
        ids.cloned().collect()
    }
}

/// Gives ids of tool uses that do not come twice, in the order of an answer: the same ones while it
/// streams and when it is whole.
#[derive(Debug)]
pub(crate) struct UniqueIds {
    /// Those of the conversation before the run.
    given: Arc<HashSet<String>>,
    taken: HashSet<String>,
    /// Without it, a model that gives every call the same id makes this quadratic.
    next: HashMap<String, u64>,
}

impl UniqueIds {
    /// The id that a tool use has in the run, for the one that the model gave it.
    pub(crate) fn unique(&mut self, given: &str) -> String {
        let given = if given.is_empty() { "call" } else { given };
        let mut id = given.to_owned();
        if self.is_taken(&id) {
            let mut n = self.next.get(given).copied().unwrap_or(2);
            while self.is_taken(&id) {
                id = format!("{given}_{n}");
                n += 1;
            }
            self.next.insert(given.to_owned(), n);
        }
        self.taken.insert(id.clone());
        id
    }

    fn is_taken(&self, id: &str) -> bool {
        self.taken.contains(id) || self.given.contains(id)
    }
}

/// Whether the provider says that this model or server cannot be given tools.
fn refuses_tools(error: &ModelError) -> bool {
    let says_so = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.contains("tool") || text.contains("function")
    };
    match &error.kind {
        ModelErrorKind::Unsupported { feature } => says_so(feature),
        ModelErrorKind::InvalidRequest { field } => {
            field.as_deref().is_some_and(|field| field == "tools")
                || (says_so(error.message())
                    && ["support", "not enabled", "not available"]
                        .iter()
                        .any(|word| error.message().contains(word)))
        }
        _ => false,
    }
}

pub(in crate::run) fn begins_a_phase(event: &RunEventKind) -> bool {
    matches!(event, RunEventKind::PhaseStarted { .. })
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
