//! Preparation of requests to the model.

use std::sync::Arc;

use switchboard_domain::{
    ChatRequest, ChatResponse, Message, ModelError, Role, ToolChoice, ToolDefinition, Usage,
    Warning, WarningKind,
};

use super::{AgentLoopState, Events, ModelCall, ModelCallPurpose, Run, UnexpectedInput};
use crate::{
    RunError, RunEventKind, RunPhase,
    policy::history::{HistoryPolicy, summary_request},
    strategy::gather_phase::GatheringEnd,
    tools::{results, tokens},
};

/// Part of a context window, in percent, that the conversation may fill. The rest is reserved for
/// the response and for errors of the token estimate.
const WINDOW_PERCENT: u64 = 80;

impl Run {
    /// Returns the next model call for the driver: a call for the next response, or first a call
    /// for a summary of omitted messages. `tools` are the tools that are available now.
    ///
    /// The request shares unchanged messages with the run through `Arc`, so it costs one pointer
    /// per message.
    #[allow(clippy::needless_pass_by_value)] // callers have no further use for the list
    pub fn begin_model_call(&mut self, tools: Vec<Arc<ToolDefinition>>) -> ModelCall {
        let mut events = Vec::new();
        if self.has_reached_gathering_limit() {
            events.extend(self.begin_formatting(Some(GatheringEnd::Limit)));
        }
        if self.begin_gathering() {
            events.push(RunEventKind::PhaseStarted {
                phase: RunPhase::Gathering,
                mode: None,
                gathering_ended: None,
            });
        }
        if let (0, ToolChoice::Only(names)) = (self.step_count(), &self.state.options.tool_choice) {
            // The tool choice can name only offered tools, so the named tools are offered here.
            for name in names {
                self.state.turn.selection.offer_tool(name);
            }
        }
        // Examples cannot be added later, because the history stores indices of messages, which an
        // insertion would change.
        self.state.turn.has_examples = true;
        self.state.turn.tools = self.select_offered_tools(&tools);
        let policy = self.history_policy();
        let turn = &mut self.state.turn;
        // Without a limit, the size of the request is not needed.
        let fit = policy.max_tokens.map(|_| {
            let overhead = self.caches.index.estimate_tokens(&turn.tools);
            turn.history
                .trim_to_token_limit(&policy, &self.messages, overhead)
        });
        let fit = fit.unwrap_or_default();
        let may_summarise =
            policy.summarise && !matches!(self.state.phase, AgentLoopState::Summarising);
        if let Some(trimmed) = &fit.trimmed {
            let dropped = turn.history.messages_to_summarize(&self.messages);
            let summarised = may_summarise && !dropped.is_empty();
            events.push(RunEventKind::HistoryTrimmed {
                left_out: trimmed.messages,
                tokens_before: trimmed.tokens_before,
                tokens_after: trimmed.tokens_after,
                summarised,
            });
            if summarised {
                self.state.phase = AgentLoopState::Summarising;
                return ModelCall {
                    request: Box::new(ChatRequest {
                        delivery: self.state.options.delivery,
                        ..ChatRequest::new(summary_request(&dropped))
                    }),
                    purpose: ModelCallPurpose::Summary,
                    events,
                };
            }
        }
        if let Some(max) = policy.max_tokens.filter(|_| fit.is_over) {
            // The token estimate is not exact, so the request is sent anyway and the provider
            // decides.
            let message = format!(
                "the conversation is longer than {max} tokens and cannot be shortened further"
            );
            events.extend(self.add_warning(Warning::new(WarningKind::HistoryTooLong, message)));
        }
        self.state.phase = AgentLoopState::CallingModel;
        self.state.ledger.count_model_call();
        let options = &self.state.options;
        let turn = &self.state.turn;
        let tool_choice = if self.step_count() == 1 && !turn.tools.is_empty() {
            options.tool_choice.clone()
        } else {
            ToolChoice::Auto
        };
        let mut messages = turn.history.messages_to_send(&self.messages);
        results::replace_unsupported_media(&mut messages, &self.state.capabilities);
        messages.extend(turn.nudge.clone());
        let request = ChatRequest {
            messages,
            tools: turn.tools.clone(),
            tool_choice,
            parallel_tool_use: options.parallel_tool_use,
            sampling: options.sampling.clone(),
            max_output_tokens: self.max_output_tokens(),
            reasoning: options.reasoning,
            delivery: options.delivery,
            ..ChatRequest::default()
        };
        ModelCall {
            request: Box::new(self.adapt_request_to_phase(request)),
            purpose: ModelCallPurpose::Answer,
            events,
        }
    }

