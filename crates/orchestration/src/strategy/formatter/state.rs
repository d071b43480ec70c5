//! Where the format phase is, and what is made of an answer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    ChatRequest, FinishReason, Message, ModelCapabilities, ModelError, ModelErrorKind,
    ResponseFormat, ToolChoice, ToolDefinition, ToolInput, ToolResult, ToolUse,
};

use super::{
    Formatted, FormatterMode, PartialFormatter, TOOL, definition,
    items::{self, Reading},
    json, own, schema, words,
};
use crate::{
    AnswerItem,
    strategy::{GatherFormat, marker},
};

/// Where the format phase is. Part of the run, and stored with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FormatState {
    mode: FormatterMode,
    /// The modes that are left, the next one first.
    left: Vec<FormatterMode>,
    /// The model was told once what is wrong with its answer.
    asked_again: bool,
    /// What it said in an answer that could not be read.
    said: Option<String>,
    /// The answer's own schema.
    schema: Option<Value>,
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum FormatDecision {
    /// It is the answer.
    Done(Formatted),
    /// It could not be read; the model is asked again, which happens once. [`FormatState::mode`] may
    /// be another one then.
    Reask {
        /// To be appended behind the answer itself, if that has parts.
        messages: Vec<Message>,
        /// What is wrong.
        error: String,
    },
    /// The answer does not fit its own schema, and the model is not asked again.
    Unfit {
        /// The text of the answer.
        text: String,
        /// The first faults.
        error: String,
    },
    /// The model said nothing, twice and before.
    Silent,
}

/// What an answer holds.
struct Said<'a> {
    /// Uses of the formatter, under whatever name.
    answers: Vec<&'a ToolUse>,
    others: Vec<&'a ToolUse>,
    text: String,
}

impl FormatState {
    /// A phase that begins with a model that can do this.
    pub fn new(settings: &GatherFormat, capabilities: &ModelCapabilities) -> Self {
        let mut modes = FormatterMode::of(capabilities).into_iter();
        Self {
            mode: modes.next().unwrap_or(FormatterMode::Auto),
            left: modes.collect(),
            asked_again: false,
            said: None,
            schema: settings.schema.clone(),
        }
    }

    /// How the model is brought to use the form now.
    pub fn mode(&self) -> FormatterMode {
        self.mode
    }

    /// The system prompt of the phase, instead of that of the gather phase. `instructions` come first.
    pub fn system_prompt(&self, instructions: Option<&str>) -> String {
        words::system_prompt(self.mode, instructions, self.schema.as_ref())
    }

    /// The message of the user that ends the request. It is no part of the history.
    pub fn ask(&self) -> Message {
        words::ask(self.mode)
    }

    /// The request as the mode wants it; the messages stay as they are.
    ///
    /// | mode | tools | tool choice | response format |
    /// |---|---|---|---|
    /// | `Native` | as before, since some wires want tools declared that were used | none | the schema |
    /// | `Named` | the formatter | by name | text |
    /// | `Required` | the formatter | required | text |
    /// | `Auto` | the formatter | auto | text |
    #[must_use]
    pub fn prepare(&self, mut request: ChatRequest) -> ChatRequest {
        if self.mode == FormatterMode::Native {
            request.tool_choice = ToolChoice::None;
            request.parallel_tool_use = None;
            request.response_format = ResponseFormat::JsonSchema {
                name: TOOL.to_owned(),
                schema: self.schema.as_ref().map_or_else(schema, own::sent),
            };
            return request;
        }
        request.tools = vec![self.definition()];
        request.tool_choice = match self.mode {
            FormatterMode::Named => ToolChoice::Only(vec![TOOL.to_owned()]),
            FormatterMode::Required => ToolChoice::Required,
            FormatterMode::Native | FormatterMode::Auto => ToolChoice::Auto,
        };
        request.parallel_tool_use = Some(false);
        request.response_format = ResponseFormat::Text;
        request
    }

    fn definition(&self) -> Arc<ToolDefinition> {
        match &self.schema {
            None => definition(),
            Some(own) => Arc::new(ToolDefinition::new(
                TOOL,
                "Gives the answer to the user, as data in this form.",
                own::sent(own),
            )),
        }
    }

