//! Assembly of streamed events into a complete response.

use crate::{
    ChatResponse, EventOrderChecker, FinishReason, GrammarViolation, Message, ModelEvent, Part,
    PartStart, ProviderState, Reasoning, Role, Text, ToolChoiceOutcome, ToolInput, ToolUse, Usage,
    Warning, check_depth,
};

/// Default maximum size of one tool input in bytes. Longer input is [`ToolInput::Malformed`].
pub const DEFAULT_MAX_TOOL_INPUT_BYTES: usize = 4 * 1024 * 1024;

/// Assembler of a streamed answer, which also checks the order of the events.
///
/// It applies the rules that are common to all providers: when a tool input is malformed, which
/// empty parts are dropped, and that the finish reason agrees with the output.
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
#[derive(Debug, Default)]
pub struct ResponseAccumulator {
    /// `None` means [`DEFAULT_MAX_TOOL_INPUT_BYTES`].
    max_tool_input_bytes: Option<usize>,
    grammar: EventOrderChecker,
    /// The parts that have started, in the order of their start.
    parts: Vec<PartBuffer>,
    usage: Usage,
    warnings: Vec<Warning>,
    tool_choice: ToolChoiceOutcome,
    response_id: Option<String>,
    model: Option<String>,
    finished: Option<(FinishReason, Option<String>)>,
}

#[derive(Debug)]
struct PartBuffer {
    open: bool,
    state: Option<ProviderState>,
    content: PartContent,
}

#[derive(Debug)]
enum PartContent {
    Text(String),
    Reasoning(String),
    ToolUse {
        id: String,
        name: String,
        json: String,
        too_long: bool,
    },
    /// A part that arrived complete in one event. Boxed because it is rare and large.
    Whole(Box<Part>),
}

impl ResponseAccumulator {
    /// Returns an empty accumulator. A tool input of more than `bytes` bytes becomes
    /// [`ToolInput::Malformed`].
    pub fn with_max_tool_input(bytes: usize) -> Self {
        Self {
            max_tool_input_bytes: Some(bytes),
            ..Self::default()
        }
    }

    fn max_tool_input_bytes(&self) -> usize {
        let max = self.max_tool_input_bytes;
        max.unwrap_or(DEFAULT_MAX_TOOL_INPUT_BYTES)
    }

    /// Adds the next event. Fails if the event is not allowed at this position (see the grammar at
    /// [`ModelEvent`]) or nests JSON too deeply.
    pub fn push(&mut self, event: &ModelEvent) -> Result<(), GrammarViolation> {
        check_event_depth(event)?;
        let at = self.grammar.check_and_find_part(event)?;
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
            ModelEvent::PartStarted { part, .. } => self.start_part(part),
            ModelEvent::Usage { usage } => self.usage.update_counts(**usage),
            ModelEvent::Warning { warning } => self.warnings.push(warning.clone()),
            // A retry starts the answer again, so everything that was received before is discarded.
            ModelEvent::Retrying { .. } => {
                *self = Self::with_max_tool_input(self.max_tool_input_bytes());
            }
            ModelEvent::Finished { reason, raw } => {
                self.finished = Some((reason.clone(), raw.clone()));
            }
            part_event => {
                let max_tool_input = self.max_tool_input_bytes();
                if let Some(part) = self.parts.get_mut(at) {
                    part.push(part_event, max_tool_input);
                }
            }
        }
        Ok(())
    }

    /// Returns whether the accumulator has received [`ModelEvent::Finished`].
    pub fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Returns whether any part of the answer has started. A retry discards the parts that started
    /// before it.
    pub fn has_output(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Returns the complete answer. Fails if [`ModelEvent::Finished`] was not received.
    pub fn finish(mut self) -> Result<ChatResponse, GrammarViolation> {
        let (reason, raw) = self.finished.take().ok_or(GrammarViolation::NoFinish)?;
        Ok(self.assemble_response(reason, raw))
    }

    /// Returns a response with everything that was received of an interrupted answer.
    ///
    /// The input of a tool use that is still open becomes [`ToolInput::Malformed`]. The finish
    /// reason is [`FinishReason::Interrupted`] unless the provider has already sent one.
    pub fn into_interrupted_response(mut self) -> ChatResponse {
        let (reason, raw) = self
            .finished
            .take()
            .unwrap_or((FinishReason::Interrupted, None));
        self.assemble_response(reason, raw)
    }

    fn assemble_response(self, reason: FinishReason, finish_raw: Option<String>) -> ChatResponse {
        let max_tool_input = self.max_tool_input_bytes();
        // The capacity is exact, because the parts stay in memory as long as the conversation.
        let mut parts = Vec::with_capacity(self.parts.len());
        let buffers = self.parts.into_iter();
        parts.extend(buffers.filter_map(|part| part.into_part(max_tool_input)));
        let message = Message::new(Role::Assistant, parts);
        let any_tool_use = message.tool_uses().next().is_some();
        ChatResponse {
            finish: reason.adjust_to_tool_uses(any_tool_use),
            message,
            finish_raw,
            usage: self.usage,
            tool_choice: self.tool_choice,
            warnings: self.warnings,
            response_id: self.response_id,
            model: self.model,
        }
    }

    fn start_part(&mut self, part: &PartStart) {
        let content = match part {
            PartStart::Text => PartContent::Text(String::new()),
            PartStart::Reasoning => PartContent::Reasoning(String::new()),
            PartStart::ToolUse { id, name } => PartContent::ToolUse {
                id: id.clone(),
                name: name.clone(),
                json: String::new(),
                too_long: false,
            },
            PartStart::Whole { part } => PartContent::Whole(part.clone()),
        };
        self.parts.push(PartBuffer {
            open: true,
            state: None,
            content,
        });
    }
}

