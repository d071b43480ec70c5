//! Mapping of parts.

use std::borrow::Cow;

use serde_json::Value;
use switchboard_domain::{
    Document, Media, MediaSource, ModelCapabilities, ModelId, Opaque, Part, ProviderState,
    Reasoning, Text, ToolUse, Warning, WarningKind,
};

use crate::capabilities::Series;
use crate::generate::{
    tools::mapping::ToolMapping,
    wire::{self, Args, Blob, Data, FileData, FunctionCall, Said},
};

/// Key of a part's signature in its provider state.
pub(crate) const SIGNATURE: &str = "thoughtSignature";
/// Key of the API's call id in a part's provider state.
pub(crate) const ID: &str = "id";
/// Key of an opaque part's data in its provider state.
pub(crate) const PIECE: &str = "part";

/// The kind of the opaque part with the sources of an answer. In the API, it is a field of the
/// candidate.
const GROUNDING: &str = "groundingMetadata";
/// The kind of the opaque part with the web pages that the model read. In the API, it is a field of
/// the candidate.
const PAGES: &str = "urlContextMetadata";
/// The kinds of opaque parts that are fields of the candidate in the API.
pub(crate) const BESIDE_CONTENT: [&str; 2] = [GROUNDING, PAGES];

/// A mapper of message parts. It collects warnings about parts that the API does not support.
pub(crate) struct Mapper<'m> {
    pub(crate) model: &'m ModelId,
    pub(crate) series: Option<Series>,
    pub(crate) capabilities: &'m ModelCapabilities,
    pub(crate) names: &'m ToolMapping,
    pub(crate) replay_thoughts: bool,
    pub(crate) warnings: &'m mut Vec<Warning>,
    pub(crate) reasoning_dropped: usize,
    /// Number of texts and tool calls that are sent without the state that another model created.
    pub(crate) states_dropped: usize,
}

