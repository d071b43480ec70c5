//! State of the formatting phase, and the processing of its responses.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    ChatRequest, FinishReason, Message, ModelCapabilities, ModelError, ModelErrorKind,
    ResponseFormat, ToolChoice, ToolInput, ToolResult, ToolUse,
};

use super::{
    FormattedAnswer, FormatterMode, PartialAnswerReader, TOOL,
    answer_items::{self, ParsedAnswer},
    answer_schema, custom_schema, formatter_definition,
    json::{self, FoundJson},
    prompts,
};
use crate::{
    AnswerItem,
    strategy::{GatherFormat, more_data_marker},
};

/// State of the formatting phase, during which the model writes the final answer in the required
/// format. The state is stored with the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FormatState {
    mode: FormatterMode,
    /// Modes to try after the current one, from the strictest to the loosest.
    left: Vec<FormatterMode>,
    /// Whether the model was called a second time because a response was malformed. The model is
    /// not called a third time for this reason.
    asked_again: bool,
    /// Readable text of the last malformed response. It becomes the answer if no valid response
    /// follows.
    said: Option<String>,
    /// Custom JSON Schema of the answer. `None` for an answer that consists of texts and artifacts.
    schema: Option<Value>,
}

/// The decision about a model response in the formatting phase: it is the answer, or the model is
/// called again, or there is no answer.
#[derive(Debug, Clone, PartialEq)]
pub enum FormatDecision {
    /// The response is the answer. [`FormattedAnswer::fault`] is set if the answer does not match
    /// the custom schema.
    Done(FormattedAnswer),
    /// The response is malformed, and the model is called a second time. The new call may use
    /// another [`FormatState::current_mode`].
    Reask {
        /// Message to the model about the fault. In the next request, it follows the malformed
        /// response. A response without parts is omitted from the request.
        message: Message,
        /// Description of the fault in the response.
        error: String,
    },
    /// No response of the run contains text, so the run has no answer.
    Silent,
}

/// The content of a model response: tool calls that contain the answer, other tool calls, and text.
struct ResponseContent<'a> {
    /// Tool calls whose input is the answer: calls of a tool whose name ends with [`TOOL`], and
    /// calls whose input has the key `conversation`.
    answers: Vec<&'a ToolUse>,
    others: Vec<&'a ToolUse>,
    text: String,
}

impl FormatState {
    /// Creates the state for a model with these capabilities.
    pub fn new(settings: &GatherFormat, capabilities: &ModelCapabilities) -> Self {
        let mut modes = FormatterMode::supported_modes(capabilities);
        if let Some(mode) = settings.formatter_mode {
            modes.retain(|other| *other > mode);
            modes.insert(0, mode);
        }
        let mut modes = modes.into_iter();
        Self {
            mode: modes.next().unwrap_or(FormatterMode::Auto),
            left: modes.collect(),
            asked_again: false,
            said: None,
            schema: settings.schema.clone(),
        }
    }

    /// Returns the formatting mode that the next request uses.
    pub fn current_mode(&self) -> FormatterMode {
        self.mode
    }

    /// Returns the system prompt of the formatting phase. It starts with `instructions`.
    pub fn system_prompt(&self, instructions: Option<&str>) -> String {
        prompts::system_prompt(self.mode, instructions, self.schema.as_ref())
    }

    /// Returns the user message that asks the model for the answer. It is the last message of each
    /// request of the formatting phase and not part of the conversation.
    pub fn build_answer_request(&self) -> Message {
        prompts::build_answer_request(self.mode)
    }

    /// Adapts a request to the current mode. The messages do not change.
    ///
    /// | mode | declared tools | tool choice | response format |
    /// |---|---|---|---|
    /// | `Native` | unchanged | `None` | `JsonSchema` |
    /// | `Named` | only [`TOOL`] | `Only` with the name of [`TOOL`] | `Text` |
    /// | `Required` | only [`TOOL`] | `Required` | `Text` |
    /// | `Auto` | only [`TOOL`] | `Auto` | `Text` |
    ///
    /// `Native` keeps the declared tools, because some APIs reject a conversation with calls of
    /// tools that the request does not declare.
    #[must_use]
    pub fn prepare_request(&self, mut request: ChatRequest) -> ChatRequest {
        if self.mode == FormatterMode::Native {
            request.tool_choice = ToolChoice::None;
            request.parallel_tool_use = None;
            let custom = self.schema.as_ref();
            request.response_format = ResponseFormat::JsonSchema {
                name: TOOL.to_owned(),
                schema: custom.map_or_else(answer_schema, custom_schema::wrap_in_object_schema),
            };
            return request;
        }
        request.tools = vec![Arc::new(formatter_definition(self.schema.as_ref()))];
        request.tool_choice = match self.mode {
            FormatterMode::Named => ToolChoice::Only(vec![TOOL.to_owned()]),
            FormatterMode::Required => ToolChoice::Required,
            FormatterMode::Native | FormatterMode::Auto => ToolChoice::Auto,
        };
        request.parallel_tool_use = Some(false);
        request.response_format = ResponseFormat::Text;
        request
    }

