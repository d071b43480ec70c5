//! The one place where streamed events become an answer.

use crate::{
    ChatResponse, EventGrammar, FinishReason, GrammarViolation, Message, ModelEvent, Part,
    PartStart, ProviderState, Reasoning, Role, Text, ToolChoiceOutcome, ToolInput, ToolUse, Usage,
    Warning, check_depth,
};

/// Bytes of one tool input that are kept; a longer input is malformed.
pub const DEFAULT_MAX_TOOL_INPUT_BYTES: usize = 4 * 1024 * 1024;

/// Assembles a streamed answer, event by event, and checks the grammar while it does.
///
/// Rules that hold for every provider live here: when a tool input counts as malformed, which empty
/// parts are dropped, and that the finish reason agrees with the output.
///
/// ```
/// use switchboard_domain::{FinishReason, ModelEvent, PartStart, ResponseAccumulator};
///
/// let mut answer = ResponseAccumulator::default();
/// answer.push(&ModelEvent::PartStarted { index: 0, part: PartStart::Text })?;
/// answer.push(&ModelEvent::TextDelta { index: 0, text: "42".into() })?;
/// answer.push(&ModelEvent::Finished { reason: FinishReason::Stop, raw: None })?;
/// assert_eq!(answer.finish()?.message.text(), "42");
/// # Ok::<(), switchboard_domain::GrammarViolation>(())
/// ```
#[derive(Debug)]
pub struct ResponseAccumulator {
    max_tool_input_bytes: usize,
    grammar: EventGrammar,
    /// One for each part that began, in the order of the grammar.
    slots: Vec<Slot>,
    usage: Usage,
    warnings: Vec<Warning>,
    tool_choice: ToolChoiceOutcome,
    response_id: Option<String>,
    model: Option<String>,
    finished: Option<(FinishReason, Option<String>)>,
}

impl Default for ResponseAccumulator {
    fn default() -> Self {
        Self::with_max_tool_input(DEFAULT_MAX_TOOL_INPUT_BYTES)
    }
}

#[derive(Debug)]
struct Slot {
    open: bool,
    state: Option<ProviderState>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Text(String),
    Reasoning(String),
    ToolUse {
        id: String,
        name: String,
        json: String,
        too_long: bool,
    },
    /// In a box: it is rare, and big.
    Whole(Box<Part>),
}

impl ResponseAccumulator {
    /// An accumulator that keeps at most `bytes` of one tool input.
    pub fn with_max_tool_input(bytes: usize) -> Self {
        Self {
            max_tool_input_bytes: bytes,
            grammar: EventGrammar::default(),
            slots: Vec::new(),
            usage: Usage::default(),
            warnings: Vec::new(),
            tool_choice: ToolChoiceOutcome::default(),
            response_id: None,
            model: None,
            finished: None,
        }
    }

    /// Takes the next event.
    pub fn push(&mut self, event: &ModelEvent) -> Result<(), GrammarViolation> {
        check_event_depth(event)?;
        let at = self.grammar.place(event)?;
        match event {
            ModelEvent::Started {
                response_id,
                model,
                tool_choice,
            } => {
                self.response_id.clone_from(response_id);
                self.model.clone_from(model);
                self.tool_choice = tool_choice.clone();
            }
            ModelEvent::PartStarted { part, .. } => self.start(part),
            ModelEvent::Usage { usage } => self.usage.update(**usage),
            ModelEvent::Warning { warning } => self.warnings.push(warning.clone()),
            // The grammar has forgotten the parts already.
            ModelEvent::Retrying { .. } => {
                *self = Self::with_max_tool_input(self.max_tool_input_bytes);
            }
            ModelEvent::Finished { reason, raw } => {
                self.finished = Some((reason.clone(), raw.clone()));
            }
            about_a_part => {
                if let Some(slot) = self.slots.get_mut(at) {
                    slot.push(about_a_part, self.max_tool_input_bytes);
                }
            }
        }
        Ok(())
    }

    /// Whether `Finished` came.
    pub fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Whether anything came that a person would see.
    pub fn has_output(&self) -> bool {
        !self.slots.is_empty()
    }

    /// The whole answer.
    pub fn finish(mut self) -> Result<ChatResponse, GrammarViolation> {
        let (reason, raw) = self.finished.take().ok_or(GrammarViolation::NoFinish)?;
        Ok(self.assemble(reason, raw))
    }

