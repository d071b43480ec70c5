//! Converts message parts to parts of the Gemini API.

use std::borrow::Cow;

use serde_json::Value;
use switchboard_domain::{
    Document, Media, MediaSource, ModelCapabilities, ModelId, Opaque, Part, ProviderState,
    Reasoning, Text, ToolUse, WarningKind,
};

use switchboard_providers_common::{
    ContentWarnings, ToolUseInput, media::media_type_essence, tool_names::ToolNames,
};

use crate::capabilities::ModelSeries;
use crate::generate::wire::{self, FileData, FunctionCall, InlineData, PartData, PartWithMetadata};

/// Key of the thought signature in a part's [`ProviderState`].
pub(crate) const SIGNATURE: &str = "thoughtSignature";
/// Key of the API's call id in the [`ProviderState`] of a tool call.
pub(crate) const ID: &str = "id";
/// Key in the [`ProviderState`] of an opaque part. Its value is the part as the API sent it, in
/// JSON.
pub(crate) const PIECE: &str = "part";

/// The kind of the [`Opaque`] part with the sources of an answer. The API sends them in a field
/// next to `content`, in the answer candidate.
const GROUNDING: &str = "groundingMetadata";
/// The kind of the [`Opaque`] part with the web pages that the model read. The API sends them in a
/// field next to `content`, in the answer candidate.
const PAGES: &str = "urlContextMetadata";
/// The kinds of [`Opaque`] parts that are built from fields next to `content` in an answer.
pub(crate) const BESIDE_CONTENT: [&str; 2] = [GROUNDING, PAGES];

/// A mapper of message parts. It collects warnings about parts that the API does not support.
pub(crate) struct PartMapper<'m> {
    pub(crate) model: &'m ModelId,
    pub(crate) series: Option<ModelSeries>,
    pub(crate) capabilities: &'m ModelCapabilities,
    pub(crate) names: &'m ToolNames,
    pub(crate) replay_thoughts: bool,
    pub(crate) warnings: ContentWarnings<'m>,
    pub(crate) reasoning_dropped: usize,
}