    /// Switches to the next mode if the provider rejected the request.
    ///
    /// Returns `false` for other errors and after the last mode.
    pub fn switch_mode_after_error(&mut self, error: &ModelError) -> bool {
        let is_refusal = matches!(
            error.kind,
            ModelErrorKind::InvalidRequest { .. } | ModelErrorKind::Unsupported { .. }
        );
        is_refusal && self.switch_to_next_mode()
    }

    fn switch_to_next_mode(&mut self) -> bool {
        if self.left.is_empty() {
            return false;
        }
        self.mode = self.left.remove(0);
        true
    }

    /// Creates a reader that extracts the text of a streamed formatted answer. With a custom
    /// schema, the reader returns no text.
    pub fn new_partial_formatter(&self) -> PartialAnswerReader {
        if self.schema.is_some() {
            PartialAnswerReader::new_without_output()
        } else {
            PartialAnswerReader::new()
        }
    }

    /// Processes a response of the formatting phase and decides how the run continues.
    ///
    /// `gathered` is the last text of the model in the gathering phase, which precedes the
    /// formatting phase. It becomes the answer if the responses of the formatting phase have no
    /// text.
    ///
    /// After a refusal or at the output limit, the model is not called again, because the result
    /// would be equal.
    pub fn evaluate_formatting_response(
        &mut self,
        answer: &Message,
        finish: &FinishReason,
        gathered: &str,
    ) -> FormatDecision {
        let parts = ResponseContent::from_message(answer);
        let cut_off = matches!(finish, FinishReason::Length | FinishReason::Interrupted);
        let read = match &self.schema {
            Some(schema) => parts.parse_custom_schema_answer(schema),
            None => parts.parse_formatted_answer(self.mode, cut_off),
        };
        let error = match read {
            Ok(mut formatted) => {
                if cut_off {
                    formatted
                        .repairs
                        .push("the answer was truncated".to_owned());
                }
                return FormatDecision::Done(formatted);
            }
            Err(error) => error,
        };
        self.said = parts
            .malformed_answer_text(self.schema.is_some())
            .or(self.said.take());
        let withheld = cut_off
            || matches!(
                finish,
                FinishReason::Refusal | FinishReason::ContentFilter | FinishReason::ContextOverflow
            );
        if !self.asked_again && !withheld {
            self.asked_again = true;
            if !parts.has_answer_for_mode(self.mode) {
                self.switch_to_next_mode();
            }
            return FormatDecision::Reask {
                message: self.build_malformed_answer_message(answer, &error),
                error,
            };
        }
        let text = self
            .said
            .take()
            .or_else(|| trim_or_none(&more_data_marker::remove_marker_lines(gathered)));
        let Some(text) = text else {
            return FormatDecision::Silent;
        };
        let (repairs, fault) = if self.schema.is_some() {
            (Vec::new(), Some(error))
        } else {
            let repair = format!("{error}; the text of the model became the answer");
            (vec![repair], None)
        };
        FormatDecision::Done(FormattedAnswer {
            items: vec![AnswerItem::Text { content: text }],
            repairs,
            fault,
            ..FormattedAnswer::default()
        })
    }

    /// Returns the message to the model about a malformed response: one error result for each tool
    /// use of the response, or a user message if the response has no tool use.
    fn build_malformed_answer_message(&self, answer: &Message, error: &str) -> Message {
        let text = prompts::format_malformed_answer_text(self.mode, error);
        let results: Vec<ToolResult> = answer
            .tool_uses()
            .map(|tool_use| ToolResult::from_error_message(&tool_use.id, &tool_use.name, &text))
            .collect();
        if results.is_empty() {
            Message::user(text)
        } else {
            Message::from_tool_results(results)
        }
    }
}

impl<'a> ResponseContent<'a> {
    fn from_message(answer: &'a Message) -> Self {
        let (answers, others) = answer.tool_uses().partition(|tool_use| {
            let name = tool_use.name.to_ascii_lowercase();
            // Some models add a prefix to the tool name, as in `functions.response_formatter`.
            name.ends_with(TOOL)
                || tool_use
                    .input
                    .as_object()
                    .is_some_and(|input| input.contains_key("conversation"))
        });
        Self {
            answers,
            others,
            // The gathering phase has ended, but the model may still write lines such as `NEED MORE
            // DATA: …`, with which it requests a further step of that phase. They are not part of
            // the answer.
            text: more_data_marker::remove_marker_lines(&answer.text()),
        }
    }

    /// Returns whether the response contains the answer in the form that the mode requires: as a
    /// call of the tool [`TOOL`], or as JSON text.
    fn has_answer_for_mode(&self, mode: FormatterMode) -> bool {
        match mode {
            FormatterMode::Native => json::find_json(&self.text, true).is_some(),
            _ => !self.answers.is_empty(),
        }
    }

