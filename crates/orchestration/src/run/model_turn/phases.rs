//! The phases of the strategy that gathers first and formats then.

use std::{collections::HashMap, mem, sync::Arc};

use serde::{Deserialize, Serialize};
use switchboard_domain::{
    ChatRequest, FinishReason, Message, ModelError, Part, Role, ToolDefinition, ToolInput, ToolUse,
    json_schema::SchemaValidator,
};

use crate::run::{Events, Phase, Run, tool_batch::batch::CallState};
use crate::{
    AnswerItem, Outcome, RunError, RunErrorKind, RunEventKind, RunPhase,
    policy::limits::Limits,
    strategy::{
        GatherFormat, Strategy,
        formatter::{self, FormatDecision, FormatState, FormatterMode, PartialFormatter},
        gather::{self, AfterGather, GatherCall, GatherState},
        repeats::CallVerdict,
    },
    tools::arguments,
};

/// Where a run is in its strategy.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::run) enum Stage {
    /// A plain loop.
    Loop,
    /// Data is gathered.
    Gather(Box<Gathering>),
    /// The answer is brought into its form.
    Format(Box<Formatting>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::run) struct Gathering {
    state: GatherState,
    /// What follows when the calls of the last answer have ended.
    next: Option<Next>,
    /// Calls of the last answer that were made before: their id, and the id of the earlier one.
    repeats: HashMap<String, String>,
    /// It was told that the phase began.
    #[serde(default)]
    begun: bool,
}

/// What follows an answer of the gathering phase.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Next {
    /// The model thinks on, with these words to go by if it called nothing.
    Think { nudge: Option<String> },
    /// The answer is formatted.
    Format,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::run) struct Formatting {
    state: FormatState,
    /// What was said in this phase; none of it belongs into the history.
    said: Vec<Arc<Message>>,
    /// The answer so far, where the provider paused it.
    #[serde(default)]
    paused: Vec<Part>,
    #[serde(default)]
    pauses: u32,
    /// What the model said last while it gathered.
    gathered: String,
    /// The answer, when it is there.
    items: Option<Vec<AnswerItem>>,
}

impl Stage {
    pub(in crate::run) fn of(strategy: &Strategy) -> Self {
        match strategy {
            Strategy::GatherFormat(options) => Self::Gather(Box::new(Gathering {
                state: GatherState::new(options),
                next: None,
                repeats: HashMap::new(),
                begun: false,
            })),
            _ => Self::Loop,
        }
    }
}

/// The system prompt of the gathering phase. It is made anew only where the instructions or the tools are
/// others than the step before.
#[derive(Debug, Default)]
pub(in crate::run) struct GatherPrompt {
    leading: Vec<Arc<Message>>,
    tools: Vec<Arc<ToolDefinition>>,
    made: Option<Arc<Message>>,
}

impl GatherPrompt {
    fn of(
        &mut self,
        options: &GatherFormat,
        leading: &[Arc<Message>],
        tools: &[Arc<ToolDefinition>],
    ) -> Arc<Message> {
        if let Some(made) = &self.made
            && are_same(&self.leading, leading)
            && are_same(&self.tools, tools)
        {
            return Arc::clone(made);
        }
        let instructions = texts(leading);
        let prompt = gather::system_prompt(options, instructions.as_deref(), tools);
        let made = Arc::new(Message::system(prompt));
        self.leading = leading.to_vec();
        self.tools = tools.to_vec();
        self.made = Some(Arc::clone(&made));
        made
    }
}

fn are_same<T>(before: &[Arc<T>], now: &[Arc<T>]) -> bool {
    before.len() == now.len() && before.iter().zip(now).all(|(a, b)| Arc::ptr_eq(a, b))
}