/// Fails if a provider state or a whole part nests JSON too deeply: a stored message with such data
/// could not be read again. [`ToolInput::parse_input`] checks streamed tool inputs when they are
/// complete.
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

impl PartBuffer {
    /// Adds an event to this part. [`EventOrderChecker`] has already checked that the event is
    /// allowed for this part.
    fn push(&mut self, event: &ModelEvent, max_tool_input: usize) {
        match (&mut self.content, event) {
            (PartContent::Text(content), ModelEvent::TextDelta { text, .. })
            | (PartContent::Reasoning(content), ModelEvent::ReasoningDelta { text, .. }) => {
                content.push_str(text);
            }
            (
                PartContent::ToolUse { json, too_long, .. },
                ModelEvent::ToolInputDelta { json: delta, .. },
            ) => {
                // An input that is too long is truncated exactly at the limit. The result therefore
                // does not depend on how the provider splits the input into deltas.
                let room = max_tool_input.saturating_sub(json.len());
                if !*too_long {
                    *too_long = delta.len() > room;
                    json.push_str(&delta[..delta.floor_char_boundary(room)]);
                }
            }
            (_, ModelEvent::PartState { state, .. }) => self.state = Some((**state).clone()),
            (_, ModelEvent::PartFinished { .. }) => self.open = false,
            _ => {}
        }
    }

    /// Returns the complete part. Returns `None` for a text or reasoning part that has neither text
    /// nor provider state.
    fn into_part(self, max_tool_input: usize) -> Option<Part> {
        let provider_state = self.state;
        match self.content {
            // An empty part with provider state stays: providers require the signature of reasoning
            // even if the reasoning has no text.
            PartContent::Text(text) | PartContent::Reasoning(text)
                if text.is_empty() && provider_state.is_none() =>
            {
                None
            }
            PartContent::Text(text) => Some(Part::Text(Text {
                text,
                provider_state,
            })),
            PartContent::Reasoning(text) => Some(Part::Reasoning(Reasoning {
                text,
                provider_state,
            })),
            PartContent::ToolUse {
                id,
                name,
                json,
                too_long,
            } => {
                let input = if too_long {
                    let reason = format!("longer than {max_tool_input} bytes");
                    ToolInput::malformed_input(json, reason)
                } else if self.open {
                    ToolInput::malformed_input(json, "cut off before it was complete")
                } else {
                    ToolInput::parse_input(&json)
                };
                Some(Part::ToolUse(ToolUse {
                    id,
                    name,
                    input,
                    provider_state,
                }))
            }
            PartContent::Whole(part) => Some(*part),
        }
    }
}

#[cfg(test)]
#[path = "accumulator_tests.rs"]
mod tests;
