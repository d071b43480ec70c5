//! Removes secrets from recorded messages, tools and events.

use std::collections::BTreeMap;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use switchboard_domain::{
    ChatRequest, ModelEvent, ModelId, Part, PartStart,
    redact::{RedactionLimits, Redactor},
};

/// A redactor of known secrets and of text that looks like a secret. It never shortens text.
#[derive(Debug, Clone)]
pub(crate) struct Redaction {
    redactor: Redactor,
    /// Redactor without known secrets. It removes only text that looks like a secret.
    likely: Redactor,
}

impl Redaction {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self {
            redactor: redactor.with_limits(RedactionLimits::UNLIMITED),
            likely: Redactor::default().with_limits(RedactionLimits::UNLIMITED),
        }
    }

    /// Redacts a text. If the text is a JSON object or array, as in many tool results, also redacts
    /// the values under names such as `password`.
    pub(crate) fn redact_text(&self, text: &str) -> String {
        if text.trim_start().starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str::<Value>(text)
        {
            let clean = self.redact_value(&value);
            if clean != value {
                return clean.to_string();
            }
        }
        self.redactor.redact_text(text)
    }

    /// Redacts a JSON value, including all values under names such as `password`.
    pub(crate) fn redact_value(&self, value: &Value) -> Value {
        self.redactor.redact_value(value)
    }

    /// Removes only known secrets from an identifier, such as a tool name. Text that looks like a
    /// secret stays, because a replay compares the identifier.
    pub(super) fn redact_identifier(&self, name: &str) -> String {
        self.redactor.redact_known_in_name(name).into_owned()
    }

    /// Removes known secrets, and text that looks like a secret, from a name that a user has
    /// chosen, such as a model or conversation name.
    pub(super) fn redact_label(&self, label: &str) -> String {
        self.likely.redact_text(&self.redact_identifier(label))
    }

    pub(super) fn redact_model_id(&self, id: &ModelId) -> ModelId {
        ModelId::new(self.redact_label(&id.provider), self.redact_label(&id.name))
    }

    /// Converts a message, tool, tool output or request settings to JSON without secrets.
    pub(super) fn redact_to_json(&self, item: &impl Serialize) -> Result<Value, serde_json::Error> {
        let mut value = serde_json::to_value(item)?;
        self.redact_fields(&mut value);
        Ok(value)
    }

    /// Returns a copy of a message, tool or tool output without secrets. Returns an error if the
    /// JSON with the redacted text is not a valid `T`.
    pub(super) fn redact_item<T>(&self, item: &T) -> Result<T, serde_json::Error>
    where
        T: Serialize + DeserializeOwned,
    {
        serde_json::from_value(self.redact_to_json(item)?)
    }

    fn redact_fields(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_fields(item)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.redact_json_field(name, value);
                }
            }
            _ => {}
        }
    }

    fn redact_json_field(&self, name: &str, value: &mut Value) {
        match (name, value) {
            // `provider_state` is opaque data that the provider requires unchanged in later
            // requests, such as a thinking signature. Only known secrets are removed from it.
            ("provider_state", value) => {
                self.redactor.redact_known_in_value(value);
            }
            ("id" | "tool_use_id" | "name" | "server" | "tool", Value::String(name)) => {
                *name = self.redact_identifier(name);
            }
            ("type" | "role" | "media_type" | "base64" | "blob", Value::String(_)) => {}
            ("input" | "structured" | "value" | "extra", value) => {
                *value = self.redact_value(value);
            }
            ("input_schema" | "output_schema" | "schema", value) => {
                *value = self.redact_schema(value);
            }
            (_, value) => self.redact_fields(value),
        }
    }

    /// Redacts the texts in a JSON Schema. Property names and strings without spaces, such as types
    /// and enum values, are redacted less strictly than other texts, because a replay checks
    /// arguments with them.
    fn redact_schema(&self, schema: &Value) -> Value {
        match schema {
            Value::String(text) if text.contains(' ') => Value::String(self.redact_text(text)),
            Value::String(name) => Value::String(self.redact_label(name)),
            Value::Array(items) => items.iter().map(|item| self.redact_schema(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter();
                let clean = fields
                    .map(|(name, value)| (self.redact_identifier(name), self.redact_schema(value)));
                Value::Object(clean.collect())
            }
            other => other.clone(),
        }
    }

    /// Returns the settings of a request as JSON without secrets. These are all its fields except
    /// the messages and tools.
    pub(super) fn redact_request_settings(
        &self,
        request: &ChatRequest,
    ) -> Result<Value, serde_json::Error> {
        self.redact_to_json(&ChatRequest {
            messages: Vec::new(),
            tools: Vec::new(),
            ..request.clone()
        })
    }

    /// Redacts the events of one response. Returns the ids of the tool uses whose input changed.
    ///
    /// A secret may be split between deltas, so all deltas of a part are redacted as one text. If
    /// this changes the text, the first delta gets the complete redacted text, and the other deltas
    /// become empty.
    pub(super) fn redact_events(
        &self,
        events: &mut [ModelEvent],
    ) -> Result<Vec<String>, serde_json::Error> {
        let mut redacted = Vec::new();
        let mut ids: BTreeMap<u32, String> = BTreeMap::new();
        let mut deltas: BTreeMap<(u32, DeltaKind), Vec<usize>> = BTreeMap::new();
        for (position, event) in events.iter_mut().enumerate() {
            match event {
                ModelEvent::PartStarted { index, part } => match part {
                    PartStart::ToolUse { id, name } => {
                        *id = self.redact_identifier(id);
                        *name = self.redact_identifier(name);
                        ids.insert(*index, id.clone());
                    }
                    PartStart::Whole { part } => {
                        let clean: Part = self.redact_item(&**part)?;
                        if let (Part::ToolUse(before), Part::ToolUse(after)) = (&**part, &clean)
                            && before.input != after.input
                        {
                            redacted.push(after.id.clone());
                        }
                        **part = clean;
                    }
                    _ => {}
                },
                ModelEvent::PartState { state, .. } => {
                    self.redactor.redact_known_in_value(&mut state.data);
                }
                ModelEvent::Warning { warning } => {
                    warning.message = self.redact_text(&warning.message);
                }
                ModelEvent::Finished { raw, .. } => {
                    *raw = raw.as_deref().map(|raw| self.redact_text(raw));
                }
                ModelEvent::Started { model, .. } => {
                    *model = model.as_deref().map(|model| self.redact_label(model));
                }
                event => {
                    if let Some((key, _)) = delta_text_mut(event) {
                        deltas.entry(key).or_default().push(position);
                    }
                }
            }
        }
        for ((index, kind), positions) in deltas {
            let mut text = String::new();
            for position in &positions {
                if let Some((_, piece)) = delta_text_mut(&mut events[*position]) {
                    text.push_str(piece);
                }
            }
            let clean = self.redact_text(&text);
            if clean == text {
                continue;
            }
            if kind == DeltaKind::ToolInput {
                redacted.extend(ids.get(&index).cloned());
            }
            let mut clean = Some(clean);
            for position in positions {
                if let Some((_, piece)) = delta_text_mut(&mut events[position]) {
                    *piece = clean.take().unwrap_or_default();
                }
            }
        }
        Ok(redacted)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DeltaKind {
    Text,
    Reasoning,
    ToolInput,
}

/// Returns the text of a delta event, and a key that all deltas of the same part share: the part's
/// index and the kind of the deltas. Returns `None` for other events.
fn delta_text_mut(event: &mut ModelEvent) -> Option<((u32, DeltaKind), &mut String)> {
    match event {
        ModelEvent::TextDelta { index, text } => Some(((*index, DeltaKind::Text), text)),
        ModelEvent::ReasoningDelta { index, text } => Some(((*index, DeltaKind::Reasoning), text)),
        ModelEvent::ToolInputDelta { index, json } => Some(((*index, DeltaKind::ToolInput), json)),
        _ => None,
    }
}
