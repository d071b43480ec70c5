//! Parts → blocks.

use std::borrow::Cow;

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, JsonObject, Media, ModelCapabilities, ModelId, Opaque, Part, ProviderState,
    Reasoning, Role, Text, ToolContent, ToolResult, ToolUse, Warning, WarningKind,
};
use switchboard_providers_common::tool_names::ToolNames;

use super::{
    ids::wire_id,
    pairing::Unpaired,
    tools::wire_name,
    wire::{Block, Input},
};

/// The key under which a reasoning part's state holds the signature of its text.
pub(crate) const SIGNATURE: &str = "signature";
/// The key under which a reasoning part's state holds encrypted thinking.
pub(crate) const REDACTED: &str = "redacted";
/// The key under which a text part's state holds what the text cites.
pub(crate) const CITATIONS: &str = "citations";
/// The kind of the part that remembers where the model ran code. It is a field of the request and the
/// answer on the wire, not a block.
pub(crate) const CONTAINER: &str = "container";

/// Maps parts, and says what could not be said.
pub(crate) struct Mapper<'m> {
    pub(crate) model: &'m ModelId,
    pub(crate) names: &'m ToolNames,
    pub(crate) capabilities: &'m ModelCapabilities,
    pub(crate) replay_reasoning: bool,
    pub(crate) warnings: &'m mut Vec<Warning>,
    pub(crate) reasoning_dropped: usize,
    /// Texts and calls that go without what another model had attached for itself.
    pub(crate) states_dropped: usize,
    /// Blocks of the provider's own that it would refuse.
    pub(crate) unpaired: Unpaired<'m>,
}

impl<'m> Mapper<'m> {
    /// A mapper for a request to `model`.
    pub(crate) fn new(
        request: &'m ChatRequest,
        model: &'m ModelId,
        names: &'m ToolNames,
        capabilities: &'m ModelCapabilities,
        replay_reasoning: bool,
        warnings: &'m mut Vec<Warning>,
    ) -> Self {
        Self {
            model,
            names,
            capabilities,
            replay_reasoning,
            warnings,
            reasoning_dropped: 0,
            states_dropped: 0,
            unpaired: Unpaired::of(request, model),
        }
    }
}

