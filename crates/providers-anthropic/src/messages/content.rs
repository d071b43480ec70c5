//! Converts message parts to content blocks of the Messages API.

pub(crate) mod conversation;
mod media;
mod tool_use_ids;
mod unpaired_blocks;

use std::borrow::Cow;

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, JsonObject, Media, ModelCapabilities, ModelId, Opaque, Part, ProviderState,
    Reasoning, Role, Text, ToolContent, ToolResult, ToolUse, Warning, WarningKind,
};
use switchboard_providers_common::{ContentWarnings, ToolUseInput, tool_names::ToolNames};

use self::{tool_use_ids::to_valid_tool_use_id, unpaired_blocks::UnpairedBlocks};
use super::wire::Block;
use crate::options::MessagesOptions;

/// Key of the signature in the provider state of a reasoning part.
pub(crate) const SIGNATURE: &str = "signature";
/// Key of the encrypted thinking text in the provider state of a reasoning part.
pub(crate) const REDACTED: &str = "redacted";
/// Key of the citations in the provider state of a text part.
pub(crate) const CITATIONS: &str = "citations";
/// Value of `Opaque::kind` for the part that stores the id of the code execution container. The API
/// has no block for it: the container is a field of the request and of the response.
pub(crate) const CONTAINER: &str = "container";

/// A converter of message parts to content blocks. It collects warnings about changed or dropped
/// parts.
pub(crate) struct ContentMapper<'m> {
    pub(crate) model: &'m ModelId,
    pub(crate) names: &'m ToolNames,
    pub(crate) capabilities: &'m ModelCapabilities,
    pub(crate) replay_reasoning: bool,
    pub(crate) warnings: ContentWarnings<'m>,
    pub(crate) dropped_reasoning: usize,
    unpaired: UnpairedBlocks<'m>,
}

impl<'m> ContentMapper<'m> {
    /// Creates a mapper for the message parts of a request to `model`.
    pub(crate) fn new(
        request: &'m ChatRequest,
        model: &'m ModelId,
        names: &'m ToolNames,
        capabilities: &'m ModelCapabilities,
        options: &MessagesOptions,
        warnings: &'m mut Vec<Warning>,
    ) -> Self {
        Self {
            model,
            names,
            capabilities,
            replay_reasoning: options.replay_reasoning,
            warnings: ContentWarnings::new(warnings),
            dropped_reasoning: 0,
            unpaired: UnpairedBlocks::find_unpaired_blocks(request, model),
        }
    }
}