    /// The model could not be asked. `true` if the request was refused as it stood and the next mode
    /// is worth trying; `false` for every other error, and if no mode is left.
    pub fn refused(&mut self, error: &ModelError) -> bool {
        let is_refusal = matches!(
            error.kind,
            ModelErrorKind::InvalidRequest { .. } | ModelErrorKind::Unsupported { .. }
        );
        is_refusal && self.next_mode()
    }

    fn next_mode(&mut self) -> bool {
        if self.left.is_empty() {
            return false;
        }
        self.mode = self.left.remove(0);
        true
    }

    /// A reader that shows the answer while it is written: one for each answer.
    pub fn partial(&self) -> PartialFormatter {
        if self.schema.is_some() {
            PartialFormatter::silent()
        } else {
            PartialFormatter::new()
        }
    }

    /// Takes in an answer of the phase. `gathered` is what the model last said in the gather phase:
    /// it becomes the answer if nothing else was said at all, without what only steered that phase.
    ///
    /// An answer that the provider or the model withheld is not asked for again, nor is one that
    /// reached the output limit: it would do so once more.
    pub fn read(
        &mut self,
        answer: &Message,
        finish: &FinishReason,
        gathered: &str,
    ) -> FormatDecision {
        let said = Said::of(answer);
        let cut_off = matches!(finish, FinishReason::Length | FinishReason::Interrupted);
        let read = match &self.schema {
            Some(schema) => said.in_own_form(schema),
            None => said.in_form(self.mode, cut_off),
        };
        let error = match read {
            Ok(mut formatted) => {
                if cut_off {
                    formatted.repairs.push("the answer was cut off".to_owned());
                }
                return FormatDecision::Done(formatted);
            }
            Err(error) => error,
        };
        self.said = said.words().or(self.said.take());
        let withheld = cut_off
            || matches!(
                finish,
                FinishReason::Refusal | FinishReason::ContentFilter | FinishReason::ContextOverflow
            );
        if !self.asked_again && !withheld {
            self.asked_again = true;
            if !said.held_to(self.mode) {
                self.next_mode();
            }
            return FormatDecision::Reask {
                messages: vec![self.complaint(answer, &error)],
                error,
            };
        }
        let spoken = self
            .said
            .take()
            .or_else(|| not_blank(&marker::without(gathered)));
        let Some(text) = spoken else {
            return FormatDecision::Silent;
        };
        if self.schema.is_some() {
            return FormatDecision::Unfit { text, error };
        }
        FormatDecision::Done(Formatted {
            items: vec![AnswerItem::Text { text }],
            repairs: vec![format!("{error}; what the model did say is the answer")],
            ..Formatted::default()
        })
    }

    /// Every use gets its result, which wires want; the fault stands in that of the formatter.
    fn complaint(&self, answer: &Message, error: &str) -> Message {
        let text = words::fault(self.mode, error);
        let results: Vec<ToolResult> = answer
            .tool_uses()
            .map(|tool_use| ToolResult::error(&tool_use.id, &tool_use.name, &text))
            .collect();
        if results.is_empty() {
            Message::user(text)
        } else {
            Message::tool_results(results)
        }
    }
}

impl<'a> Said<'a> {
    fn of(answer: &'a Message) -> Self {
        let (answers, others) = answer.tool_uses().partition(|tool_use| {
            let name = tool_use.name.to_ascii_lowercase();
            // `functions.response_formatter` and the like.
            name.ends_with(TOOL)
                || tool_use
                    .input
                    .as_object()
                    .is_some_and(|input| input.contains_key("conversation"))
        });
        Self {
            answers,
            others,
            // A model may go on with what the phase before wanted; that is no part of the answer.
            text: marker::without(&answer.text()),
        }
    }

    /// Whether the model did what the mode is for.
    fn held_to(&self, mode: FormatterMode) -> bool {
        match mode {
            FormatterMode::Native => json::find_cut_off(&self.text).is_some(),
            _ => !self.answers.is_empty(),
        }
    }