impl Mapper<'_> {
    /// Maps a part of a system message. Only text parts are supported.
    pub(crate) fn instruction<'a>(&mut self, part: &'a Part) -> Option<wire::Part<'a>> {
        match part {
            Part::Text(text) => said(&text.text),
            other => self.warn_dropped(other, "instructions are text"),
        }
    }

    /// Maps a part of a user message.
    pub(crate) fn user<'a>(&mut self, part: &'a Part, out: &mut Vec<wire::Part<'a>>) {
        match part {
            Part::Text(text) => out.extend(said(&text.text)),
            Part::Image(media) => out.push(self.map_image(media)),
            Part::Audio(media) => out.push(self.map_audio(media)),
            Part::Document(document) => self.map_document(document, out),
            Part::Opaque(opaque) => out.extend(self.foreign(opaque)),
            other => out.extend(self.warn_dropped(other, "a user message cannot hold it")),
        }
    }

    /// Maps a part of a model message.
    pub(crate) fn assistant<'a>(&mut self, part: &'a Part, out: &mut Vec<wire::Part<'a>>) {
        match part {
            Part::Text(text) => out.extend(self.map_answer(text)),
            Part::Reasoning(reasoning) => out.extend(self.map_reasoning(reasoning)),
            Part::ToolUse(tool_use) => out.push(self.call(tool_use)),
            Part::Opaque(opaque) => out.extend(self.opaque(opaque)),
            Part::Image(media) => out.push(self.map_image(media)),
            Part::Audio(media) => out.push(self.map_audio(media)),
            Part::Document(document) => self.map_document(document, out),
            other => {
                out.extend(self.warn_dropped(other, "the model's own messages cannot hold it"));
            }
        }
    }

    /// Returns the API's id of a tool call that this model made.
    pub(crate) fn wire_id<'a>(&self, tool_use: &'a ToolUse) -> Option<&'a str> {
        self.own(tool_use.provider_state.as_ref())?
            .get(ID)?
            .as_str()
    }

    fn map_answer<'a>(&mut self, text: &'a Text) -> Option<wire::Part<'a>> {
        let thought_signature = self.signature(text.provider_state.as_ref());
        if text.text.is_empty() && thought_signature.is_none() {
            return None;
        }
        Some(wire::Part::Said(Said {
            data: Data::Text(Cow::Borrowed(&text.text)),
            thought: false,
            thought_signature,
        }))
    }

    fn map_reasoning<'a>(&mut self, reasoning: &'a Reasoning) -> Option<wire::Part<'a>> {
        let own = self.own(reasoning.provider_state.as_ref());
        let Some(state) = own.filter(|_| self.replay_thoughts) else {
            self.reasoning_dropped += 1;
            return None;
        };
        let thought_signature = state.get(SIGNATURE).and_then(Value::as_str);
        if reasoning.text.is_empty() && thought_signature.is_none() {
            return None;
        }
        Some(wire::Part::Said(Said {
            data: Data::Text(Cow::Borrowed(&reasoning.text)),
            thought: true,
            thought_signature,
        }))
    }

    fn call<'a>(&mut self, tool_use: &'a ToolUse) -> wire::Part<'a> {
        let thought_signature = self.signature(tool_use.provider_state.as_ref());
        wire::Part::Said(Said {
            data: Data::FunctionCall(FunctionCall {
                id: self.wire_id(tool_use),
                name: self.names.to_wire(&tool_use.name),
                args: Args(&tool_use.input),
            }),
            thought: false,
            thought_signature,
        })
    }

    fn opaque<'a>(&mut self, opaque: &'a Opaque) -> Option<wire::Part<'a>> {
        let own = self.own(Some(&opaque.provider_state));
        let piece = own.and_then(|state| state.get(PIECE));
        match piece.and_then(Value::as_object).zip(piece) {
            Some((fields, _)) if fields.contains_key(SIGNATURE) && !self.replay_thoughts => {
                self.states_dropped += 1;
                let mut unsigned = fields.clone();
                unsigned.shift_remove(SIGNATURE);
                Some(wire::Part::Native(Cow::Owned(Value::Object(unsigned))))
            }
            Some((_, piece)) => Some(wire::Part::Native(Cow::Borrowed(piece))),
            // The API does not accept candidate fields in a request.
            None if own.is_some() && BESIDE_CONTENT.contains(&opaque.kind.as_str()) => None,
            None => self.foreign(opaque),
        }
    }

    /// Maps an opaque part that another provider created.
    fn foreign<'a>(&mut self, opaque: &'a Opaque) -> Option<wire::Part<'a>> {
        let words = opaque.text.as_deref().and_then(said);
        let (kind, what) = match words {
            Some(_) => (WarningKind::PartDowngraded, "was sent as its text"),
            None => (WarningKind::PartDropped, "was omitted"),
        };
        let message = format!("a `{}` that this model did not mint {what}", opaque.kind);
        self.warn(kind, message);
        words
    }

    fn signature<'a>(&mut self, state: Option<&'a ProviderState>) -> Option<&'a str> {
        let Some(own) = self.own(state) else {
            self.states_dropped += usize::from(state.is_some());
            return None;
        };
        let signature = own.get(SIGNATURE)?.as_str()?;
        self.states_dropped += usize::from(!self.replay_thoughts);
        Some(signature).filter(|_| self.replay_thoughts)
    }

    fn own<'a>(&self, state: Option<&'a ProviderState>) -> Option<&'a Value> {
        state?.for_model(self.model)
    }

    pub(crate) fn map_image<'a>(&mut self, media: &'a Media) -> wire::Part<'a> {
        if self.capabilities.images == Some(false) {
            return self.in_words("image", media, "the model sees no images");
        }
        self.medium("image", media)
    }

    pub(crate) fn map_audio<'a>(&mut self, media: &'a Media) -> wire::Part<'a> {
        if self.capabilities.audio == Some(false) {
            return self.in_words("audio", media, "the model hears no audio");
        }
        self.medium("audio", media)
    }

    fn map_document<'a>(&mut self, document: &'a Document, out: &mut Vec<wire::Part<'a>>) {
        let media = &document.media;
        if self.capabilities.documents == Some(false) {
            out.push(self.in_words("document", media, "the model reads no documents"));
            return;
        }
        // The API does not accept a document title, so it precedes the document as text.
        if let Some(title) = document.title.as_deref().filter(|it| !it.trim().is_empty()) {
            out.push(wire::Part::text(format!("[document: {title}]")));
        }
        out.push(self.medium("document", media));
    }

    fn medium<'a>(&mut self, what: &str, media: &'a Media) -> wire::Part<'a> {
        match Medium::of(media) {
            Some(Medium::Inline(blob)) => wire::Part::plain(Data::InlineData(blob)),
            Some(Medium::Elsewhere(file)) => wire::Part::plain(Data::FileData(file)),
            None => self.in_words(what, media, "this wire has no place for its source"),
        }
    }

    /// Replaces media that cannot be sent by a description, so that the model is informed of them.
    fn in_words(&mut self, what: &str, media: &Media, why: &str) -> wire::Part<'static> {
        let name = format!("[{what} {}]", media.media_type);
        let message = format!("{name} was sent as these words: {why}");
        self.warn(WarningKind::PartDowngraded, message);
        wire::Part::text(name)
    }

    fn warn_dropped<T>(&mut self, part: &Part, why: &str) -> Option<T> {
        let what = part.in_words();
        self.warn(WarningKind::PartDropped, format!("{what} omitted: {why}"));
        None
    }

    pub(crate) fn warn(&mut self, kind: WarningKind, message: String) {
        self.warnings.push(Warning::new(kind, message));
    }
}

/// Maps text. Returns `None` for empty text, which the API refuses without a signature.
fn said(text: &str) -> Option<wire::Part<'_>> {
    (!text.is_empty()).then(|| wire::Part::text(text))
}

/// Media in the form of the API: bytes or a URL.
pub(crate) enum Medium<'a> {
    Inline(Blob<'a>),
    Elsewhere(FileData<'a>),
}

impl<'a> Medium<'a> {
    pub(crate) fn of(media: &'a Media) -> Option<Self> {
        let media_type = media.media_type.as_str();
        match &media.source {
            MediaSource::Base64(data) => Some(Self::bytes(media_type, data)),
            MediaSource::Url(url) => Some(match data_url(url) {
                Some((media_type, data)) => Self::bytes(media_type, data),
                None => Self::Elsewhere(FileData {
                    mime_type: sent_type(media_type),
                    file_uri: url,
                }),
            }),
            _ => None,
        }
    }

    pub(crate) fn bytes(media_type: &'a str, data: &'a str) -> Self {
        Self::Inline(Blob {
            mime_type: sent_type(media_type),
            data,
        })
    }

    pub(crate) fn media_type(&self) -> &str {
        match self {
            Self::Inline(blob) => &blob.mime_type,
            Self::Elsewhere(file) => &file.mime_type,
        }
    }
}

/// Returns the media type and the base64 data of a `data:` URL.
fn data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?;
    let media_type = media_type.split(';').next().unwrap_or_default();
    Some((media_type, data))
}

/// Returns a media type that the API accepts. Text types that it refuses ("Unsupported MIME type:
/// application/json") become plain text.
fn sent_type(media_type: &str) -> Cow<'_, str> {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
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
