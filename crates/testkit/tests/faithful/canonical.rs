//! The best form in which a wire can carry a conversation.
//!
//! Some differences from the domain are only differences of form. They lose nothing and cause no
//! warning:
//! - Consecutive messages of the same side are one message. Empty texts and messages are omitted.
//! - Calls and results have numbers instead of ids, because some wires have no ids.
//! - If a wire has one text where the conversation has several, the texts are joined. Texts of the
//!   model are joined without a separator, because some wires split a text at the end of a
//!   citation. Other texts are joined as paragraphs.
//! - If a message of a wire has fields instead of a list of parts (Chat Completions, Ollama), the
//!   order between reasoning, text and calls is lost. On Ollama, images come after the text.
//! - If media are sent as a URL or as bytes without a type, their type is lost.
//! - A result consists of its text, or of its data as JSON.
//!
//! Every other difference is a loss, and the request must have a warning about it.

use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, Message, Part, ProviderState, Role, ToolInput, ToolResult, WarningKind,
};

mod media;

use crate::Column;

/// Consecutive items of one side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Turn {
    pub(crate) side: Side,
    pub(crate) items: Vec<Item>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Instructions,
    Person,
    Model,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Text {
        text: String,
        state: Value,
    },
    Image {
        media_type: Option<String>,
        source: Source,
    },
    Document {
        title: Option<String>,
        media_type: Option<String>,
        source: Source,
    },
    Reasoning {
        text: String,
        state: Value,
    },
    Call {
        number: usize,
        name: String,
        /// The input as JSON text, so that a comparison includes the order of the fields.
        input: String,
        state: Value,
    },
    Result {
        number: usize,
        words: String,
        failed: bool,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Bytes(String),
    At(String),
    Words(String),
}

impl Item {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            state: Value::Null,
        }
    }
}

/// The best form of a conversation, and the losses that need a warning.
pub(crate) struct Canonical {
    pub(crate) turns: Vec<Turn>,
    pub(crate) losses: Vec<WarningKind>,
}

/// Merges consecutive turns of the same side.
pub(crate) fn merged(turns: impl IntoIterator<Item = Turn>) -> Vec<Turn> {
    let mut merged: Vec<Turn> = Vec::new();
    for mut turn in turns.into_iter().filter(|turn| !turn.items.is_empty()) {
        match merged.last_mut().filter(|last| last.side == turn.side) {
            Some(last) => last.items.append(&mut turn.items),
            None => merged.push(turn),
        }
    }
    merged
}

/// Joins consecutive texts with `separator`, for a wire that has only one text in this position.
pub(crate) fn joined(items: Vec<Item>, separator: &str) -> Vec<Item> {
    let mut joined: Vec<Item> = Vec::new();
    for item in items {
        match (joined.last_mut(), item) {
            (
                Some(Item::Text {
                    text: before,
                    state: Value::Null,
                }),
                Item::Text {
                    text,
                    state: Value::Null,
                },
            ) => {
                before.push_str(separator);
                before.push_str(&text);
            }
            (_, item) => joined.push(item),
        }
    }
    joined
}

/// Separator between texts of instructions or of the user on a wire that has only one text in this
/// position.
pub(crate) const PARAGRAPH: &str = "\n\n";

/// Returns whether no part of a message is sent.
pub(crate) fn is_empty(column: Column, message: &Message) -> bool {
    let request = ChatRequest::new([message.clone()]);
    canonical(column, &request).turns.is_empty()
}

pub(crate) fn canonical(column: Column, request: &ChatRequest) -> Canonical {
    let mut reader = Reader {
        column,
        losses: Vec::new(),
        ids: Vec::new(),
    };
    let mut turns: Vec<Turn> = Vec::new();
    // Wires with one field for instructions send instructions from the middle of a conversation in
    // this field too.
    let hoists = matches!(column, Column::Anthropic | Column::Gemini);
    for message in &request.messages {
        let turn = reader.message(message);
        let is_late = turn.side == Side::Instructions && !turns.is_empty();
        match turns.first_mut() {
            _ if turn.items.is_empty() => {}
            Some(first) if hoists && is_late => {
                let begun = first.side == Side::Instructions;
                let said = turns.iter().any(|turn| turn.side != Side::Instructions);
                if said {
                    reader.losses.push(WarningKind::PartDowngraded);
                }
                if begun {
                    turns[0].items.extend(turn.items);
                } else {
                    turns.insert(0, turn);
                }
            }
            _ => turns.push(turn),
        }
    }
    let joins_instructions = !hoists;
    let mut turns = merged(turns);
    for turn in &mut turns {
        if turn.side == Side::Instructions && joins_instructions {
            turn.items = joined(std::mem::take(&mut turn.items), PARAGRAPH);
        }
    }
    Canonical {
        turns,
        losses: reader.losses,
    }
}

struct Reader {
    column: Column,
    losses: Vec<WarningKind>,
    /// Ids of all calls before this position.
    ids: Vec<String>,
}

impl Reader {
    fn message(&mut self, message: &Message) -> Turn {
        let mut items: Vec<Item> = Vec::new();
        for part in &message.parts {
            items.extend(self.part(part));
        }
        match message.role {
            Role::System => Turn {
                side: Side::Instructions,
                items,
            },
            Role::User | Role::Tool => Turn {
                side: Side::Person,
                items: self.of_the_person(items),
            },
            Role::Assistant => Turn {
                side: Side::Model,
                items: self.of_the_model(items),
            },
        }
    }