impl PartMapper<'_> {
    /// Maps a text part of a system message. Returns `None` for an empty text. Drops parts of other
    /// kinds, such as images, with a warning.
    pub(crate) fn map_instruction<'a>(&mut self, part: &'a Part) -> Option<wire::Part<'a>> {
        match part {
            Part::Text(text) => map_nonempty_text(&text.text),
            other => self.warn_dropped(other, "instructions can contain only text"),
        }
    }

    /// Maps a part of a user message to parts of the API, and appends them to `out`.
    pub(crate) fn map_user_part<'a>(&mut self, part: &'a Part, out: &mut Vec<wire::Part<'a>>) {
        match part {
            Part::Text(text) => out.extend(map_nonempty_text(&text.text)),
            Part::Image(media) => out.push(self.map_image(media)),
            Part::Audio(media) => out.push(self.map_audio(media)),
            Part::Document(document) => self.map_document(document, out),
            Part::Opaque(opaque) => out.extend(self.map_foreign_part(opaque)),
            other => out.extend(self.warn_dropped(other, "a user message cannot contain it")),
        }
    }

    /// Maps a part of a model message to parts of the API, and appends them to `out`.
    pub(crate) fn map_assistant_part<'a>(&mut self, part: &'a Part, out: &mut Vec<wire::Part<'a>>) {
        match part {
            Part::Text(text) => out.extend(self.map_answer_text(text)),
            Part::Reasoning(reasoning) => out.extend(self.map_reasoning(reasoning)),
            Part::ToolUse(tool_use) => out.push(self.map_tool_call(tool_use)),
            Part::Opaque(opaque) => out.extend(self.map_opaque_part(opaque)),
            Part::Image(media) => out.push(self.map_image(media)),
            Part::Audio(media) => out.push(self.map_audio(media)),
            Part::Document(document) => self.map_document(document, out),
            other => {
                out.extend(self.warn_dropped(other, "an assistant message cannot contain it"));
            }
        }
    }

    /// Returns the API's id of a tool call. Returns `None` if the API assigned no id, or if another
    /// model made the call.
    pub(crate) fn wire_call_id<'a>(&self, tool_use: &'a ToolUse) -> Option<&'a str> {
        self.state_for_model(tool_use.provider_state.as_ref())?
            .get(ID)?
            .as_str()
    }

    fn map_answer_text<'a>(&mut self, text: &'a Text) -> Option<wire::Part<'a>> {
        let thought_signature = self.replayable_signature(text.provider_state.as_ref());
        if text.text.is_empty() && thought_signature.is_none() {
            return None;
        }
        Some(wire::Part::Said(PartWithMetadata {
            data: PartData::Text(Cow::Borrowed(&text.text)),
            thought: false,
            thought_signature,
        }))
    }

    fn map_reasoning<'a>(&mut self, reasoning: &'a Reasoning) -> Option<wire::Part<'a>> {
        let own = self.state_for_model(reasoning.provider_state.as_ref());
        let Some(state) = own.filter(|_| self.replay_thoughts) else {
            self.reasoning_dropped += 1;
            return None;
        };
        let thought_signature = state.get(SIGNATURE).and_then(Value::as_str);
        if reasoning.text.is_empty() && thought_signature.is_none() {
            return None;
        }
        Some(wire::Part::Said(PartWithMetadata {
            data: PartData::Text(Cow::Borrowed(&reasoning.text)),
            thought: true,
            thought_signature,
        }))
    }

    fn map_tool_call<'a>(&mut self, tool_use: &'a ToolUse) -> wire::Part<'a> {
        let thought_signature = self.replayable_signature(tool_use.provider_state.as_ref());
        wire::Part::Said(PartWithMetadata {
            data: PartData::FunctionCall(FunctionCall {
                id: self.wire_call_id(tool_use),
                name: self.names.wire_name(&tool_use.name),
                args: ToolUseInput(&tool_use.input),
            }),
            thought: false,
            thought_signature,
        })
    }

    fn map_opaque_part<'a>(&mut self, opaque: &'a Opaque) -> Option<wire::Part<'a>> {
        let own = self.state_for_model(Some(&opaque.provider_state));
        let piece = own.and_then(|state| state.get(PIECE));
        match piece.and_then(Value::as_object).zip(piece) {
            Some((fields, _)) if fields.contains_key(SIGNATURE) && !self.replay_thoughts => {
                self.warnings.dropped_states += 1;
                let mut unsigned = fields.clone();
                unsigned.shift_remove(SIGNATURE);
                Some(wire::Part::Native(Cow::Owned(Value::Object(unsigned))))
            }
            Some((_, piece)) => Some(wire::Part::Native(Cow::Borrowed(piece))),
            // `BESIDE_CONTENT` lists fields of a candidate, which the API does not accept in a
            // request.
            None if own.is_some() && BESIDE_CONTENT.contains(&opaque.kind.as_str()) => None,
            None => self.map_foreign_part(opaque),
        }
    }

    /// Returns the text of an opaque part that another model created, or `None` if it has no text.
    /// Adds a warning in both cases.
    fn map_foreign_part<'a>(&mut self, opaque: &'a Opaque) -> Option<wire::Part<'a>> {
        let words = opaque.text.as_deref().and_then(map_nonempty_text);
        let (kind, what) = match words {
            Some(_) => (WarningKind::PartDowngraded, "was sent as its text"),
            None => (WarningKind::PartDropped, "was dropped"),
        };
        let message = format!("a `{}` of another model {what}", opaque.kind);
        self.warnings.add_warning(kind, message);
        words
    }

    fn replayable_signature<'a>(&mut self, state: Option<&'a ProviderState>) -> Option<&'a str> {
        let Some(own) = self.state_for_model(state) else {
            self.warnings.dropped_states += usize::from(state.is_some());
            return None;
        };
        let signature = own.get(SIGNATURE)?.as_str()?;
        self.warnings.dropped_states += usize::from(!self.replay_thoughts);
        Some(signature).filter(|_| self.replay_thoughts)
    }

    fn state_for_model<'a>(&self, state: Option<&'a ProviderState>) -> Option<&'a Value> {
        state?.data_for_model(self.model)
    }

    pub(crate) fn map_image<'a>(&mut self, media: &'a Media) -> wire::Part<'a> {
        if self.capabilities.images == Some(false) {
            return self.media_as_text("image", media, "the model does not support images");
        }
        self.map_media("image", media)
    }

    pub(crate) fn map_audio<'a>(&mut self, media: &'a Media) -> wire::Part<'a> {
        if self.capabilities.audio == Some(false) {
            return self.media_as_text("audio", media, "the model does not support audio");
        }
        self.map_media("audio", media)
    }

    fn map_document<'a>(&mut self, document: &'a Document, out: &mut Vec<wire::Part<'a>>) {
        let media = &document.media;
        if self.capabilities.documents == Some(false) {
            let why = "the model does not support documents";
            out.push(self.media_as_text("document", media, why));
            return;
        }
        // The API does not accept a document title, so it precedes the document as text.
        if let Some(title) = document.title.as_deref().filter(|it| !it.trim().is_empty()) {
            out.push(wire::Part::from_text(format!("[document: {title}]")));
        }
        out.push(self.map_media("document", media));
    }

    fn map_media<'a>(&mut self, what: &str, media: &'a Media) -> wire::Part<'a> {
        match WireMedia::convert_media(media) {
            Some(WireMedia::Inline(blob)) => wire::Part::from_data(PartData::InlineData(blob)),
            Some(WireMedia::Url(file)) => wire::Part::from_data(PartData::FileData(file)),
            None => self.media_as_text(what, media, "the API does not support its source"),
        }
    }

    /// Returns a text to send instead of media, such as `[image image/bmp]`, and adds a warning.
    fn media_as_text(&mut self, what: &str, media: &Media, why: &str) -> wire::Part<'static> {
        wire::Part::from_text(self.warnings.warn_media_as_text(what, media, why))
    }

    fn warn_dropped<T>(&mut self, part: &Part, why: &str) -> Option<T> {
        self.warnings.warn_dropped_part(part, why);
        None
    }
}

