//! How a run asks its model.

use std::sync::Arc;

use switchboard_domain::{
    ChatRequest, ChatResponse, Message, ModelError, Role, ToolChoice, ToolDefinition, Usage,
    Warning, WarningKind,
};

use crate::run::{CallPurpose, Events, ModelCall, Phase, Run, UnexpectedInput, unexpected};
use crate::{
    RunError, RunEventKind, RunPhase,
    policy::history::{Fit, HistoryPolicy, summary_request},
    policy::limits::TokenEstimate,
    tools::{results, tokens},
};

/// How much of a model's context window a conversation may fill, in percent, where nothing else is
/// configured and the window is known. The rest is for the answer and for what an estimate misses.
const WINDOW_PERCENT: u64 = 80;

const TOO_LONG: &str = "the conversation is about";

impl Run {
    /// Begins the next call of the model with the tools there are now, and gives the request.
    ///
    /// The history is shared, not copied: a request of the k-th step costs its pointers.
    #[allow(clippy::needless_pass_by_value)] // Whoever has a list has no more use for it.
    pub fn begin_model_call(&mut self, tools: Vec<Arc<ToolDefinition>>) -> ModelCall {
        let mut events = Vec::new();
        if self.gathers_no_more() {
            events.extend(self.begin_formatting());
        }
        if self.begins_to_gather() {
            events.push(RunEventKind::PhaseStarted {
                phase: RunPhase::Gathering,
                mode: None,
            });
        }
        if let (0, ToolChoice::Only(names)) = (self.steps(), &self.options.tool_choice) {
            // A model cannot be held to a tool that it is not shown.
            for name in names {
                self.selection.reveal(name);
            }
        }
        // What is left out of the history is known by its place from here on: no example may come before it any more.
        self.has_examples = true;
        self.tools = self.offered(&tools);
        let policy = self.history_policy();
        let fit = self.fit(&policy);
        let may_ask = policy.summarise && !matches!(self.phase, Phase::Summarising);
        if let Some(trimmed) = &fit.trimmed {
            let dropped = self.history.summary_source(&self.messages);
            let summarised = may_ask && !dropped.is_empty();
            events.push(RunEventKind::HistoryTrimmed {
                left_out: trimmed.messages,
                tokens_before: trimmed.tokens_before,
                tokens_after: trimmed.tokens_after,
                summarised,
            });
            if summarised {
                self.phase = Phase::Summarising;
                return ModelCall {
                    request: Box::new(ChatRequest {
                        delivery: self.options.delivery,
                        ..ChatRequest::new(summary_request(&dropped))
                    }),
                    purpose: CallPurpose::Summary,
                    events,
                };
            }
        }
        if let Some(over) = &fit.over {
            // An estimate is no measure: the provider has the last word. It grows with every step,
            // which is one thing to be told.
            let told = |warning: &Warning| {
                warning.kind == WarningKind::HistoryTooLong && warning.message.starts_with(TOO_LONG)
            };
            if !self.warnings.iter().any(told) {
                let message = format!(
                    "{TOO_LONG} {} tokens long and {} are allowed; nothing more of it can be left out",
                    over.tokens, over.max_tokens
                );
                events.extend(self.warn(Warning::new(WarningKind::HistoryTooLong, message)));
            }
        }
        self.phase = Phase::Asked;
        self.ledger.begin_step();
        let tool_choice = if self.steps() == 1 && !self.tools.is_empty() {
            self.options.tool_choice.clone()
        } else {
            ToolChoice::Auto
        };
        let mut messages = self.history.messages(&self.messages);
        self.sensed.apply(&mut messages, &self.capabilities);
        messages.extend(self.nudge.clone());
        let request = ChatRequest {
            messages,
            tools: self.tools.clone(),
            tool_choice,
            parallel_tool_use: self.options.parallel_tool_use,
            sampling: self.options.sampling.clone(),
            max_output_tokens: self.output_tokens(),
            reasoning: self.options.reasoning,
            delivery: self.options.delivery,
            ..ChatRequest::default()
        };
        ModelCall {
            request: Box::new(self.shape(request)),
            purpose: CallPurpose::Answer,
            events,
        }
    }

    /// Puts examples of a conversation between the instructions and what was really said. Only before
    /// the first request is made, and once, also if that call fails and is made again.
    pub fn show_examples(&mut self, examples: Vec<Message>) {
        if self.steps() > 0 || self.has_examples || examples.is_empty() {
            return;
        }
        self.has_examples = true;
        let leading = self
            .messages
            .iter()
            .take_while(|message| message.role == Role::System)
            .count();
        let count = examples.len();
        self.messages
            .splice(leading..leading, examples.into_iter().map(Arc::new));
        self.given += count;
        self.inserted.at(leading);
        self.given_ids.take();
        // They are no part of the conversation that could become too long: half an example would teach
        // half a thing. The question that began the conversation stays beside them.
        for at in leading..leading + count {
            self.history.pin(at);
        }
        let question = self.messages[leading + count..]
            .iter()
            .position(|message| message.role == Role::User);
        if let Some(question) = question {
            self.history.pin(leading + count + question);
        }
    }

