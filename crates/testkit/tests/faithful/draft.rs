//! Generated conversations without provider state. Each column adds the state that its model could
//! have created.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, Document, JsonObject, Media, Message, ModelId, Part, ProviderState, Reasoning,
    Role, Text, ToolChoice, ToolContent, ToolDefinition, ToolInput, ToolResult, ToolUse,
};

mod any;

use crate::Column;

pub(crate) use any::any_draft;

/// A conversation that does not depend on a wire yet.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    instructions: Vec<String>,
    rounds: Vec<Round>,
    tools: Vec<usize>,
    choice: usize,
}

/// A part of a conversation that begins with a message of the user.
#[derive(Debug, Clone)]
struct Round {
    /// Instructions before this round, in the middle of the conversation.
    late: Option<String>,
    said: Vec<Shown>,
    steps: Vec<Step>,
    answer: Vec<Piece>,
}

#[derive(Debug, Clone)]
enum Shown {
    Text(String),
    Image {
        at: bool,
    },
    Pdf {
        at: bool,
        title: Option<&'static str>,
    },
    Words {
        number: usize,
        title: Option<&'static str>,
    },
}

/// A response with tool calls, and their results.
#[derive(Debug, Clone)]
struct Step {
    pieces: Vec<Piece>,
    calls: Vec<Call>,
    /// A text of the model after its calls.
    after: Option<String>,
}

#[derive(Debug, Clone)]
struct Piece {
    is_reasoning: bool,
    text: String,
    minter: Minter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Minter {
    Nobody,
    Own,
    Other,
}

#[derive(Debug, Clone)]
struct Call {
    id: &'static str,
    name: &'static str,
    input: JsonObject,
    minter: Minter,
    gave: Gave,
}

#[derive(Debug, Clone)]
enum Gave {
    Words(Vec<String>),
    Data(Value),
    /// Data, and the same data as text, as MCP servers return them.
    Both(Value),
    Failure(String),
}

/// Text documents: their bytes in base64, and their text.
pub(crate) const WORDS: [(&str, &str); 2] =
    [("b25lLHR3bw==", "one,two"), ("R3LDvMOfZQ==", "Grüße")];
pub(crate) const PNG: &str = "iVBORw0KGgo=";
pub(crate) const PDF: &str = "JVBERi0xLjQKJSVFT0YK";

const NAMES: [&str; 4] = [
    "get_weather",
    "create-order",
    "Find",
    "read_the_current_weather_of_a_city_by_its_name_from_the_atlas_01",
];

/// Call ids in the formats of the wires, and ids that no wire allows.
const IDS: [&str; 7] = [
    "toolu_01A09q90qw90lq917835lq9",
    "call_8sLx",
    "functions.get:0",
    "a/b c#",
    "7",
    "fc_and_much_longer_than_the_forty_characters_that_some_wires_take",
    "ü",
];

/// Returns a tool whose schema no wire changes. Other tests cover schemas that are changed.
fn tool(number: usize) -> ToolDefinition {
    let (description, schema) = match number {
        0 => (
            "Current weather \u{1f30a} of a city.",
            json!({
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Its name"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                },
                "required": ["city"],
            }),
        ),
        1 => (
            "Creates an order.\n\nOnly once.",
            json!({
                "type": "object",
                "properties": {
                    "lines": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "article": {"type": "string"},
                                "count": {"type": "integer"},
                            },
                            "required": ["article", "count"],
                        },
                    },
                    "urgent": {"type": "boolean"},
                },
                "required": ["lines", "urgent"],
            }),
        ),
        _ => (
            "\"Finds\" it.",
            json!({"type": "object", "properties": {"q": {"type": "string"}}}),
        ),
    };
    ToolDefinition::new(NAMES[number], description, schema)
}

/// Creates the parts of a conversation for one column.
struct Maker {
    column: Column,
    /// Number of parts with a number so far.
    count: usize,
}

impl Draft {
    /// Creates the conversation for a column, with provider state of the column's model.
    pub(crate) fn for_column(&self, column: Column) -> ChatRequest {
        let mut maker = Maker { column, count: 0 };
        let mut messages: Vec<Message> = self.instructions.iter().map(Message::system).collect();
        for (number, round) in self.rounds.iter().enumerate() {
            let is_last = number + 1 == self.rounds.len();
            if let Some(late) = round.late.as_ref().filter(|_| number > 0) {
                messages.push(Message::system(late));
            }
            let mut shown: Vec<Part> = round.said.iter().map(Shown::part).collect();
            if number == 0 || (is_last && round.steps.is_empty()) {
                // The last message of the user must contain a text that the model can answer.
                shown.push(Part::text("Well?"));
            }
            messages.push(Message::new(Role::User, shown));
            for step in &round.steps {
                maker.step(step, &mut messages);
            }
            if !is_last {
                let answer = round.answer.iter().map(|piece| maker.piece(piece));
                messages.push(Message::new(Role::Assistant, answer));
            }
        }
        let names: Vec<String> = self.tools.iter().map(|it| NAMES[*it].to_owned()).collect();
        let choice = match (self.choice, names.as_slice()) {
            (_, []) | (0 | 1, _) => ToolChoice::Auto,
            (2, _) => ToolChoice::None,
            (3, _) => ToolChoice::Required,
            (4, [first, ..]) => ToolChoice::Only(vec![first.clone()]),
            (_, several) => ToolChoice::Only(several.iter().take(2).cloned().collect()),
        };
        ChatRequest::new(messages)
            .with_tools(self.tools.iter().map(|number| tool(*number)))
            .with_tool_choice(choice)
    }
}

