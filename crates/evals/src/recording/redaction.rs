//! Takes secrets out of what is written down.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};
use switchboard_domain::{
    ModelEvent, ModelId, Part, PartStart,
    redact::{Redactor, SizeLimits},
};

/// What stands where a secret stood.
pub(crate) const REDACTED: &str = "[redacted]";

/// Deeper values are not looked into, and left out.
const MAX_DEPTH: usize = 128;

/// The bytes of media and of resources.
const BYTES: [&str; 3] = ["base64", "data", "blob"];

/// What stands beside them.
const BESIDE_BYTES: [&str; 4] = ["uri", "mimeType", "media_type", "mediaType"];

/// Fewer digits are no image, and may be a key.
const MIN_BYTES: usize = 64;

/// What something is, stands under these.
const LABELS: [&str; 3] = ["type", "kind", "reason"];

/// What a schema consists of besides what it says to people and its examples.
const STRUCTURE: [&str; 7] = [
    "required", "enum", "const", "$ref", "$id", "$anchor", "format",
];

/// Longer ones say more than what something is.
const MOST_OF_A_LABEL: usize = 256;

/// What a value is, which decides what is looked for in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// What anybody may have written: known values, what reads like a key, and all under a secret's name.
    Data,
    /// The same, but an object, a list or a number under a secret's name speaks of a secret and is none.
    Schema,
    /// What must come back to a provider byte by byte: known values alone. What only reads like a key is none.
    Opaque,
}

/// Takes secrets out of a recording. Cheap to clone.
#[derive(Clone)]
pub struct Scrubber {
    known: Redactor,
    /// Finds what reads like a secret.
    likely: Redactor,
}

impl Default for Scrubber {
    fn default() -> Self {
        Self {
            known: Redactor::default(),
            likely: Redactor::default().with_limits(SizeLimits::UNLIMITED),
        }
    }
}