    /// Inserts few-shot example messages between the system messages at the start and the rest of
    /// the conversation. Only the first insertion has an effect, and only before the first model
    /// request.
    pub fn add_examples(&mut self, examples: Vec<Message>) {
        let turn = &mut self.state.turn;
        if turn.has_examples || examples.is_empty() || self.state.ledger.steps > 0 {
            return;
        }
        turn.has_examples = true;
        let leading = count_system_messages(&self.messages);
        let count = examples.len();
        self.messages
            .splice(leading..leading, examples.into_iter().map(Arc::new));
        self.state.initial_messages += count;
        // Pinned messages are not trimmed. Trimming must not cut an example in half, and it must
        // keep the question that follows the examples.
        for index in leading..leading + count {
            turn.history.pin_message(index);
        }
        let question = self.messages[leading + count..]
            .iter()
            .position(|message| message.role == Role::User);
        if let Some(question) = question {
            turn.history.pin_message(leading + count + question);
        }
    }

    /// Processes the result of a model call for a summary. If the call failed, the run continues
    /// without a new summary. Returns an error if no summary was requested.
    pub fn apply_history_summary(
        &mut self,
        summary: Result<ChatResponse, &ModelError>,
    ) -> Result<Events, UnexpectedInput> {
        if !matches!(self.state.phase, AgentLoopState::Summarising) {
            return Err(UnexpectedInput("no summary was requested".to_owned()));
        }
        self.state.phase = AgentLoopState::Model;
        let event = |answer: Option<&ChatResponse>, error: Option<RunError>| {
            RunEventKind::HistorySummarised {
                step: self.step_count() + 1,
                model: self.state.model.clone(),
                answered_by: answer.and_then(|answer| answer.model.clone()),
                finish_reason: answer.map(|answer| answer.finish.clone()),
                usage: Box::new(answer.map(|answer| answer.usage).unwrap_or_default()),
                error: error.map(Box::new),
            }
        };
        match summary {
            Ok(answer) => {
                let event = event(Some(&answer), None);
                self.record_usage(&answer.usage, &answer.message);
                let text = answer.message.text();
                if !text.trim().is_empty() {
                    self.state.turn.history.set_summary(text);
                }
                Ok(vec![event])
            }
            Err(error) => {
                let mut events = vec![event(None, Some(RunError::from(error)))];
                let message = format!("the older messages could not be summarised: {error}");
                events.extend(self.add_warning(Warning::new(WarningKind::HistoryTooLong, message)));
                Ok(events)
            }
        }
    }

    /// Returns the tools that the next request offers: all of `tools`, or a selection if there are
    /// too many. The run adds its own tools: the search tool, and the tool that reads truncated
    /// results. Returns no tools if the model rejected tools.
    fn select_offered_tools(&mut self, tools: &[Arc<ToolDefinition>]) -> Vec<Arc<ToolDefinition>> {
        let index = &mut self.caches.index;
        if self.state.turn.tools_dropped.is_some() {
            index.set_catalog(&[]);
            return Vec::new();
        }
        index.set_catalog(tools);
        let mut policy = self.state.options.search.clone();
        policy.enabled &= self.state.capabilities.tool_search != Some(false);
        let mut offered = self.state.turn.selection.select_tools(&policy, index);
        // The tool that reads truncated results is the last one, so that a prompt cache of the
        // tools before it stays valid.
        if !self.state.complete_results.is_empty() {
            offered.push(results::result_reading_tool());
        }
        offered
    }

    /// Adds the token usage of a response to the totals of the run. Counts that the provider did
    /// not report are estimated for the limits: from the size of the last request, and from
    /// `answer`.
    pub(super) fn record_usage(&mut self, usage: &Usage, answer: &Message) {
        let state = &mut self.state;
        state.usage.add_usage(*usage);
        let mut counted = *usage;
        counted.input_tokens.get_or_insert_with(|| {
            let overhead = self.caches.index.estimate_tokens(&state.turn.tools);
            let history = &state.turn.history;
            history.estimate_request_tokens(&self.messages, overhead)
        });
        counted
            .output_tokens
            .get_or_insert_with(|| tokens::estimate_message(answer));
        let pricing = state.pricing.as_deref();
        state.ledger.record_usage(&counted, pricing, state.now);
    }

    fn history_policy(&self) -> HistoryPolicy {
        let mut policy = self.state.options.history.clone();
        if policy.max_tokens.is_none() {
            let window = self.state.capabilities.context_window;
            policy.max_tokens = window.map(|window| window / 100 * WINDOW_PERCENT);
        }
        policy
    }

    /// Returns the maximum number of output tokens of the next response: the configured maximum, or
    /// the rest of the run's token limits if that is lower. Returns `None` if neither is set.
    fn max_output_tokens(&self) -> Option<u32> {
        let options = &self.state.options;
        let left = self.state.ledger.remaining_output_tokens(&options.limits);
        let left = left.map(|left| u32::try_from(left).unwrap_or(u32::MAX));
        [options.max_output_tokens, left]
            .into_iter()
            .flatten()
            .min()
    }
}

pub(super) fn count_system_messages(messages: &[Arc<Message>]) -> usize {
    let is_system = |message: &&Arc<Message>| message.role == Role::System;
    messages.iter().take_while(is_system).count()
}