    fn of_the_person(&self, items: Vec<Item>) -> Vec<Item> {
        let is_text = |item: &Item| matches!(item, Item::Text { .. });
        let is_image = |item: &Item| matches!(item, Item::Image { .. });
        match self.column {
            Column::Anthropic | Column::Gemini => items,
            Column::Chat | Column::Compatible | Column::Responses => {
                if items.iter().all(is_text) {
                    joined(items, PARAGRAPH)
                } else {
                    items
                }
            }
            Column::Ollama => {
                let (images, texts): (Vec<Item>, Vec<Item>) = items.into_iter().partition(is_image);
                let mut items = joined(texts, PARAGRAPH);
                items.extend(images);
                items
            }
        }
    }

    fn of_the_model(&mut self, mut items: Vec<Item>) -> Vec<Item> {
        match self.column {
            Column::Anthropic | Column::Gemini => items,
            Column::Responses => {
                // The API refuses reasoning after which the model produced nothing.
                while let Some(Item::Reasoning { .. }) = items.last() {
                    items.pop();
                    self.losses.push(WarningKind::PartDropped);
                }
                joined(items, "")
            }
            Column::Chat | Column::Compatible | Column::Ollama => {
                let mut thoughts: Option<String> = None;
                let (mut texts, mut calls) = (Vec::new(), Vec::new());
                for item in items {
                    match item {
                        Item::Reasoning { text, .. } => {
                            thoughts.get_or_insert_default().push_str(&text);
                        }
                        Item::Text { .. } => texts.push(item),
                        other => calls.push(other),
                    }
                }
                let thoughts = thoughts.filter(|thoughts| !thoughts.is_empty());
                if texts.is_empty() && calls.is_empty() {
                    // These wires accept no message that consists only of reasoning.
                    let lost = thoughts.map(|_| WarningKind::PartDropped);
                    self.losses.extend(lost);
                    return Vec::new();
                }
                let thoughts = thoughts.map(|text| Item::Reasoning {
                    text,
                    state: Value::Null,
                });
                let texts = joined(texts, "");
                thoughts.into_iter().chain(texts).chain(calls).collect()
            }
        }
    }

    fn part(&mut self, part: &Part) -> Option<Item> {
        match part {
            Part::Text(text) => {
                let state = self.attached(text.provider_state.as_ref(), &text.text);
                let is_signed = self.column == Column::Gemini && !state.is_null();
                (!text.text.is_empty() || is_signed).then(|| Item::Text {
                    text: text.text.clone(),
                    state,
                })
            }
            Part::Reasoning(reasoning) => self.thought(&reasoning.text, part.provider_state()),
            Part::Image(media) => Some(self.image(media)),
            Part::Document(document) => Some(self.document(document)),
            Part::ToolUse(tool_use) => {
                self.ids.push(tool_use.id.clone());
                let ToolInput::Object(input) = &tool_use.input else {
                    unreachable!("no draft has malformed input");
                };
                Some(Item::Call {
                    number: self.ids.len(),
                    name: tool_use.name.clone(),
                    input: input.as_value().to_string(),
                    state: self.attached(tool_use.provider_state.as_ref(), "call"),
                })
            }
            Part::ToolResult(result) => Some(self.result(result)),
            other => unreachable!("no draft has {other:?}"),
        }
    }

    /// Returns the provider state in the format of the wire, if the model of this column created
    /// it.
    fn own<'a>(&self, state: Option<&'a ProviderState>) -> Option<&'a Value> {
        state?.data_for_model(&self.column.model())
    }

    /// Returns the provider state that is attached to a text or a call.
    fn attached(&mut self, state: Option<&ProviderState>, text: &str) -> Value {
        let own = self.own(state);
        if state.is_some() && own.is_none() {
            // Anthropic's adapter omits an empty text without a check of its provider state, so
            // there is no warning.
            let is_nothing = text.is_empty() && self.column == Column::Anthropic;
            if !is_nothing {
                self.losses.push(WarningKind::PartDowngraded);
            }
        }
        let own = own.cloned().unwrap_or_default();
        match self.column {
            Column::Responses => own["item"].clone(),
            _ => own,
        }
    }

    fn thought(&mut self, text: &str, state: Option<&ProviderState>) -> Option<Item> {
        let Some(own) = self.own(state) else {
            self.losses.push(WarningKind::PartDropped);
            return None;
        };
        let text = text.to_owned();
        let state = match self.column {
            Column::Chat | Column::Compatible | Column::Ollama => Value::Null,
            _ => own.clone(),
        };
        Some(Item::Reasoning { text, state })
    }

    fn result(&self, result: &ToolResult) -> Item {
        let number = self.ids.iter().position(|id| *id == result.tool_use_id);
        Item::Result {
            number: number.map_or(0, |at| at + 1),
            words: result.as_text(),
            failed: result.is_error,
        }
    }
}

/// Returns an object without the fields `known`.
pub(crate) fn rest(object: &Value, known: &[&str]) -> Value {
    let mut rest = object.clone();
    if let Some(fields) = rest.as_object_mut() {
        fields.retain(|name, _| !known.contains(&name.as_str()));
    }
    if rest == json!({}) { Value::Null } else { rest }
}