impl Scrubber {
    /// One that knows these values: keys and tokens of the configuration. They are found in other spellings too
    /// ([`Redactor`]). Those shorter than 8 bytes are left out. What reads like a key or stands under a
    /// secret's name is found in any case.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        Self {
            known: Redactor::default().with_secrets(secrets),
            ..Self::default()
        }
    }

    /// A text without the values that are known.
    fn exact(&self, text: &str) -> String {
        self.known.redact_known(text).into_owned()
    }

    /// A text without them, and without what reads like one. One that is JSON, as tools give it, is looked into like
    /// a value.
    pub(crate) fn text(&self, text: &str) -> String {
        if text.trim_start().starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str::<Value>(text)
        {
            let clean = self.value(value.clone());
            if clean != value {
                return clean.to_string();
            }
        }
        self.likely.redact_text(&self.known.redact_known(text))
    }

    /// Whether something was struck out of a value, so that nobody knows what it was.
    pub(crate) fn was_at(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains(REDACTED),
            Value::Array(items) => items.iter().any(Self::was_at),
            Value::Object(fields) => fields.values().any(Self::was_at),
            _ => false,
        }
    }

    /// A name of a field, a tool or a server without them.
    pub(super) fn name(&self, name: &str) -> String {
        self.known.redact_known_in_name(name).into_owned()
    }

    /// The name of a model or of a conversation, which anybody may have chosen: without what reads like a key, too.
    pub(super) fn title(&self, title: &str) -> String {
        self.likely.redact_text(&self.name(title))
    }

    /// The name of a model without them.
    pub(super) fn model(&self, id: &ModelId) -> ModelId {
        ModelId::new(self.title(&id.provider), self.title(&id.name))
    }

    /// The same of a value that consists of names.
    fn names(&self, value: Value) -> Value {
        match value {
            Value::String(name) => Value::String(self.name(&name)),
            Value::Array(items) => items.into_iter().map(|it| self.names(it)).collect(),
            Value::Object(fields) => {
                let fields = fields.into_iter();
                let fields = fields.map(|(name, value)| (self.name(&name), self.names(value)));
                Value::Object(fields.collect())
            }
            other => other,
        }
    }

    /// What a tool was given or gave without them, and without anything that stands under a secret's name.
    pub(crate) fn value(&self, value: Value) -> Value {
        self.walk(value, Kind::Data, 0)
    }

    /// A message without them.
    pub(super) fn message(&self, message: Value) -> Value {
        self.fields_of(message, |name, value| match (name, value) {
            ("parts", Value::Array(parts)) => parts.into_iter().map(|it| self.part(it)).collect(),
            ("role", role) => self.names(role),
            (_, value) => self.value(value),
        })
    }

    fn part(&self, part: Value) -> Value {
        self.fields_of(part, |name, value| match name {
            "provider_state" => self.walk(value, Kind::Opaque, 0),
            "name" | "id" | "tool_use_id" => self.names(value),
            _ => self.value(value),
        })
    }

    /// Definitions of tools without them.
    pub(super) fn tools(&self, tools: Value) -> Value {
        let Value::Array(tools) = tools else {
            return self.value(tools);
        };
        let clean = tools.into_iter().map(|tool| {
            self.fields_of(tool, |name, value| match name {
                "input_schema" | "output_schema" => self.settings(value),
                "name" | "origin" => self.names(value),
                _ => self.value(value),
            })
        });
        clean.collect()
    }

    /// A request without them, with or without its messages and tools.
    pub(super) fn request(&self, request: Value) -> Value {
        self.fields_of(request, |name, value| match (name, value) {
            ("messages", Value::Array(messages)) => {
                messages.into_iter().map(|it| self.message(it)).collect()
            }
            ("tools", tools) => self.tools(tools),
            ("tool_choice", choice) => self.names(choice),
            ("extra", value) => self.value(value),
            (_, value) => self.settings(value),
        })
    }

    /// How a call of a tool ended, without them.
    pub(super) fn outcome(&self, outcome: Value) -> Value {
        match outcome {
            Value::Object(fields) if fields.contains_key("output") => {
                self.value(Value::Object(fields))
            }
            other => self.fields_of(other, |_, fault| self.problem(fault)),
        }
    }

    /// What is wrong with servers, without them.
    pub(super) fn problems(&self, problems: Value) -> Value {
        match problems {
            Value::Array(all) => all.into_iter().map(|it| self.problem(it)).collect(),
            other => self.settings(other),
        }
    }

    /// What is wrong with a server or a call.
    fn problem(&self, problem: Value) -> Value {
        self.fields_of(problem, |name, value| match name {
            "kind" | "name" | "available" | "server" | "tool" => self.names(value),
            _ => self.settings(value),
        })
    }

    /// What has a form of ours, or is a schema: only texts can be secrets.
    pub(super) fn settings(&self, value: Value) -> Value {
        self.walk(value, Kind::Schema, 0)
    }

    /// What a model says without them. Pieces of texts are left to [`Self::events`].
    pub(super) fn event(&self, event: Value) -> Value {
        match event.get("type").and_then(Value::as_str) {
            Some("text_delta" | "reasoning_delta" | "tool_input_delta") => event,
            Some("part_state") => self.fields_of(event, |name, value| match name {
                "state" => self.walk(value, Kind::Opaque, 0),
                _ => self.value(value),
            }),
            Some("part_started") => self.fields_of(event, |name, value| match name {
                "part" => self.fields_of(value, |name, value| match name {
                    "part" => self.part(value),
                    "kind" | "id" | "name" => self.names(value),
                    _ => self.value(value),
                }),
                _ => self.value(value),
            }),
            _ => self.settings(event),
        }
    }

    /// An object of ours, whose names are known. Anything else is data.
    fn fields_of(&self, value: Value, clean: impl Fn(&str, Value) -> Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields = fields.into_iter();
                let fields = fields.map(|(name, value)| {
                    let value = match name.as_str() {
                        "type" => self.names(value),
                        _ => clean(&name, value),
                    };
                    (name, value)
                });
                Value::Object(fields.collect())
            }
            other => self.value(other),
        }
    }

    fn walk(&self, value: Value, kind: Kind, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return Value::String("[too deep]".to_owned());
        }
        match value {
            Value::String(text) if kind == Kind::Opaque => Value::String(self.exact(&text)),
            Value::String(text) => Value::String(self.text(&text)),
            // A password of digits.
            Value::Number(number) if kind == Kind::Data && self.known.secret_count() > 0 => {
                let text = number.to_string();
                let clean = self.exact(&text);
                if clean == text {
                    Value::Number(number)
                } else {
                    Value::String(clean)
                }
            }
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.walk(item, kind, depth + 1))
                .collect(),
            Value::Object(fields) => Value::Object(self.fields(fields, kind, depth)),
            other => other,
        }
    }

    fn fields(&self, fields: Map<String, Value>, kind: Kind, depth: usize) -> Map<String, Value> {
        let may_have_bytes = BESIDE_BYTES.iter().any(|name| fields.contains_key(*name));
        let cleaned = fields.into_iter().map(|(name, value)| {
            let is_secret = match kind {
                Kind::Data => hides_something(&value) && Redactor::is_secret(&name, &value),
                Kind::Schema => {
                    matches!(&value, Value::String(text) if !text.is_empty())
                        && Redactor::is_secret(&name, &value)
                }
                Kind::Opaque => false,
            };
            let value = if is_secret {
                Value::String(REDACTED.to_owned())
            } else if LABELS.contains(&name.as_str())
                || (kind == Kind::Schema && STRUCTURE.contains(&name.as_str()))
            {
                self.label(value, kind, depth + 1)
            } else {
                let is_bytes = BYTES.contains(&name.as_str())
                    && (may_have_bytes || name == "base64")
                    && are_bytes(&value);
                let kind = if is_bytes { Kind::Opaque } else { kind };
                self.walk(value, kind, depth + 1)
            };
            (self.name(&name), value)
        });
        cleaned.collect()
    }

    /// What says what something is, or how a schema hangs together. Under such a name may be anything else as well.
    fn label(&self, value: Value, kind: Kind, depth: usize) -> Value {
        let is_word = |it: &Value| {
            let text = it.as_str();
            text.is_some_and(|text| text.len() <= MOST_OF_A_LABEL && !text.contains(' '))
        };
        match &value {
            Value::Array(items) if kind == Kind::Schema && items.iter().all(is_word) => {
                self.names(value)
            }
            Value::String(_) if kind == Kind::Schema && is_word(&value) => self.names(value),
            // Of data only words: `{"type": "ghp_…"}` says nothing of what it is.
            Value::String(text) if text.bytes().all(|it| it.is_ascii_lowercase() || it == b'_') => {
                self.names(value)
            }
            _ => self.walk(value, kind, depth),
        }
    }

    /// The events of one answer without them. A secret that is spread over several pieces is found: the first
    /// piece then has the whole text, and those after it have none.
    pub(super) fn events(&self, events: &mut [(u64, ModelEvent)]) {
        let mut pieces: BTreeMap<(u32, u8), Vec<usize>> = BTreeMap::new();
        for (at, (_, event)) in events.iter().enumerate() {
            let key = match event {
                ModelEvent::TextDelta { index, .. } => (*index, 0),
                ModelEvent::ReasoningDelta { index, .. } => (*index, 1),
                ModelEvent::ToolInputDelta { index, .. } => (*index, 2),
                _ => continue,
            };
            pieces.entry(key).or_default().push(at);
        }
        for ((_, kind), places) in pieces {
            let mut whole = String::new();
            for at in &places {
                if let Some(text) = piece(&mut events[*at].1) {
                    whole.push_str(text);
                }
            }
            let clean = if kind == 2 {
                self.json(&whole)
            } else {
                self.text(&whole)
            };
            if clean == whole {
                continue;
            }
            let mut clean = Some(clean);
            for at in places {
                if let Some(text) = piece(&mut events[at].1) {
                    *text = clean.take().unwrap_or_default();
                }
            }
        }
    }

    /// The tool uses into whose input the model wrote the mark itself: their ids, as they are written down.
    pub(super) fn marked(&self, events: &[(u64, ModelEvent)]) -> Vec<String> {
        let mut inputs: BTreeMap<u32, (&str, String)> = BTreeMap::new();
        let mut marked = Vec::new();
        for (_, event) in events {
            match event {
                ModelEvent::PartStarted { index, part } => match part {
                    PartStart::ToolUse { id, .. } => {
                        inputs.insert(*index, (id, String::new()));
                    }
                    PartStart::Whole { part } => {
                        if let Part::ToolUse(it) = &**part
                            && serde_json::to_value(&it.input).is_ok_and(|it| Self::was_at(&it))
                        {
                            marked.push(self.name(&it.id));
                        }
                    }
                    _ => {}
                },
                ModelEvent::ToolInputDelta { index, json } => {
                    if let Some((_, input)) = inputs.get_mut(index) {
                        input.push_str(json);
                    }
                }
                _ => {}
            }
        }
        let has_mark = |text: &str| match serde_json::from_str(text) {
            Ok(value) => Self::was_at(&value),
            Err(_) => text.contains(REDACTED),
        };
        let streamed = inputs.values().filter(|(_, input)| has_mark(input));
        marked.extend(streamed.map(|(id, _)| self.name(id)));
        marked
    }

    /// JSON text; as it was written where nothing is in it, and also where it is not JSON.
    fn json(&self, text: &str) -> String {
        match serde_json::from_str::<Value>(text) {
            Ok(value) => {
                let clean = self.value(value.clone());
                if clean == value {
                    // A name that stands there twice has one value only.
                    self.exact(text)
                } else {
                    clean.to_string()
                }
            }
            Err(_) => self.text(text),
        }
    }
}

/// Whether a value may be a secret at all.
fn hides_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// Whether it is base64 of more than a key: there are too many letters in it for what only begins like one.
fn are_bytes(value: &Value) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    value
        .as_str()
        .is_some_and(|text| text.len() >= MIN_BYTES && text.bytes().all(is_digit))
}

/// The text that an event adds.
fn piece(event: &mut ModelEvent) -> Option<&mut String> {
    match event {
        ModelEvent::TextDelta { text, .. } | ModelEvent::ReasoningDelta { text, .. } => Some(text),
        ModelEvent::ToolInputDelta { json, .. } => Some(json),
        _ => None,
    }
}

/// Says how many secrets are known, and none of them.
impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrubber")
            .field("known", &self.known.secret_count())
            .finish_non_exhaustive()
    }
}