    fn in_form(&self, mode: FormatterMode, cut_off: bool) -> Result<Formatted, String> {
        let mut reading = Reading::default();
        for tool_use in &self.answers {
            match &tool_use.input {
                ToolInput::Object(input) => {
                    reading.append(items::read(input.as_value().clone()));
                }
                ToolInput::Malformed { raw, .. } => {
                    let found = if cut_off {
                        json::find_cut_off(raw)
                    } else {
                        json::find(raw)
                    };
                    if let Some(found) = found {
                        reading.append(items::read(found.value));
                        reading.repaired(found.repair.unwrap_or("its JSON was no object"));
                    }
                }
            }
            if tool_use.name != TOOL {
                reading.repaired(format!("it was given to `{}`", tool_use.name));
            }
        }
        if self.answers.len() > 1 {
            reading.repaired("several calls of the formatter were put together");
        }
        if !self.text.is_empty() {
            self.add_text(&mut reading, mode, cut_off);
        }
        for other in &self.others {
            reading.repaired(format!(
                "a call of `{}` was not run: only the answer was asked for",
                other.name
            ));
        }
        if reading.items.is_empty() {
            return Err(self.fault());
        }
        Ok(Formatted {
            items: reading.items,
            thinking: reading.thinking,
            repairs: reading.repairs,
            value: None,
        })
    }

    /// Text outside of the tool: the answer as JSON, or words that belong before it.
    fn add_text(&self, reading: &mut Reading, mode: FormatterMode, cut_off: bool) {
        let found = if cut_off {
            json::find_cut_off(&self.text)
        } else {
            json::find(&self.text)
        };
        if let Some(found) = found.filter(|found| items::looks_like_answer(&found.value)) {
            let mut written = items::read(found.value);
            if mode != FormatterMode::Native {
                written.repaired("the answer was written as text instead of calling the formatter");
            }
            if let Some(repair) = found.repair {
                written.repaired(repair);
            }
            if reading.items.is_empty() {
                reading.append(written);
                return;
            }
            // The same answer twice, once as a call: the call counts.
            if written.items == reading.items {
                reading.repaired("the answer was written twice");
                return;
            }
        }
        let has_it = |item: &AnswerItem| match item {
            AnswerItem::Text { text } => text.contains(&self.text),
            AnswerItem::Artifact { content, .. } => content.contains(&self.text),
        };
        if reading.items.iter().any(has_it) {
            return;
        }
        reading.repaired(match mode {
            FormatterMode::Native => "plain text was taken as the answer",
            _ => "text outside of the formatter was taken into the answer",
        });
        reading.items.insert(
            0,
            AnswerItem::Text {
                text: self.text.clone(),
            },
        );
    }

    fn fault(&self) -> String {
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

    fn in_own_form(&self, schema: &Value) -> Result<Formatted, String> {
        let (value, mut repairs) = match self.answers.first().map(|tool_use| &tool_use.input) {
            Some(ToolInput::Object(input)) => (input.as_value().clone(), Vec::new()),
            Some(ToolInput::Malformed { raw, reason }) => match json::find(raw) {
                Some(found) => (
                    found.value,
                    found.repair.map(str::to_owned).into_iter().collect(),
                ),
                None => return Err(format!("its input is malformed: {reason}")),
            },
            None if self.text.is_empty() => return Err(self.fault()),
            None => match json::find(&self.text) {
                Some(found) => (
                    found.value,
                    found.repair.map(str::to_owned).into_iter().collect(),
                ),
                // A schema may be one of a number or a word.
                None => match serde_json::from_str(&self.text) {
                    Ok(value) => (value, Vec::new()),
                    Err(_) => return Err("it is no JSON".to_owned()),
                },
            },
        };
        let (value, more) = own::read(schema, value)?;
        repairs.extend(more);
        Ok(Formatted {
            items: vec![AnswerItem::Text {
                text: items::pretty(&value),
            }],
            thinking: None,
            repairs,
            value: Some(value),
        })
    }

    /// What it says to a person, in whatever form.
    fn words(&self) -> Option<String> {
        let uses = self.answers.iter().map(|tool_use| match &tool_use.input {
            ToolInput::Object(input) => items::said(input.as_value()),
            ToolInput::Malformed { raw, .. } => raw.trim().to_owned(),
        });
        let parts: Vec<String> = std::iter::once(self.text.clone())
            .chain(uses)
            .filter(|part| !part.trim().is_empty())
            .collect();
        not_blank(&parts.join("\n\n"))
    }
}

fn not_blank(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