/// The texts of some messages, if there are any.
fn texts(messages: &[Arc<Message>]) -> Option<String> {
    let texts: Vec<_> = messages.iter().map(|message| message.text()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// How often the provider may pause one formatted answer. The limit of steps does not hold there.
const MAX_PAUSES: u32 = 8;

impl Run {
    /// Returns why the schema of the answer cannot be used, before the first request is made.
    pub(in crate::run) fn check_answer_schema(&self) -> Result<(), RunError> {
        let Stage::Gather(gathering) = &self.stage else {
            return Ok(());
        };
        let Some(schema) = self.gather_options().schema.filter(|_| !gathering.begun) else {
            return Ok(());
        };
        let compiled = SchemaValidator::compile(&schema).map(drop);
        compiled.map_err(|error| {
            RunError::new(
                RunErrorKind::InvalidSchema,
                format!("the schema of the answer cannot be used: {error}"),
            )
        })
    }

    /// Whether the gathering phase begins now, which it does once.
    pub(in crate::run) fn begins_to_gather(&mut self) -> bool {
        let Stage::Gather(gathering) = &mut self.stage else {
            return false;
        };
        !mem::replace(&mut gathering.begun, true)
    }

    /// Whether a limit leaves no room to gather more: the last step that is allowed is that of the form.
    pub(in crate::run) fn gathers_no_more(&self) -> bool {
        if !self.is_gathering() {
            return false;
        }
        let limits = &self.options.limits;
        let mut calls = Limits::steps(u32::MAX);
        calls.max_tool_calls = limits.max_tool_calls;
        self.steps().saturating_add(1) >= limits.max_steps || self.check(&calls).is_err()
    }

    /// A call did not run though it might have: made again, it is no repeat.
    pub(in crate::run) fn may_be_made_again(&mut self, id: &str) {
        if let Stage::Gather(gathering) = &mut self.stage {
            gathering.state.forget(id);
        }
    }

    pub(in crate::run) fn is_gathering(&self) -> bool {
        matches!(self.stage, Stage::Gather(_))
    }

    /// Whether the answer is being brought into its form.
    pub fn is_formatting(&self) -> bool {
        matches!(self.stage, Stage::Format(_))
    }

    /// Which phase of its strategy the run is in; a plain loop has none.
    pub fn stage(&self) -> Option<RunPhase> {
        match self.stage {
            Stage::Loop => None,
            Stage::Gather(_) => Some(RunPhase::Gathering),
            Stage::Format(_) => Some(RunPhase::Formatting),
        }
    }

    /// Reads the text of the answer out of the form while it is written, and by which means the form is
    /// brought about. One per model call.
    pub fn partial_formatter(&self) -> Option<(FormatterMode, PartialFormatter)> {
        match &self.stage {
            Stage::Format(formatting) => {
                Some((formatting.state.mode(), formatting.state.partial()))
            }
            _ => None,
        }
    }

    pub(in crate::run) fn formatted_items(&self) -> Option<&[AnswerItem]> {
        match &self.stage {
            Stage::Format(formatting) => formatting.items.as_deref(),
            _ => None,
        }
    }

    fn gather_options(&self) -> GatherFormat {
        match &self.options.strategy {
            Strategy::GatherFormat(options) => options.clone(),
            _ => GatherFormat::default(),
        }
    }

    /// Makes a request what its phase wants it to be.
    pub(in crate::run) fn shape(&mut self, mut request: ChatRequest) -> ChatRequest {
        let count = request
            .messages
            .iter()
            .take_while(|message| message.role == Role::System)
            .count();
        let leading = &request.messages[..count];
        let prompt = match &self.stage {
            Stage::Loop => return request,
            Stage::Gather(_) => {
                let options = self.gather_options();
                let prompt = self.gather_prompt.get_or_insert_default();
                prompt.of(&options, leading, &request.tools)
            }
            Stage::Format(formatting) => {
                let instructions = texts(leading);
                let prompt = formatting.state.system_prompt(instructions.as_deref());
                Arc::new(Message::system(prompt))
            }
        };
        request.messages.splice(..count, [prompt]);
        let Stage::Format(formatting) = &self.stage else {
            return request;
        };
        request.messages.extend(formatting.said.iter().cloned());
        request.messages.push(Arc::new(formatting.state.ask()));
        formatting.state.prepare(request)
    }

    /// An answer of the gathering phase: which of its calls run, and what comes then.
    pub(in crate::run) fn gather_heard(&mut self, message: &Message) {
        let Stage::Gather(gathering) = &mut self.stage else {
            return;
        };
        let uses: Vec<(&ToolUse, String)> = message
            .tool_uses()
            .map(|tool_use| {
                let input = match &tool_use.input {
                    ToolInput::Object(input) => arguments::digest(input),
                    ToolInput::Malformed { raw, .. } => raw.clone(),
                };
                (tool_use, input)
            })
            .collect();
        let calls: Vec<GatherCall<'_>> = uses
            .iter()
            .map(|(tool_use, input)| GatherCall {
                id: &tool_use.id,
                name: &tool_use.name,
                input,
            })
            .collect();
        let decision = gathering.state.after_answer(&message.text(), &calls);
        gathering.repeats = calls
            .iter()
            .zip(decision.calls)
            .filter_map(|(call, verdict)| match verdict {
                CallVerdict::Repeat { of } => Some((call.id.to_owned(), of)),
                CallVerdict::Run => None,
            })
            .collect();
        gathering.next = Some(match decision.next {
            AfterGather::Think { nudge, .. } => Next::Think { nudge },
            AfterGather::Format { .. } => Next::Format,
        });
    }

    /// The earlier call that stands in for this one.
    pub(in crate::run) fn repeated(&self, tool_use: &ToolUse) -> Option<CallState> {
        let Stage::Gather(gathering) = &self.stage else {
            return None;
        };
        gathering
            .repeats
            .get(&tool_use.id)
            .map(|of| CallState::Repeats { of: of.clone() })
    }

    /// The last answer of the gathering phase is dealt with, its calls have ended.
    pub(in crate::run) fn gathered(&mut self) -> Events {
        let Stage::Gather(gathering) = &mut self.stage else {
            return Vec::new();
        };
        self.phase = Phase::Model;
        match gathering.next.take() {
            Some(Next::Think { nudge }) => {
                self.nudge = nudge.map(|words| Arc::new(Message::user(words)));
                Vec::new()
            }
            Some(Next::Format) | None => self.begin_formatting(),
        }
    }

    /// Ends the gathering phase and begins the other.
    pub(in crate::run) fn begin_formatting(&mut self) -> Events {
        let gathered = self
            .new_messages()
            .iter()
            .rev()
            .filter(|message| message.role == Role::Assistant)
            .map(|message| message.text())
            .find(|text| !text.trim().is_empty())
            .unwrap_or_default();
        let state = FormatState::new(&self.gather_options(), &self.capabilities);
        let mode = state.mode().to_string();
        // Words that go with a request to gather.
        self.nudge = None;
        self.stage = Stage::Format(Box::new(Formatting {
            state,
            said: Vec::new(),
            paused: Vec::new(),
            pauses: 0,
            gathered,
            items: None,
        }));
        self.phase = Phase::Model;
        vec![RunEventKind::PhaseStarted {
            phase: RunPhase::Formatting,
            mode: Some(mode),
        }]
    }

    /// The provider would not take the request in this form: asks in the next one, if there is one.
    pub(in crate::run) fn formatter_refused(&mut self, error: &ModelError) -> Option<RunEventKind> {
        let Stage::Format(formatting) = &mut self.stage else {
            return None;
        };
        formatting
            .state
            .refused(error)
            .then(|| RunEventKind::PhaseStarted {
                phase: RunPhase::Formatting,
                mode: Some(formatting.state.mode().to_string()),
            })
    }

    /// An answer of the formatting phase.
    pub(in crate::run) fn formatted(&mut self, message: Message, finish: &FinishReason) -> Events {
        let Stage::Format(formatting) = &mut self.stage else {
            return Vec::new();
        };
        let may_pause = formatting.pauses < MAX_PAUSES && message.tool_uses().next().is_none();
        if *finish == FinishReason::Paused && may_pause {
            formatting.pauses += 1;
            if !message.parts.is_empty() {
                formatting.paused.extend(message.parts.iter().cloned());
                formatting.said.push(Arc::new(message));
            }
            self.phase = Phase::Model;
            return Vec::new();
        }
        let mut parts = mem::take(&mut formatting.paused);
        parts.extend(message.parts.iter().cloned());
        let whole = Message::new(Role::Assistant, parts);
        match formatting.state.read(&whole, finish, &formatting.gathered) {
            FormatDecision::Done(formatted) => {
                self.messages.push(Arc::new(formatted.message()));
                formatting.items = Some(formatted.items);
                if leaves_no_proper_answer(finish) {
                    self.end_by(finish.clone());
                } else {
                    // The call of the formatter is the answer, not one that wants a result.
                    if *finish == FinishReason::ToolUse {
                        self.finish = Some(FinishReason::Stop);
                    }
                    self.phase = Phase::Done(Outcome::Completed);
                }
                if formatted.repairs.is_empty() {
                    Vec::new()
                } else {
                    vec![RunEventKind::FormatRepaired {
                        repairs: formatted.repairs,
                    }]
                }
            }
            FormatDecision::Unfit { text, error } => {
                self.messages.push(Arc::new(Message::assistant(&text)));
                formatting.items = Some(vec![AnswerItem::Text { text }]);
                if leaves_no_proper_answer(finish) {
                    self.end_by(finish.clone());
                } else {
                    self.end_with(RunError::new(
                        RunErrorKind::MalformedAnswer,
                        format!("the answer is not as asked for: {error}. Ask again or take another model"),
                    ));
                }
                Vec::new()
            }
            FormatDecision::Reask { messages, error } => {
                // A message without anything in it is refused by providers.
                if !message.parts.is_empty() {
                    formatting.said.push(Arc::new(message));
                }
                formatting.said.extend(messages.into_iter().map(Arc::new));
                self.phase = Phase::Model;
                self.again.times += 1;
                vec![RunEventKind::AskedAgain {
                    attempt: self.again.times,
                    reason: error,
                }]
            }
            FormatDecision::Silent if leaves_no_proper_answer(finish) => {
                self.end_by(finish.clone());
                Vec::new()
            }
            FormatDecision::Silent => {
                self.end_with(RunError::new(
                    RunErrorKind::EmptyAnswer,
                    "the model answered with nothing; ask again or take another model",
                ));
                Vec::new()
            }
        }
    }

    /// Another model goes on in this phase, in the way that it can.
    pub(in crate::run) fn formatter_changes_hands(&mut self) -> Option<RunEventKind> {
        let state = FormatState::new(&self.gather_options(), &self.capabilities);
        let Stage::Format(formatting) = &mut self.stage else {
            return None;
        };
        let mode = state.mode().to_string();
        formatting.state = state;
        formatting.said.clear();
        formatting.paused.clear();
        Some(RunEventKind::PhaseStarted {
            phase: RunPhase::Formatting,
            mode: Some(mode),
        })
    }

    /// Half a formatted answer: what can be read of it is the answer, not the form it is in.
    pub(in crate::run) fn formatted_in_part(&mut self, message: &Message) {
        let Stage::Format(formatting) = &mut self.stage else {
            return;
        };
        let mut parts = mem::take(&mut formatting.paused);
        parts.extend(message.parts.iter().cloned());
        let whole = Message::new(Role::Assistant, parts);
        let finish = FinishReason::Interrupted;
        let items = match formatting.state.read(&whole, &finish, &formatting.gathered) {
            FormatDecision::Done(formatted) => formatted.items,
            FormatDecision::Unfit { text, .. } => vec![AnswerItem::Text { text }],
            FormatDecision::Reask { .. } | FormatDecision::Silent => return,
        };
        let text = formatter::render(&items);
        formatting.items = Some(items);
        self.partial_answer = Some(text).filter(|text| !text.is_empty());
    }
}

/// Whether an answer that ended so is cut off or withheld, whatever there is of it.
fn leaves_no_proper_answer(finish: &FinishReason) -> bool {
    matches!(
        finish,
        FinishReason::Length
            | FinishReason::ContextOverflow
            | FinishReason::ContentFilter
            | FinishReason::Refusal
            | FinishReason::Interrupted
    )
}