    fn parse_formatted_answer(
        &self,
        mode: FormatterMode,
        cut_off: bool,
    ) -> Result<FormattedAnswer, String> {
        let mut reading = ParsedAnswer::default();
        for tool_use in &self.answers {
            match &tool_use.input {
                ToolInput::Object(input) => reading.add_answer_items(input.as_value().clone()),
                ToolInput::Malformed { raw, .. } => {
                    if let Some(found) = json::find_json(raw, cut_off) {
                        reading.add_repair(found.repair.unwrap_or("its JSON was not an object"));
                        reading.add_answer_items(found.value);
                    }
                }
            }
        }
        if !self.text.is_empty() {
            self.add_text_outside_calls(&mut reading, mode, json::find_json(&self.text, cut_off));
        }
        for other in &self.others {
            reading.add_repair(format!(
                "a call of `{}` was not executed in the formatting phase",
                other.name
            ));
        }
        if reading.items.is_empty() {
            return Err(self.describe_answer_fault());
        }
        Ok(FormattedAnswer {
            items: reading.items,
            thinking: reading.thinking,
            repairs: reading.repairs,
            fault: None,
        })
    }

    /// Adds the text outside of tool calls to the answer `reading`. `found` is the JSON in this
    /// text. If it is a formatted answer, its items are added; otherwise the text becomes the first
    /// item.
    fn add_text_outside_calls(
        &self,
        reading: &mut ParsedAnswer,
        mode: FormatterMode,
        found: Option<FoundJson>,
    ) {
        let found = found.filter(|found| answer_items::looks_like_answer(&found.value));
        if let Some(found) = found {
            // If the input of a tool call already is the answer, the JSON in the text may repeat
            // it, so this JSON is ignored.
            if reading.items.is_empty() {
                reading.add_answer_items(found.value);
            }
            if mode != FormatterMode::Native {
                reading
                    .add_repair("the answer was written as text instead of calling the formatter");
            }
            if let Some(repair) = found.repair {
                reading.add_repair(repair);
            }
            return;
        }
        let contains_text = |item: &AnswerItem| item.content().contains(&self.text);
        if reading.items.iter().any(contains_text) {
            return;
        }
        reading.add_repair(match mode {
            FormatterMode::Native => "plain text became the answer",
            _ => "text outside the formatter became part of the answer",
        });
        let content = self.text.clone();
        reading.items.insert(0, AnswerItem::Text { content });
    }

    fn describe_answer_fault(&self) -> String {
        for tool_use in &self.answers {
            if let ToolInput::Malformed { reason, .. } = &tool_use.input {
                return format!("its input is malformed: {reason}");
            }
        }
        if self.answers.is_empty() && self.others.is_empty() {
            "it is empty".to_owned()
        } else if self.answers.is_empty() {
            format!("it does not call `{TOOL}`")
        } else {
            "`conversation` must be a list with at least one item that has content".to_owned()
        }
    }

    fn parse_custom_schema_answer(&self, schema: &Value) -> Result<FormattedAnswer, String> {
        let (raw, fault) = match self.answers.first().map(|tool_use| &tool_use.input) {
            Some(ToolInput::Object(input)) => {
                return format_custom_answer(schema, input.as_value().clone(), None);
            }
            Some(ToolInput::Malformed { raw, .. }) => (raw, self.describe_answer_fault()),
            None if self.text.is_empty() => return Err(self.describe_answer_fault()),
            None => (&self.text, "it is not JSON".to_owned()),
        };
        match json::find_json(raw, false) {
            Some(found) => format_custom_answer(schema, found.value, found.repair),
            // The text contains no JSON object or list, but it may be a plain number or string that
            // the custom schema requires.
            None => {
                format_custom_answer(schema, serde_json::from_str(raw).map_err(|_| fault)?, None)
            }
        }
    }

    /// Returns all readable text of a malformed response: its text, and the inputs of the tool
    /// calls that contain the answer. With a custom schema, the inputs are formatted as JSON.
    /// Returns `None` without text.
    fn malformed_answer_text(&self, is_custom: bool) -> Option<String> {
        let uses = self.answers.iter().map(|tool_use| match &tool_use.input {
            ToolInput::Object(input) if is_custom => answer_items::to_pretty_json(input.as_value()),
            ToolInput::Object(input) => answer_items::extract_readable_text(input.as_value()),
            ToolInput::Malformed { raw, .. } => raw.trim().to_owned(),
        });
        let parts: Vec<String> = std::iter::once(self.text.clone())
            .chain(uses)
            .filter(|part| !part.trim().is_empty())
            .collect();
        trim_or_none(&parts.join("\n\n"))
    }
}

fn format_custom_answer(
    schema: &Value,
    value: Value,
    repair: Option<&'static str>,
) -> Result<FormattedAnswer, String> {
    let (value, mut repairs) = custom_schema::validate_answer(schema, value)?;
    repairs.extend(repair.map(str::to_owned));
    let text = answer_items::to_pretty_json(&value);
    Ok(FormattedAnswer {
        items: vec![AnswerItem::Text { content: text }],
        repairs,
        ..FormattedAnswer::default()
    })
}

fn trim_or_none(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