impl Mapper<'_> {
    /// Instructions: text alone.
    pub(crate) fn instruction<'a>(&mut self, part: &'a Part) -> Option<Block<'a>> {
        match part {
            Part::Text(text) => said(&text.text),
            other => self.dropped(other, "instructions are text"),
        }
    }

    /// What the person said and showed.
    pub(crate) fn user<'a>(&mut self, part: &'a Part) -> Option<Block<'a>> {
        match part {
            Part::Text(text) => said(&text.text),
            Part::Image(media) => Some(self.image(media)),
            Part::Document(document) => Some(self.document(document)),
            Part::Audio(media) => Some(self.in_words("audio", media, "this wire takes no audio")),
            Part::Opaque(opaque) => self.opaque(opaque),
            other => self.dropped(other, "a user message cannot hold it"),
        }
    }

    /// What the model said and did.
    pub(crate) fn assistant<'a>(&mut self, part: &'a Part) -> Option<Block<'a>> {
        let shown = "the model's own messages hold no media";
        match part {
            Part::Text(text) => self.answer(text),
            Part::Reasoning(reasoning) => self.reasoning(reasoning),
            Part::ToolUse(tool_use) => Some(self.tool_use(tool_use)),
            Part::Opaque(opaque) => self.opaque(opaque),
            Part::Image(media) => Some(self.in_words("image", media, shown)),
            Part::Audio(media) => Some(self.in_words("audio", media, shown)),
            Part::Document(document) => Some(self.in_words("document", &document.media, shown)),
            other => self.dropped(other, "the model's own messages cannot hold it"),
        }
    }

    fn answer<'a>(&mut self, text: &'a Text) -> Option<Block<'a>> {
        if text.text.trim().is_empty() {
            return None;
        }
        let state = self.own(text.provider_state.as_ref());
        self.states_dropped += usize::from(text.provider_state.is_some() && state.is_none());
        let citations = state.and_then(|state| state.get(CITATIONS)?.as_array());
        Some(Block::Text {
            text: Cow::Borrowed(&text.text),
            citations: citations.into_iter().flatten().map(cited).collect(),
        })
    }

    fn reasoning<'a>(&mut self, reasoning: &'a Reasoning) -> Option<Block<'a>> {
        let state = self
            .own(reasoning.provider_state.as_ref())
            .filter(|_| self.replay_reasoning);
        let field = |name: &str| state?.get(name)?.as_str();
        if let Some(signature) = field(SIGNATURE) {
            return Some(Block::Thinking {
                thinking: &reasoning.text,
                signature,
            });
        }
        if let Some(data) = field(REDACTED) {
            return Some(Block::RedactedThinking { data });
        }
        self.reasoning_dropped += 1;
        None
    }

    fn tool_use<'a>(&mut self, tool_use: &'a ToolUse) -> Block<'a> {
        let name = wire_name(self.names, &tool_use.name);
        let state = self.own(tool_use.provider_state.as_ref());
        self.states_dropped += usize::from(tool_use.provider_state.is_some() && state.is_none());
        Block::ToolUse {
            id: wire_id(&tool_use.id),
            name,
            input: Input(&tool_use.input),
            more: state
                .and_then(Value::as_object)
                .filter(|more| !more.is_empty() && only_unknown(more)),
        }
    }

    fn opaque<'a>(&mut self, opaque: &'a Opaque) -> Option<Block<'a>> {
        if opaque.kind == CONTAINER && opaque.text.is_none() {
            // A place, and no content: see `container`.
            return None;
        }
        let mut why = "that another model minted";
        if let Some(block) = self.own(Some(&opaque.provider_state)) {
            if self.unpaired.contains(block) {
                why = "without its counterpart, which the API refuses,";
            } else if block.get("type").is_some_and(Value::is_string) {
                return Some(Block::Native(block));
            }
        }
        let words = opaque.text.as_deref().and_then(said);
        let (kind, what) = match words {
            Some(_) => (WarningKind::PartDowngraded, "was sent as its text"),
            None => (WarningKind::PartDropped, "was left out"),
        };
        let message = format!("a `{}` {why} {what}", opaque.kind);
        self.warn(kind, message);
        words
    }

    /// A tool's result. The API refuses anything but text in a failed one, so that media of such a
    /// result go to `beside`, which comes after all results.
    pub(crate) fn result<'a>(
        &mut self,
        result: &'a ToolResult,
        beside: &mut Vec<Block<'a>>,
    ) -> Block<'a> {
        let mut content = Vec::new();
        let mut media = Vec::new();
        for piece in &*result.content {
            match self.result_content(piece) {
                Some(block @ Block::Text { .. }) => content.push(block),
                Some(block) if result.is_error => media.push(block),
                Some(block) => content.push(block),
                None => {}
            }
        }
        let has_text = content.iter().any(|it| matches!(it, Block::Text { .. }));
        if let Some(structured) = &result.structured
            && !has_text
        {
            content.insert(0, Block::text(structured.to_string()));
        }
        if content.is_empty() && result.is_error {
            content.push(Block::text("The tool failed without saying why."));
        }
        if !media.is_empty() {
            let name = wire_name(self.names, &result.name);
            let message = format!(
                "media of the failed result of `{name}` were sent after it: a failure is text on \
                 this wire"
            );
            self.warn(WarningKind::PartDowngraded, message);
            beside.push(Block::text(format!(
                "From the failed result of tool `{name}` (call {}):",
                wire_id(&result.tool_use_id)
            )));
            beside.append(&mut media);
        }
        Block::ToolResult {
            tool_use_id: wire_id(&result.tool_use_id),
            content,
            is_error: result.is_error,
        }
    }

    fn result_content<'a>(&mut self, content: &'a ToolContent) -> Option<Block<'a>> {
        match content {
            ToolContent::Text { text }
            | ToolContent::Resource {
                text: Some(text), ..
            } => said(text),
            ToolContent::Image(media) => Some(self.image(media)),
            ToolContent::Audio(media) => {
                Some(self.in_words("audio", media, "this wire takes no audio"))
            }
            ToolContent::Resource {
                uri,
                media_type,
                blob: Some(data),
                ..
            } => {
                let media_type = media_type.as_deref().unwrap_or_default();
                let source = self.bytes(media_type, data);
                if let Some(block) = source {
                    return Some(block);
                }
                let name = format!("[resource {}]", format!("{uri} {media_type}").trim_end());
                let message =
                    format!("{name} was sent as these words: the wire takes no such bytes");
                self.warn(WarningKind::PartDowngraded, message);
                Some(Block::text(name))
            }
            other => said_owned(other.as_text()),
        }
    }

    /// A medium that cannot be sent is named, so that the model knows of it.
    pub(super) fn in_words<'a>(&mut self, what: &str, media: &Media, why: &str) -> Block<'a> {
        let name = format!("[{what} {}]", media.media_type);
        let message = format!("{name} was sent as these words: {why}");
        self.warn(WarningKind::PartDowngraded, message);
        Block::text(name)
    }

    fn dropped<'a>(&mut self, part: &Part, why: &str) -> Option<Block<'a>> {
        let what = part.in_words();
        self.warn(WarningKind::PartDropped, format!("{what} left out: {why}"));
        None
    }

    /// What this model minted, and nothing else.
    fn own<'a>(&self, state: Option<&'a ProviderState>) -> Option<&'a Value> {
        state?.for_model(self.model)
    }

    pub(crate) fn warn(&mut self, kind: WarningKind, message: String) {
        self.warnings.push(Warning::new(kind, message));
    }
}

/// A text that says something; the API refuses blank ones.
fn said(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then(|| Block::text(text))
}

pub(super) fn said_owned<'a>(text: String) -> Option<Block<'a>> {
    (!text.trim().is_empty()).then(|| Block::text(text))
}

/// A citation as it may be sent: what comes back names the file, which what is sent may not.
fn cited(citation: &Value) -> Cow<'_, Value> {
    match citation {
        Value::Object(fields) if fields.contains_key("file_id") => {
            let mut fields = fields.clone();
            fields.shift_remove("file_id");
            Cow::Owned(Value::Object(fields))
        }
        other => Cow::Borrowed(other),
    }
}

/// Whether none of the fields is one that the block has itself.
fn only_unknown(more: &JsonObject) -> bool {
    ["type", "id", "name", "input"]
        .iter()
        .all(|known| !more.contains_key(*known))
}

/// The container in which the model's code waits for the results of its calls, or in which it paused;
/// `None` once the person has spoken again, for containers do not last.
pub(crate) fn container<'a>(request: &'a ChatRequest, model: &ModelId) -> Option<&'a str> {
    let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
    let mut messages = request.messages.iter().rev();
    let last = messages
        .find(|message| message.role != Role::System && !message.parts.iter().all(is_result))?;
    last.parts.iter().rev().find_map(|part| match part {
        Part::Opaque(opaque) if opaque.kind == CONTAINER => {
            opaque.provider_state.for_model(model)?.get("id")?.as_str()
        }
        _ => None,
    })
}