    /// The summary that was asked for, or why there is none. Without one the run goes on: what does
    /// not fit is left out all the same.
    pub fn summarised(
        &mut self,
        summary: Result<ChatResponse, &ModelError>,
    ) -> Result<Events, UnexpectedInput> {
        if !matches!(self.phase, Phase::Summarising) {
            return Err(unexpected("summarised", "no summary was asked for"));
        }
        self.phase = Phase::Model;
        let told = |answer: Option<&ChatResponse>, error: Option<RunError>| {
            RunEventKind::HistorySummarised {
                step: self.steps() + 1,
                model: self.model.clone(),
                answered_by: answer.and_then(|answer| answer.model.clone()),
                finish_reason: answer.map(|answer| answer.finish.clone()),
                usage: Box::new(answer.map(|answer| answer.usage).unwrap_or_default()),
                error: error.map(Box::new),
            }
        };
        match summary {
            Ok(answer) => {
                let told = told(Some(&answer), None);
                self.usage.add(answer.usage);
                self.record_usage(&answer.usage, &answer.message);
                let text = answer.message.text();
                if !text.trim().is_empty() {
                    self.history.with_summary(text);
                }
                Ok(vec![told])
            }
            Err(error) => {
                let mut events = vec![told(None, Some(RunError::from(error)))];
                let message = format!("what no longer fits could not be summarised: {error}");
                events.extend(self.warn(Warning::new(WarningKind::HistoryTooLong, message)));
                Ok(events)
            }
        }
    }

    /// The tools that the model is shown: all, or where they are many those that it found, and what
    /// the loop itself offers.
    fn offered(&mut self, tools: &[Arc<ToolDefinition>]) -> Vec<Arc<ToolDefinition>> {
        if self.tools_dropped.is_some() {
            self.index.update(&[]);
            return Vec::new();
        }
        self.index.update(tools);
        let mut policy = self.options.search.clone();
        policy.enabled &= self.capabilities.tool_search != Some(false);
        let mut offered = self.selection.select(&policy, &mut self.index);
        // Last, so that the tools before keep their place in the provider's cache.
        if !self.kept.is_empty() {
            offered.push(results::read_tool());
        }
        offered
    }

    /// Makes the conversation fit. Where nothing bounds it, nobody looks how long it is.
    fn fit(&mut self, policy: &HistoryPolicy) -> Fit {
        if policy.max_tokens.is_none() {
            self.asked_tokens = None;
            return Fit {
                tokens: 0,
                trimmed: None,
                over: None,
            };
        }
        let overhead = self.weight.of(&self.tools);
        let fit = self.history.fit(policy, &self.messages, overhead);
        self.asked_tokens = Some(fit.tokens);
        fit
    }

    /// Counts what an answer cost, and what its provider does not report as it is estimated. The answer is
    /// not in the conversation yet.
    pub(in crate::run) fn record_usage(&mut self, usage: &Usage, answer: &Message) {
        let mut estimate = TokenEstimate::default();
        if usage.input_tokens.is_none() {
            estimate.input = self.asked_tokens.unwrap_or_else(|| {
                let unbounded = HistoryPolicy {
                    max_tokens: None,
                    ..self.options.history.clone()
                };
                let overhead = self.weight.of(&self.tools);
                let fit = self.history.fit(&unbounded, &self.messages, overhead);
                fit.tokens
            });
        }
        if usage.output_tokens.is_none() {
            estimate.output = tokens::estimate_message(answer);
        }
        self.ledger
            .record_usage(usage, estimate, self.pricing.as_deref(), self.now);
    }

    fn history_policy(&self) -> HistoryPolicy {
        let mut policy = self.options.history.clone();
        if policy.max_tokens.is_none() {
            policy.max_tokens = self
                .capabilities
                .context_window
                .map(|window| window / 100 * WINDOW_PERCENT);
        }
        policy
    }

    /// Tokens of this answer at most: what is configured, or what the run's limit leaves.
    fn output_tokens(&self) -> Option<u32> {
        let left = self
            .ledger
            .output_left(&self.options.limits)
            .map(|left| u32::try_from(left).unwrap_or(u32::MAX));
        match (self.options.max_output_tokens, left) {
            (Some(configured), Some(left)) => Some(configured.min(left)),
            (configured, left) => configured.or(left),
        }
    }
}

/// The estimated tokens of a list of tools, which is mostly the same list as the step before.
#[derive(Debug, Default)]
pub(in crate::run) struct ToolWeight {
    tools: Vec<Arc<ToolDefinition>>,
    tokens: u64,
}

impl ToolWeight {
    fn of(&mut self, tools: &[Arc<ToolDefinition>]) -> u64 {
        let is_same = self.tools.len() == tools.len()
            && self
                .tools
                .iter()
                .zip(tools)
                .all(|(before, now)| Arc::ptr_eq(before, now));
        if !is_same {
            self.tokens = tools.iter().map(|tool| tokens::estimate_tool(tool)).sum();
            self.tools = tools.to_vec();
        }
        self.tokens
    }
}