    /// What there is of an answer that broke off. Open tool uses are malformed, and the reason is
    /// [`FinishReason::Interrupted`] unless the provider had said another.
    pub fn interrupted(mut self) -> ChatResponse {
        let (reason, raw) = self
            .finished
            .take()
            .unwrap_or((FinishReason::Interrupted, None));
        self.assemble(reason, raw)
    }

    fn assemble(self, reason: FinishReason, finish_raw: Option<String>) -> ChatResponse {
        let limit = self.max_tool_input_bytes;
        // As many as there are: a message is kept for long.
        let mut parts = Vec::with_capacity(self.slots.len());
        parts.extend(
            self.slots
                .into_iter()
                .filter_map(|slot| slot.into_part(limit)),
        );
        let message = Message::new(Role::Assistant, parts);
        let any_tool_use = message.tool_uses().next().is_some();
        ChatResponse {
            finish: reason.given_tool_uses(any_tool_use),
            message,
            finish_raw,
            usage: self.usage,
            tool_choice: self.tool_choice,
            warnings: self.warnings,
            response_id: self.response_id,
            model: self.model,
        }
    }

    fn start(&mut self, part: &PartStart) {
        let content = match part {
            PartStart::Text => Content::Text(String::new()),
            PartStart::Reasoning => Content::Reasoning(String::new()),
            PartStart::ToolUse { id, name } => Content::ToolUse {
                id: id.clone(),
                name: name.clone(),
                json: String::new(),
                too_long: false,
            },
            PartStart::Whole { part } => Content::Whole(part.clone()),
        };
        self.slots.push(Slot {
            open: true,
            state: None,
            content,
        });
    }
}

/// Refuses a state or a whole part that could be stored and not be read again. The input of a tool
/// use that streams is checked when it is complete, by [`ToolInput::parse`].
fn check_event_depth(event: &ModelEvent) -> Result<(), GrammarViolation> {
    let (index, checked) = match event {
        ModelEvent::PartState { index, state } => (index, check_depth(&state.data)),
        ModelEvent::PartStarted {
            index,
            part: PartStart::Whole { part },
        } => (index, part.check_depth()),
        _ => return Ok(()),
    };
    checked.map_err(|too_deep| GrammarViolation::TooDeep {
        index: *index,
        too_deep,
    })
}

impl Slot {
    /// Takes an event of this part, which the grammar has let through.
    fn push(&mut self, event: &ModelEvent, max_tool_input: usize) {
        match (&mut self.content, event) {
            (Content::Text(content), ModelEvent::TextDelta { text, .. })
            | (Content::Reasoning(content), ModelEvent::ReasoningDelta { text, .. }) => {
                content.push_str(text);
            }
            (
                Content::ToolUse { json, too_long, .. },
                ModelEvent::ToolInputDelta { json: delta, .. },
            ) => {
                if json.len().saturating_add(delta.len()) > max_tool_input {
                    *too_long = true;
                } else if !*too_long {
                    json.push_str(delta);
                }
            }
            (_, ModelEvent::PartState { state, .. }) => self.state = Some((**state).clone()),
            (_, ModelEvent::PartFinished { .. }) => self.open = false,
            _ => {}
        }
    }

    /// `None` for a part that says nothing and carries nothing.
    fn into_part(self, max_tool_input: usize) -> Option<Part> {
        let provider_state = self.state;
        match self.content {
            Content::Text(text) if text.is_empty() && provider_state.is_none() => None,
            Content::Text(text) => Some(Part::Text(Text {
                text,
                provider_state,
            })),
            // Redacted thinking has no text, but its signature must go back.
            Content::Reasoning(text) if text.is_empty() && provider_state.is_none() => None,
            Content::Reasoning(text) => Some(Part::Reasoning(Reasoning {
                text,
                provider_state,
            })),
            Content::ToolUse {
                id,
                name,
                json,
                too_long,
            } => {
                let input = if too_long {
                    let reason = format!("longer than {max_tool_input} bytes");
                    ToolInput::malformed(json, reason)
                } else if self.open {
                    ToolInput::malformed(json, "cut off before it was complete")
                } else {
                    ToolInput::parse(&json)
                };
                Some(Part::ToolUse(ToolUse {
                    id,
                    name,
                    input,
                    provider_state,
                }))
            }
            Content::Whole(part) => Some(*part),
        }
    }
}

#[cfg(test)]
#[path = "accumulator_tests.rs"]
mod tests;