impl ContentMapper<'_> {
    /// Converts a part of a system message. Drops parts other than text, with a warning. Returns
    /// `None` for a dropped part and for blank text.
    pub(crate) fn map_instruction_part<'a>(&mut self, part: &'a Part) -> Option<Block<'a>> {
        match part {
            Part::Text(text) => text_block(&text.text),
            other => self.drop_part(other, "instructions can contain only text"),
        }
    }

    /// Converts a part of a user message. Returns `None` for a part that is not sent as a block,
    /// such as blank text.
    pub(crate) fn map_user_part<'a>(&mut self, part: &'a Part) -> Option<Block<'a>> {
        match part {
            Part::Text(text) => text_block(&text.text),
            Part::Image(media) => Some(self.map_image(media)),
            Part::Document(document) => Some(self.map_document(document)),
            Part::Audio(media) => {
                Some(self.media_as_text("audio", media, "this API does not support audio"))
            }
            Part::Opaque(opaque) => self.map_opaque_part(opaque),
            other => self.drop_part(other, "a user message cannot contain it"),
        }
    }

    /// Converts a part of an assistant message. Media become text. Returns `None` for a part that
    /// is not sent as a block, such as blank text.
    pub(crate) fn map_assistant_part<'a>(&mut self, part: &'a Part) -> Option<Block<'a>> {
        let why = "an assistant message cannot contain media";
        match part {
            Part::Text(text) => self.map_assistant_text(text),
            Part::Reasoning(reasoning) => self.map_reasoning(reasoning),
            Part::ToolUse(tool_use) => Some(self.map_tool_use(tool_use)),
            Part::Opaque(opaque) => self.map_opaque_part(opaque),
            Part::Image(media) => Some(self.media_as_text("image", media, why)),
            Part::Audio(media) => Some(self.media_as_text("audio", media, why)),
            Part::Document(document) => Some(self.media_as_text("document", &document.media, why)),
            other => self.drop_part(other, "an assistant message cannot contain it"),
        }
    }

    fn map_assistant_text<'a>(&mut self, text: &'a Text) -> Option<Block<'a>> {
        if text.text.trim().is_empty() {
            return None;
        }
        let state = self.provider_state_data(text.provider_state.as_ref());
        self.warnings.dropped_states +=
            usize::from(text.provider_state.is_some() && state.is_none());
        let citations = state.and_then(|state| state.get(CITATIONS)?.as_array());
        Some(Block::Text {
            text: Cow::Borrowed(&text.text),
            citations: citations
                .into_iter()
                .flatten()
                .map(citation_without_file_id)
                .collect(),
        })
    }

    fn map_reasoning<'a>(&mut self, reasoning: &'a Reasoning) -> Option<Block<'a>> {
        let state = self
            .provider_state_data(reasoning.provider_state.as_ref())
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
        self.dropped_reasoning += 1;
        None
    }

    fn map_tool_use<'a>(&mut self, tool_use: &'a ToolUse) -> Block<'a> {
        let name = self.names.wire_name(&tool_use.name);
        let state = self.provider_state_data(tool_use.provider_state.as_ref());
        self.warnings.dropped_states +=
            usize::from(tool_use.provider_state.is_some() && state.is_none());
        let is_further = |fields: &&JsonObject| {
            let known = ["type", "id", "name", "input"];
            !fields.is_empty() && known.iter().all(|known| !fields.contains_key(*known))
        };
        Block::ToolUse {
            id: to_valid_tool_use_id(&tool_use.id),
            name,
            input: ToolUseInput(&tool_use.input),
            further: state.and_then(Value::as_object).filter(is_further),
        }
    }

    fn map_opaque_part<'a>(&mut self, opaque: &'a Opaque) -> Option<Block<'a>> {
        if opaque.kind == CONTAINER && opaque.text.is_none() {
            // The container is not sent as a block but in the request field `container`.
            return None;
        }
        let mut why = "of another model";
        if let Some(block) = self.provider_state_data(Some(&opaque.provider_state)) {
            if self.unpaired.contains_block(block) {
                why = "without its counterpart, which the API refuses,";
            } else if block.get("type").is_some_and(Value::is_string) {
                return Some(Block::Native(block));
            }
        }
        let text = opaque.text.as_deref().and_then(text_block);
        let (kind, what) = match text {
            Some(_) => (WarningKind::PartDowngraded, "was sent as its text"),
            None => (WarningKind::PartDropped, "was dropped"),
        };
        let message = format!("a `{}` {why} {what}", opaque.kind);
        self.warnings.add_warning(kind, message);
        text
    }

    /// Converts a tool result. The API accepts only text in the result of a failed call. The media
    /// of such a result are added to `after_results`, the blocks that follow the results in the
    /// user message.
    pub(crate) fn map_tool_result<'a>(
        &mut self,
        result: &'a ToolResult,
        after_results: &mut Vec<Block<'a>>,
    ) -> Block<'a> {
        let mut content = Vec::new();
        let mut media = Vec::new();
        for piece in &*result.content {
            match self.map_result_content(piece) {
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
            content.insert(0, Block::from_text(structured.to_string()));
        }
        if content.is_empty() && result.is_error {
            content.push(Block::from_text(
                "The tool failed without an error message.",
            ));
        }
        if !media.is_empty() {
            let name = self.names.wire_name(&result.name);
            let message = format!(
                "media of the failed result of `{name}` were sent after it: this API accepts only \
                 text in a failed result"
            );
            self.warnings.add_downgrade(message);
            after_results.push(Block::from_text(format!(
                "From the failed result of tool `{name}` (call {}):",
                to_valid_tool_use_id(&result.tool_use_id)
            )));
            after_results.append(&mut media);
        }
        Block::ToolResult {
            tool_use_id: to_valid_tool_use_id(&result.tool_use_id),
            content,
            is_error: result.is_error,
        }
    }

    fn map_result_content<'a>(&mut self, content: &'a ToolContent) -> Option<Block<'a>> {
        match content {
            ToolContent::Text { text }
            | ToolContent::Resource {
                text: Some(text), ..
            } => text_block(text),
            ToolContent::Image(media) => Some(self.map_image(media)),
            ToolContent::Audio(media) => {
                Some(self.media_as_text("audio", media, "this API does not support audio"))
            }
            ToolContent::Resource {
                uri,
                media_type,
                blob: Some(data),
                ..
            } => {
                let media_type = media_type.as_deref().unwrap_or_default();
                if let Some(block) = self.map_resource(media_type, data) {
                    return Some(block);
                }
                let name = format!("[resource {}]", format!("{uri} {media_type}").trim_end());
                let why = "the API does not support its type";
                Some(Block::from_text(self.warnings.warn_sent_as_text(name, why)))
            }
            other => text_block(other.as_text()),
        }
    }

    /// Returns a text to send instead of media, such as `[image image/bmp]`, and adds a warning.
    fn media_as_text<'a>(&mut self, what: &str, media: &Media, why: &str) -> Block<'a> {
        Block::from_text(self.warnings.warn_media_as_text(what, media, why))
    }

    fn drop_part<'a>(&mut self, part: &Part, why: &str) -> Option<Block<'a>> {
        self.warnings.warn_dropped_part(part, why);
        None
    }

    /// Returns the data of a part's provider state. Returns `None` without a state, and for a state
    /// that must not be sent to the requested model.
    fn provider_state_data<'a>(&self, state: Option<&'a ProviderState>) -> Option<&'a Value> {
        state?.data_for_model(self.model)
    }
}

/// Returns a text block, or `None` for blank text, which the API refuses.
fn text_block<'a>(text: impl Into<Cow<'a, str>>) -> Option<Block<'a>> {
    let text = text.into();
    (!text.trim().is_empty()).then(|| Block::from_text(text))
}

/// Returns a citation without its `file_id`, which the API sends but refuses in requests.
fn citation_without_file_id(citation: &Value) -> Cow<'_, Value> {
    match citation {
        Value::Object(fields) if fields.contains_key("file_id") => {
            let mut fields = fields.clone();
            fields.shift_remove("file_id");
            Cow::Owned(Value::Object(fields))
        }
        other => Cow::Borrowed(other),
    }
}

/// Returns the id of the code execution container that the last answer used. The request continues
/// this container, because code in it waits for tool results or because the API paused the turn.
/// Returns `None` if the user has sent a new message since then, because the container may have
/// expired.
pub(crate) fn container_id<'a>(request: &'a ChatRequest, model: &ModelId) -> Option<&'a str> {
    let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
    let mut messages = request.messages.iter().rev();
    let last = messages
        .find(|message| message.role != Role::System && !message.parts.iter().all(is_result))?;
    last.parts.iter().rev().find_map(|part| match part {
        Part::Opaque(opaque) if opaque.kind == CONTAINER => opaque
            .provider_state
            .data_for_model(model)?
            .get("id")?
            .as_str(),
        _ => None,
    })
}