/// Returns a text part without a signature, or `None` for empty text, which the API accepts only
/// with a signature.
fn map_nonempty_text(text: &str) -> Option<wire::Part<'_>> {
    (!text.is_empty()).then(|| wire::Part::from_text(text))
}

/// Media in one of the API's two forms: bytes in the request, or a URL.
pub(crate) enum WireMedia<'a> {
    Inline(InlineData<'a>),
    Url(FileData<'a>),
}

impl<'a> WireMedia<'a> {
    pub(crate) fn convert_media(media: &'a Media) -> Option<Self> {
        let media_type = media.media_type.as_str();
        match &media.source {
            MediaSource::Base64(data) => Some(Self::from_base64(media_type, data)),
            MediaSource::Url(url) => Some(match parse_data_url(url) {
                Some((media_type, data)) => Self::from_base64(media_type, data),
                None => Self::Url(FileData {
                    mime_type: accepted_media_type(media_type),
                    file_uri: url,
                }),
            }),
            _ => None,
        }
    }

    pub(crate) fn from_base64(media_type: &'a str, data: &'a str) -> Self {
        Self::Inline(InlineData {
            mime_type: accepted_media_type(media_type),
            data,
        })
    }

    pub(crate) fn media_type(&self) -> &str {
        match self {
            Self::Inline(blob) => &blob.mime_type,
            Self::Url(file) => &file.mime_type,
        }
    }
}

/// Returns the media type and the base64 data of a `data:` URL. Returns `None` for other URLs, and
/// for `data:` URLs without base64.
fn parse_data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?;
    let media_type = media_type.split(';').next().unwrap_or_default();
    Some((media_type, data))
}

/// Returns the media type to send, in lower case and without parameters. A text type that the API
/// refuses ("Unsupported MIME type: application/json") becomes `text/plain`, and a synonym such as
/// `image/jpg` becomes the standard name.
fn accepted_media_type(media_type: &str) -> Cow<'_, str> {
    let essence = media_type_essence(media_type);
    let lower = essence.to_ascii_lowercase();
    let is_text = match lower.as_str() {
        "application/json"
        | "application/xml"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/javascript"
        | "application/x-javascript"
        | "application/typescript"
        | "application/sql"
        | "application/x-sh"
        | "application/x-ndjson"
        | "application/jsonl" => true,
        other => {
            other.ends_with("+json") || (other.ends_with("+xml") && !other.starts_with("image/"))
        }
    };
    match lower.as_str() {
        _ if is_text => Cow::Borrowed("text/plain"),
        "image/jpg" => Cow::Borrowed("image/jpeg"),
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Cow::Borrowed("audio/wav"),
        _ if lower == essence => Cow::Borrowed(essence),
        _ => Cow::Owned(lower),
    }
}
