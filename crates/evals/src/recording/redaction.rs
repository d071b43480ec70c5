//! Removal of secrets from messages, tools and events.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, Media, MediaSource, Message, ModelEvent, ModelId, Part, PartStart, ProviderState,
    ResponseFormat, ToolCatalog, ToolChoice, ToolContent, ToolDefinition, ToolInput, ToolOrigin,
    ToolOutput, ToolResult,
    redact::{Redactor, SizeLimits},
};

/// Removes known and likely secrets, without a size limit. Clones are cheap.
#[derive(Debug, Clone)]
pub(crate) struct Redaction {
    redactor: Redactor,
    /// Knows no secrets, and removes only likely ones.
    likely: Redactor,
}

impl Redaction {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self {
            redactor: redactor.with_limits(SizeLimits::UNLIMITED),
            likely: Redactor::default().with_limits(SizeLimits::UNLIMITED),
        }
    }

    /// Redacts a text. Text that is JSON, as from many tools, is redacted as a value.
    pub(crate) fn text(&self, text: &str) -> String {
        if text.trim_start().starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str::<Value>(text)
        {
            let clean = self.value(&value);
            if clean != value {
                return clean.to_string();
            }
        }
        self.redactor.redact_text(text)
    }

    /// Redacts data, also all values under names such as `password`.
    pub(crate) fn value(&self, value: &Value) -> Value {
        self.redactor.redact_value(value)
    }

    /// Redacts an identifier that replays compare, such as the name of a tool.
    pub(super) fn name(&self, name: &str) -> String {
        self.redactor.redact_known_in_name(name).into_owned()
    }

    /// Redacts a name that a user chose, such as that of a model or a conversation.
    pub(super) fn label(&self, label: &str) -> String {
        self.likely.redact_text(&self.name(label))
    }

    pub(super) fn model(&self, id: &ModelId) -> ModelId {
        ModelId::new(self.label(&id.provider), self.label(&id.name))
    }

    pub(super) fn message(&self, message: &Message) -> Message {
        let parts = message.parts.iter();
        Message::new(message.role, parts.map(|part| self.part(part.clone())))
    }

    fn part(&self, mut part: Part) -> Part {
        match &mut part {
            Part::Text(text) => {
                text.text = self.text(&text.text);
                self.state(text.provider_state.as_mut());
            }
            Part::Reasoning(reasoning) => {
                reasoning.text = self.text(&reasoning.text);
                self.state(reasoning.provider_state.as_mut());
            }
            Part::Image(media) | Part::Audio(media) => self.media(media),
            Part::Document(document) => {
                self.media(&mut document.media);
                document.title = document.title.as_deref().map(|title| self.text(title));
            }
            Part::ToolUse(tool_use) => {
                tool_use.id = self.name(&tool_use.id);
                tool_use.name = self.name(&tool_use.name);
                tool_use.input = self.input(&tool_use.input);
                self.state(tool_use.provider_state.as_mut());
            }
            Part::ToolResult(result) => self.result(result),
            Part::Opaque(opaque) => {
                opaque.text = opaque.text.as_deref().map(|text| self.text(text));
                self.state(Some(&mut opaque.provider_state));
            }
            _ => {}
        }
        part
    }

    /// Redacts only known secrets, because a provider needs the other data unchanged.
    fn state(&self, state: Option<&mut ProviderState>) {
        if let Some(state) = state {
            self.redactor.redact_known_in_value(&mut state.data);
        }
    }

    fn media(&self, media: &mut Media) {
        if let MediaSource::Url(url) = &mut media.source {
            *url = self.redactor.redact_text(url);
        }
    }

    fn input(&self, input: &ToolInput) -> ToolInput {
        match input {
            ToolInput::Object(object) => match self.value(&object.to_value()) {
                Value::Object(clean) => clean.into(),
                _ => input.clone(),
            },
            ToolInput::Malformed { raw, reason } => {
                ToolInput::malformed(self.text(raw), self.text(reason))
            }
        }
    }

    fn result(&self, result: &mut ToolResult) {
        result.tool_use_id = self.name(&result.tool_use_id);
        result.name = self.name(&result.name);
        result.content = result
            .content
            .iter()
            .map(|part| self.content(part))
            .collect();
        let structured = result.structured.as_ref();
        result.structured = structured.map(|value| Arc::new(self.value(value)));
    }

    fn content(&self, content: &ToolContent) -> ToolContent {
        let mut content = content.clone();
        match &mut content {
            ToolContent::Text { text } => *text = self.text(text),
            ToolContent::Image(media) | ToolContent::Audio(media) => self.media(media),
            ToolContent::Resource { uri, text, .. } => {
                *uri = self.redactor.redact_text(uri);
                *text = text.as_deref().map(|text| self.text(text));
            }
            ToolContent::ResourceLink {
                uri,
                name,
                description,
                ..
            } => {
                *uri = self.redactor.redact_text(uri);
                *name = self.redactor.redact_text(name);
                *description = description.as_deref().map(|text| self.text(text));
            }
            ToolContent::Unknown { value } => *value = self.value(value),
            _ => {}
        }
        content
    }

    pub(super) fn output(&self, output: &ToolOutput) -> ToolOutput {
        ToolOutput {
            content: output
                .content
                .iter()
                .map(|part| self.content(part))
                .collect(),
            structured: output.structured.as_ref().map(|value| self.value(value)),
            is_error: output.is_error,
        }
    }

    pub(super) fn catalog(&self, catalog: &ToolCatalog) -> ToolCatalog {
        let mut problems = catalog.problems.clone();
        for problem in &mut problems {
            problem.message = self.text(&problem.message);
        }
        ToolCatalog {
            tools: self.tools(&catalog.tools),
            problems,
        }
    }

    pub(super) fn tools(&self, tools: &[Arc<ToolDefinition>]) -> Vec<Arc<ToolDefinition>> {
        let clean = tools.iter().map(|tool| {
            let origin = tool.origin.as_ref().map(|origin| ToolOrigin {
                server: self.name(&origin.server),
                tool: self.name(&origin.tool),
            });
            Arc::new(ToolDefinition {
                name: self.name(&tool.name),
                title: tool.title.as_deref().map(|title| self.text(title)),
                description: self.text(&tool.description),
                input_schema: self.schema(&tool.input_schema),
                output_schema: tool.output_schema.as_ref().map(|it| self.schema(it)),
                annotations: tool.annotations,
                origin,
                sequential: tool.sequential,
            })
        });
        clean.collect()
    }

    /// Redacts the texts of a schema. Property names, types and enum values stay: a replay checks
    /// arguments with them.
    fn schema(&self, schema: &Value) -> Value {
        match schema {
            Value::String(text) if text.contains(' ') => Value::String(self.text(text)),
            Value::String(name) => Value::String(self.label(name)),
            Value::Array(items) => items.iter().map(|item| self.schema(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter();
                let clean = fields.map(|(name, value)| (self.name(name), self.schema(value)));
                Value::Object(clean.collect())
            }
            other => other.clone(),
        }
    }

    /// Returns a request without messages, tools and secrets.
    pub(super) fn settings(&self, request: &ChatRequest) -> ChatRequest {
        let mut settings = ChatRequest {
            messages: Vec::new(),
            tools: Vec::new(),
            ..request.clone()
        };
        if let ToolChoice::Only(names) = &mut settings.tool_choice {
            *names = names.iter().map(|name| self.name(name)).collect();
        }
        if let ResponseFormat::JsonSchema { schema, .. } = &mut settings.response_format {
            *schema = self.schema(schema);
        }
        let stop = &mut settings.sampling.stop;
        *stop = stop.iter().map(|text| self.text(text)).collect();
        if let Value::Object(extra) = self.value(&Value::Object(settings.extra)) {
            settings.extra = extra;
        } else {
            settings.extra = serde_json::Map::new();
        }
        settings
    }

    /// Redacts the events of one response. Returns the ids of the tool uses whose input changed.
    ///
    /// Also finds secrets that are split between deltas. The first delta of such a part then has
    /// the complete text, and the others are empty.
    pub(super) fn events(&self, events: &mut [ModelEvent]) -> Vec<String> {
        let mut redacted = Vec::new();
        let mut ids: BTreeMap<u32, String> = BTreeMap::new();
        let mut deltas: BTreeMap<(u32, DeltaKind), Vec<usize>> = BTreeMap::new();
        for (position, event) in events.iter_mut().enumerate() {
            match event {
                ModelEvent::PartStarted { index, part } => match part {
                    PartStart::ToolUse { id, name } => {
                        *id = self.name(id);
                        *name = self.name(name);
                        ids.insert(*index, id.clone());
                    }
                    PartStart::Whole { part } => {
                        let clean = self.part((**part).clone());
                        if let (Part::ToolUse(before), Part::ToolUse(after)) = (&**part, &clean)
                            && before.input != after.input
                        {
                            redacted.push(after.id.clone());
                        }
                        **part = clean;
                    }
                    _ => {}
                },
                ModelEvent::PartState { state, .. } => self.state(Some(state)),
                ModelEvent::Warning { warning } => warning.message = self.text(&warning.message),
                ModelEvent::Finished { raw, .. } => {
                    *raw = raw.as_deref().map(|raw| self.text(raw));
                }
                ModelEvent::Started { model, .. } => {
                    *model = model.as_deref().map(|model| self.label(model));
                }
                event => {
                    if let Some((key, _)) = delta(event) {
                        deltas.entry(key).or_default().push(position);
                    }
                }
            }
        }
        for ((index, kind), positions) in deltas {
            let mut text = String::new();
            for position in &positions {
                if let Some((_, piece)) = delta(&mut events[*position]) {
                    text.push_str(piece);
                }
            }
            let clean = self.text(&text);
            if clean == text {
                continue;
            }
            if kind == DeltaKind::ToolInput {
                redacted.extend(ids.get(&index).cloned());
            }
            let mut clean = Some(clean);
            for position in positions {
                if let Some((_, piece)) = delta(&mut events[position]) {
                    *piece = clean.take().unwrap_or_default();
                }
            }
        }
        redacted
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DeltaKind {
    Text,
    Reasoning,
    ToolInput,
}

/// Returns the part and the text of a delta.
fn delta(event: &mut ModelEvent) -> Option<((u32, DeltaKind), &mut String)> {
    match event {
        ModelEvent::TextDelta { index, text } => Some(((*index, DeltaKind::Text), text)),
        ModelEvent::ReasoningDelta { index, text } => Some(((*index, DeltaKind::Reasoning), text)),
        ModelEvent::ToolInputDelta { index, json } => Some(((*index, DeltaKind::ToolInput), json)),
        _ => None,
    }
}