impl Shown {
    fn part(&self) -> Part {
        let document = |media, title: Option<&str>| {
            let title = title.map(str::to_owned);
            Part::Document(Document { media, title })
        };
        match self {
            Self::Text(text) => Part::text(text),
            Self::Image { at: false } => Part::Image(Media::from_base64("image/png", PNG)),
            Self::Image { at: true } => Part::Image(Media::from_url(
                "image/jpeg",
                "https://example.org/a.jpg?b=1",
            )),
            Self::Pdf { at: false, title } => {
                document(Media::from_base64("application/pdf", PDF), *title)
            }
            Self::Pdf { at: true, title } => document(
                Media::from_url("application/pdf", "https://example.org/a.pdf"),
                *title,
            ),
            Self::Words { number, title } => {
                document(Media::from_base64("text/plain", WORDS[*number].0), *title)
            }
        }
    }
}

impl Maker {
    fn step(&mut self, step: &Step, messages: &mut Vec<Message>) {
        let mut parts: Vec<Part> = step.pieces.iter().map(|piece| self.piece(piece)).collect();
        let mut results = Vec::new();
        for call in &step.calls {
            self.count += 1;
            // The number makes the id unique in the conversation.
            let id = format!("{}{}", call.id, self.count);
            results.push(call.gave.result(&id, call.name));
            parts.push(Part::ToolUse(ToolUse {
                provider_state: self.state(call.minter, Self::of_call),
                ..ToolUse::new(id, call.name, ToolInput::from(call.input.clone()))
            }));
        }
        parts.extend(step.after.as_ref().map(Part::text));
        messages.push(Message::new(Role::Assistant, parts));
        messages.push(Message::from_tool_results(results));
    }

    fn piece(&mut self, piece: &Piece) -> Part {
        self.count += 1;
        let text = piece.text.clone();
        if piece.is_reasoning {
            let state = self.state(piece.minter, |maker| maker.of_reasoning(&piece.text));
            let provider_state = state;
            return Part::Reasoning(Reasoning {
                text,
                provider_state,
            });
        }
        Part::Text(Text {
            text,
            provider_state: self.state(piece.minter, Self::of_text),
        })
    }

    fn state(&self, minter: Minter, own: impl Fn(&Self) -> Option<Value>) -> Option<ProviderState> {
        let other = ModelId::new("elsewhere", "m");
        match minter {
            Minter::Nobody => None,
            Minter::Own => Some(ProviderState::new_for_model(
                &self.column.model(),
                own(self)?,
            )),
            Minter::Other => Some(ProviderState::new_for_model(
                &other,
                json!({"signature": "theirs"}),
            )),
        }
    }

    /// Returns the provider state that the column's model attaches to reasoning.
    fn of_reasoning(&self, text: &str) -> Option<Value> {
        let number = self.count;
        Some(match self.column {
            Column::Anthropic if text.is_empty() => json!({"redacted": format!("sealed {number}")}),
            Column::Anthropic => json!({"signature": format!("signed {number}")}),
            Column::Chat => return None,
            Column::Compatible => json!({"field": "reasoning_content"}),
            Column::Responses => {
                let summary = json!({"type": "summary_text", "text": text});
                json!({"type": "reasoning", "id": format!("rs_{number}"), "summary": [summary],
                       "encrypted_content": format!("sealed {number}")})
            }
            Column::Gemini if number.is_multiple_of(2) && !text.is_empty() => json!({}),
            Column::Gemini => json!({"thoughtSignature": format!("signed {number}")}),
            Column::Ollama => json!({"field": "thinking"}),
        })
    }

    /// Returns the provider state that the column's model attaches to a text.
    fn of_text(&self) -> Option<Value> {
        let number = self.count;
        match self.column {
            Column::Anthropic => {
                let citation = json!({"type": "char_location", "cited_text": format!("{number}"),
                                      "document_index": 0, "start_char_index": 0, "end_char_index": 1});
                Some(json!({"citations": [citation]}))
            }
            Column::Responses => Some(json!({
                "item": {"id": format!("msg_{number}"), "status": "completed"},
            })),
            Column::Gemini => Some(json!({"thoughtSignature": format!("signed {number}")})),
            Column::Chat | Column::Compatible | Column::Ollama => None,
        }
    }

    /// Returns the provider state that the column's model attaches to a call.
    fn of_call(&self) -> Option<Value> {
        let number = self.count;
        match self.column {
            Column::Anthropic => Some(json!({"caller": {"type": "direct"}})),
            Column::Responses => Some(json!({
                "item": {"id": format!("fc_{number}"), "status": "completed"},
            })),
            Column::Gemini if number.is_multiple_of(2) => Some(json!({"id": format!("g{number}")})),
            Column::Gemini => Some(json!({"thoughtSignature": format!("signed {number}")})),
            Column::Chat | Column::Compatible | Column::Ollama => None,
        }
    }
}

impl Gave {
    fn result(&self, id: &str, name: &str) -> ToolResult {
        let result = |content: Vec<ToolContent>, structured: Option<&Value>| ToolResult {
            content: content.into(),
            structured: structured.cloned().map(Arc::new),
            ..ToolResult::text(id, name, "")
        };
        match self {
            Self::Words(words) => result(words.iter().map(ToolContent::text).collect(), None),
            Self::Data(data) => result(Vec::new(), Some(data)),
            Self::Both(data) => result(vec![ToolContent::text(data.to_string())], Some(data)),
            Self::Failure(words) => ToolResult::from_error_message(id, name, words),
        }
    }
}
