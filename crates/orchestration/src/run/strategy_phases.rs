//! The phases of a strategy: gathering data, and formatting the answer.

use std::{collections::HashMap, mem, sync::Arc};

use serde::{Deserialize, Serialize};
use switchboard_domain::{
    ChatRequest, FinishReason, Message, ModelError, Part, Role, ToolInput, ToolUse,
    json_schema::SchemaValidator,
};

use super::{AgentLoopState, Events, Run, model_request::count_system_messages};
use crate::{
    AnswerItem, Outcome, RunError, RunErrorKind, RunEventKind, RunPhase,
    policy::limits::Limits,
    strategy::{
        GatherFormat, Strategy,
        formatter::{
            self, FormatDecision, FormatState, FormattedAnswer, FormatterMode, PartialAnswerReader,
        },
        gather_phase::{self, GatherCall, GatherContinuation, GatherState, GatheringEnd},
    },
    tools::arguments,
};

/// Maximum number of times that the provider may pause one formatted answer. The limit of model
/// calls does not apply to the formatting phase, so this maximum prevents an endless series of
/// pauses.
const MAX_PAUSES: u32 = 8;

/// The current phase of a run's strategy, stored with the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StrategyPhase {
    /// The plain tool loop, which has no phases.
    Loop,
    /// The gathering phase: the model collects data with tools.
    Gather(Box<GatheringPhase>),
    /// The formatting phase: the model writes the final answer in the requested format.
    Format(Box<FormattingPhase>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct GatheringPhase {
    state: GatherState,
    /// Next action after the last response, such as a further model call. It is applied when all
    /// tool calls of this response have results.
    next: Option<GatherContinuation>,
    /// Repeated calls of the last response: the tool use id of each call, and the id of the earlier
    /// call that it repeats.
    repeats: HashMap<String, String>,
    /// Whether the start event of the phase was emitted.
    has_begun: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FormattingPhase {
    state: FormatState,
    /// Messages that only requests of the formatting phase contain, such as a malformed answer and
    /// the message about its fault. They do not become part of the conversation.
    messages: Vec<Arc<Message>>,
    /// Parts of the formatted answer that the provider sent before it paused. The next response
    /// continues the answer.
    paused: Vec<Part>,
    pauses: u32,
    /// Last non-blank text of the model in the gathering phase. It becomes the answer if the
    /// responses of the formatting phase have no text.
    gathered: String,
    /// Items of the formatted answer. `None` until the answer is complete.
    items: Option<Vec<AnswerItem>>,
    /// Notes of the model on how it reached the formatted answer.
    #[serde(default)]
    thinking: Option<String>,
}

impl StrategyPhase {
    pub(super) fn from_strategy(strategy: &Strategy) -> Self {
        match strategy {
            Strategy::GatherFormat(options) => Self::Gather(Box::new(GatheringPhase {
                state: GatherState::new(options),
                next: None,
                repeats: HashMap::new(),
                has_begun: false,
            })),
            _ => Self::Loop,
        }
    }
}

/// Joins the texts of messages with blank lines. Returns `None` if there are no messages.
fn join_message_texts(messages: &[Arc<Message>]) -> Option<String> {
    let texts: Vec<_> = messages.iter().map(|message| message.text()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

impl Run {
    /// Compiles the JSON Schema of the formatted answer before the first model call. Returns an
    /// error if the schema is invalid.
    pub(super) fn check_answer_schema(&self) -> Result<(), RunError> {
        if let StrategyPhase::Gather(gathering) = &self.state.stage
            && !gathering.has_begun
            && let Some(schema) = self.gathering_settings().schema
            && let Err(error) = SchemaValidator::compile(&schema)
        {
            let message = format!("the schema of the answer cannot be used: {error}");
            return Err(RunError::new(RunErrorKind::InvalidSchema, message));
        }
        Ok(())
    }

    /// Marks the gathering phase as started. Returns `false` if it started before or if the run is
    /// not in the gathering phase.
    pub(super) fn begin_gathering(&mut self) -> bool {
        match &mut self.state.stage {
            StrategyPhase::Gather(gathering) => !mem::replace(&mut gathering.has_begun, true),
            _ => false,
        }
    }

    /// Returns whether the limit of model calls or of tool calls ends the gathering phase. One
    /// model call is reserved for formatting the answer. Returns `false` outside the gathering
    /// phase.
    pub(super) fn has_reached_gathering_limit(&self) -> bool {
        if !self.is_gathering() {
            return false;
        }
        let limits = &self.state.options.limits;
        let mut calls = Limits::with_max_steps(u32::MAX);
        calls.max_tool_calls = limits.max_tool_calls;
        self.step_count().saturating_add(1) >= limits.max_steps
            || self.check_limits(&calls).is_err()
    }

    /// Forgets a tool call that did not run, so that an equal call does not count as a repetition.
    pub(super) fn allow_repeated_call(&mut self, id: &str) {
        if let StrategyPhase::Gather(gathering) = &mut self.state.stage {
            gathering.state.forget_unexecuted_call(id);
        }
    }

    pub(super) fn is_gathering(&self) -> bool {
        matches!(self.state.stage, StrategyPhase::Gather(_))
    }

    /// Returns whether the model must now write its answer in the required form.
    pub fn is_formatting(&self) -> bool {
        matches!(self.state.stage, StrategyPhase::Format(_))
    }

    /// Returns the current phase of the strategy; `None` for the plain tool loop, which has no
    /// phases.
    pub fn strategy_phase(&self) -> Option<RunPhase> {
        match self.state.stage {
            StrategyPhase::Loop => None,
            StrategyPhase::Gather(_) => Some(RunPhase::Gathering),
            StrategyPhase::Format(_) => Some(RunPhase::Formatting),
        }
    }

    /// Returns the method that makes the model write the required format, and a parser for the
    /// streamed JSON of the answer. Each model call needs a new parser. Returns `None` outside the
    /// formatting phase.
    pub fn create_partial_formatter(&self) -> Option<(FormatterMode, PartialAnswerReader)> {
        let state = &self.formatting_phase()?.state;
        Some((state.current_mode(), state.new_partial_formatter()))
    }

    /// Returns the model's notes on how it reached the formatted answer.
    pub(super) fn formatted_answer_notes(&self) -> Option<&str> {
        self.formatting_phase()?.thinking.as_deref()
    }

    pub(super) fn formatted_answer_items(&self) -> Option<&[AnswerItem]> {
        self.formatting_phase()?.items.as_deref()
    }

    fn formatting_phase(&self) -> Option<&FormattingPhase> {
        match &self.state.stage {
            StrategyPhase::Format(formatting) => Some(formatting),
            _ => None,
        }
    }

    fn gathering_settings(&self) -> GatherFormat {
        match &self.state.options.strategy {
            Strategy::GatherFormat(options) => options.clone(),
            _ => GatherFormat::default(),
        }
    }

    /// Adapts the instructions, messages and tools of a model request to the current phase.
    pub(super) fn adapt_request_to_phase(&self, mut request: ChatRequest) -> ChatRequest {
        let count = count_system_messages(&request.messages);
        let instructions = || join_message_texts(&request.messages[..count]);
        let prompt = match &self.state.stage {
            StrategyPhase::Loop => return request,
            StrategyPhase::Gather(_) => {
                let (settings, instructions) = (self.gathering_settings(), instructions());
                gather_phase::system_prompt(&settings, instructions.as_deref(), &request.tools)
            }
            StrategyPhase::Format(formatting) => {
                formatting.state.system_prompt(instructions().as_deref())
            }
        };
        let prompt = Arc::new(Message::system(prompt));
        request.messages.splice(..count, [prompt]);
        let StrategyPhase::Format(formatting) = &self.state.stage else {
            return request;
        };
        request.messages.extend(formatting.messages.iter().cloned());
        request
            .messages
            .push(Arc::new(formatting.state.build_answer_request()));
        formatting.state.prepare_request(request)
    }

    /// Finds repeated tool calls in a response of the gathering phase, and decides whether the
    /// phase continues after this response.
    pub(super) fn evaluate_gathering_step(&mut self, message: &Message) {
        let StrategyPhase::Gather(gathering) = &mut self.state.stage else {
            return;
        };
        let calls: Vec<GatherCall<'_>> = message
            .tool_uses()
            .map(|tool_use| {
                let input = match &tool_use.input {
                    ToolInput::Object(input) => arguments::canonical_digest(input),
                    ToolInput::Malformed { raw, .. } => raw.clone(),
                };
                // Tool names contain no line break, so the first line break separates the tool name
                // from the input.
                let key = format!("{}\n{input}", tool_use.name);
                let id = &tool_use.id;
                GatherCall { id, key }
            })
            .collect();
        let decision = gathering
            .state
            .decide_after_response(&message.text(), &calls);
        let repeats = calls.iter().zip(decision.repeats);
        gathering.repeats = repeats
            .filter_map(|(call, of)| Some((call.id.to_owned(), of?)))
            .collect();
        gathering.next = Some(decision.next);
    }

    /// Returns the id of the earlier tool call that `tool_use` repeats. Returns `None` if the call
    /// is new or the run is not in the gathering phase.
    pub(super) fn find_repeated_call(&self, tool_use: &ToolUse) -> Option<String> {
        match &self.state.stage {
            StrategyPhase::Gather(gathering) => gathering.repeats.get(&tool_use.id).cloned(),
            _ => None,
        }
    }

    /// Continues the gathering phase, or ends it and starts the formatting phase. Call this
    /// function when all tool calls of a response in the gathering phase have ended.
    pub(super) fn finish_gathering_step(&mut self) -> Events {
        let StrategyPhase::Gather(gathering) = &mut self.state.stage else {
            return Vec::new();
        };
        self.state.phase = AgentLoopState::Model;
        match gathering.next.take() {
            Some(GatherContinuation::Think { nudge }) => {
                self.state.turn.nudge = nudge.map(|text| Arc::new(Message::user(text)));
                Vec::new()
            }
            Some(GatherContinuation::Format) | None => self.begin_formatting(None),
        }
    }

    /// Ends the gathering phase, in which the model collects data, and starts the formatting phase,
    /// in which it writes the answer. `reason` states why gathering ended. Without a `reason`, the
    /// end that the last response decided applies.
    pub(super) fn begin_formatting(&mut self, reason: Option<GatheringEnd>) -> Events {
        let reason = match &self.state.stage {
            StrategyPhase::Gather(gathering) => reason.or(Some(gathering.state.end_reason())),
            _ => reason,
        };
        let messages = self.new_messages().iter().rev();
        let gathered = messages
            .filter(|message| message.role == Role::Assistant)
            .map(|message| message.text())
            .find(|text| !text.trim().is_empty())
            .unwrap_or_default();
        let state = FormatState::new(&self.gathering_settings(), &self.state.capabilities);
        let started = formatting_start_event(&state, reason);
        // The additional message was for the next request of the gathering phase, which has ended.
        self.state.turn.nudge = None;
        self.state.stage = StrategyPhase::Format(Box::new(FormattingPhase {
            state,
            messages: Vec::new(),
            paused: Vec::new(),
            pauses: 0,
            gathered,
            items: None,
            thinking: None,
        }));
        self.state.phase = AgentLoopState::Model;
        vec![started]
    }

    /// Switches to the next formatting mode if the error states that the provider rejected the
    /// request. The next mode is a less strict way to request the answer format. Returns the event
    /// that reports the new mode. Returns `None` for other errors, after the last mode, and outside
    /// the formatting phase.
    pub(super) fn use_next_formatter_mode(&mut self, error: &ModelError) -> Option<RunEventKind> {
        let StrategyPhase::Format(formatting) = &mut self.state.stage else {
            return None;
        };
        let has_next = formatting.state.switch_mode_after_error(error);
        has_next.then(|| formatting_start_event(&formatting.state, None))
    }

    /// Processes a model response of the formatting phase. The run then ends with the answer or an
    /// error, or the model is called again.
    pub(super) fn finish_formatting(&mut self, message: Message, finish: &FinishReason) -> Events {
        let StrategyPhase::Format(formatting) = &mut self.state.stage else {
            return Vec::new();
        };
        let may_pause = formatting.pauses < MAX_PAUSES && message.tool_uses().next().is_none();
        if *finish == FinishReason::Paused && may_pause {
            formatting.pauses += 1;
            if !message.parts.is_empty() {
                formatting.paused.extend(message.parts.iter().cloned());
                formatting.messages.push(Arc::new(message));
            }
            self.state.phase = AgentLoopState::Model;
            return Vec::new();
        }
        let complete = formatting.join_parts_around_pause(&message);
        let read =
            formatting
                .state
                .evaluate_formatting_response(&complete, finish, &formatting.gathered);
        let mut thinking = None;
        let (repairs, error) = match read {
            FormatDecision::Reask {
                message: fault,
                error,
            } => {
                // Providers reject a message without parts.
                if !message.parts.is_empty() {
                    formatting.messages.push(Arc::new(message));
                }
                formatting.messages.push(Arc::new(fault));
                self.state.phase = AgentLoopState::Model;
                return vec![self.create_retry_event(error)];
            }
            FormatDecision::Done(formatted) => {
                // If the model wrote the answer as the input of a tool call, the conversation gets
                // only the text of the answer. The tool call would need a result, and later
                // responses would imitate it.
                let answer = Message::assistant(formatted.to_markdown());
                self.messages.push(Arc::new(answer));
                formatting.items = Some(formatted.items);
                formatting.thinking.clone_from(&formatted.thinking);
                thinking = formatted.thinking;
                let error = formatted.fault.map(|fault| {
                    let message = format!(
                        "the answer does not match the requested format: {fault}. Ask again or use \
                         another model"
                    );
                    RunError::new(RunErrorKind::MalformedAnswer, message)
                });
                (formatted.repairs, error)
            }
            FormatDecision::Silent => {
                let message = "the model returned an empty answer; ask again or use another model";
                let error = RunError::new(RunErrorKind::EmptyAnswer, message);
                (Vec::new(), Some(error))
            }
        };
        if is_incomplete_finish(finish) {
            self.end_run_by_finish_reason(finish.clone());
        } else if let Some(error) = error {
            self.end_with_error(error);
        } else {
            // If the model wrote the answer as the input of a tool call, this call is not executed,
            // so the reported finish reason is `Stop`.
            if *finish == FinishReason::ToolUse {
                self.state.finish = Some(FinishReason::Stop);
            }
            self.state.phase = AgentLoopState::Done(Outcome::Completed);
        }
        let thinking = thinking.map(|text| RunEventKind::ReasoningDelta { text });
        let event = (!repairs.is_empty()).then_some(RunEventKind::FormatRepaired { repairs });
        thinking.into_iter().chain(event).collect()
    }

    /// Restarts the formatting phase, because the run switched to another model. Returns the start
    /// event, or `None` outside the formatting phase.
    pub(super) fn restart_formatting(&mut self) -> Option<RunEventKind> {
        let state = FormatState::new(&self.gathering_settings(), &self.state.capabilities);
        let StrategyPhase::Format(formatting) = &mut self.state.stage else {
            return None;
        };
        let started = formatting_start_event(&state, None);
        formatting.state = state;
        formatting.messages.clear();
        formatting.paused.clear();
        Some(started)
    }

    /// Stores the readable text of an interrupted formatted answer for the report.
    pub(super) fn store_partial_answer(&mut self, message: &Message) {
        let StrategyPhase::Format(formatting) = &mut self.state.stage else {
            return;
        };
        let complete = formatting.join_parts_around_pause(message);
        let finish = FinishReason::Interrupted;
        let read =
            formatting
                .state
                .evaluate_formatting_response(&complete, &finish, &formatting.gathered);
        let FormatDecision::Done(FormattedAnswer { items, .. }) = read else {
            return;
        };
        let text = formatter::render_markdown(&items);
        formatting.items = Some(items);
        self.state.partial_answer = Some(text).filter(|text| !text.is_empty());
    }
}

impl FormattingPhase {
    /// Joins the parts that the provider sent before a pause and the parts of the message `last`.
    /// Removes the parts before the pause from the state.
    fn join_parts_around_pause(&mut self, last: &Message) -> Message {
        let mut parts = mem::take(&mut self.paused);
        parts.extend(last.parts.iter().cloned());
        Message::new(Role::Assistant, parts)
    }
}

fn formatting_start_event(
    state: &FormatState,
    gathering_ended: Option<GatheringEnd>,
) -> RunEventKind {
    RunEventKind::PhaseStarted {
        phase: RunPhase::Formatting,
        mode: Some(state.current_mode().to_string()),
        gathering_ended,
    }
}

/// Returns whether the finish reason means that a response is incomplete or was withheld.
fn is_incomplete_finish(finish: &FinishReason) -> bool {
    matches!(
        finish,
        FinishReason::Length
            | FinishReason::ContextOverflow
            | FinishReason::ContentFilter
            | FinishReason::Refusal
            | FinishReason::Interrupted
    )
}
