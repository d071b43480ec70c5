//! Parts → blocks.

use std::borrow::Cow;

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, Document, JsonObject, Media, MediaSource, ModelCapabilities, ModelId, Opaque,
    Part, ProviderState, Reasoning, Role, Text, ToolContent, ToolResult, ToolUse, Warning,
    WarningKind,
};

use super::{
    ids::wire_id,
    tools::as_name,
    wire::{Block, Input, Source},
};
use crate::base64::decode_text;

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
    pub(crate) capabilities: &'m ModelCapabilities,
    pub(crate) replay_reasoning: bool,
    pub(crate) warnings: &'m mut Vec<Warning>,
    pub(crate) reasoning_dropped: usize,
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
        let citations = self
            .own(text.provider_state.as_ref())
            .and_then(|state| state.get(CITATIONS)?.as_array());
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
        let name = as_name(&tool_use.name);
        if matches!(name, Cow::Owned(_)) {
            let message = format!("a call of `{}` was sent as `{name}`", tool_use.name);
            self.warn(WarningKind::PartDowngraded, message);
        }
        Block::ToolUse {
            id: wire_id(&tool_use.id),
            name,
            input: Input(&tool_use.input),
            more: self
                .own(tool_use.provider_state.as_ref())
                .and_then(Value::as_object)
                .filter(|more| !more.is_empty() && only_unknown(more)),
        }
    }

    fn opaque<'a>(&mut self, opaque: &'a Opaque) -> Option<Block<'a>> {
        if let Some(block) = self.own(Some(&opaque.provider_state)) {
            if opaque.kind == CONTAINER {
                return None;
            }
            if block.get("type").is_some_and(Value::is_string) {
                return Some(Block::Native(block));
            }
        }
        let words = opaque.text.as_deref().and_then(said);
        let (kind, what) = match words {
            Some(_) => (WarningKind::PartDowngraded, "was sent as its text"),
            None => (WarningKind::PartDropped, "was left out"),
        };
        let message = format!("a `{}` that another model minted {what}", opaque.kind);
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
        for piece in &result.content {
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
            let name = &result.name;
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
                media_type: Some(media_type),
                blob: Some(data),
                ..
            } => {
                let source = self.bytes(media_type, data);
                if let Some(block) = source {
                    return Some(block);
                }
                let name = format!("[resource {uri} {media_type}]");
                let message =
                    format!("{name} was sent as these words: the wire takes no such bytes");
                self.warn(WarningKind::PartDowngraded, message);
                Some(Block::text(name))
            }
            other => said_owned(other.as_text()),
        }
    }

    /// The block for bytes of a resource, if the wire has one.
    fn bytes<'a>(&self, media_type: &'a str, data: &'a str) -> Option<Block<'a>> {
        if let Some(media_type) = image_type(media_type) {
            let sees = self.capabilities.images != Some(false);
            return sees.then_some(Block::Image {
                source: Source::Base64 { media_type, data },
            });
        }
        if essence(media_type).eq_ignore_ascii_case("application/pdf") {
            let reads = self.capabilities.documents != Some(false);
            return reads.then_some(Block::Document {
                source: Source::Base64 {
                    media_type: "application/pdf",
                    data,
                },
                title: None,
            });
        }
        if is_text(media_type) {
            return said_owned(decode_text(data)?);
        }
        None
    }

    fn image<'a>(&mut self, media: &'a Media) -> Block<'a> {
        if self.capabilities.images == Some(false) {
            return self.in_words("image", media, "the model sees no images");
        }
        let source = match &media.source {
            MediaSource::Base64(data) => {
                image_type(&media.media_type).map(|media_type| Source::Base64 { media_type, data })
            }
            MediaSource::Url(url) => match data_url(url) {
                Some((media_type, data)) => {
                    image_type(media_type).map(|media_type| Source::Base64 { media_type, data })
                }
                None => Some(Source::Url { url }),
            },
            _ => None,
        };
        match source {
            Some(source) => Block::Image { source },
            None => self.in_words(
                "image",
                media,
                "this wire takes JPEG, PNG, GIF and WebP images",
            ),
        }
    }

    fn document<'a>(&mut self, document: &'a Document) -> Block<'a> {
        let media = &document.media;
        let title = document.title.as_deref();
        let (media_type, data) = match &media.source {
            MediaSource::Base64(data) => (media.media_type.as_str(), data.as_str()),
            MediaSource::Url(url) => match data_url(url) {
                Some(parts) => parts,
                None => return self.document_at(url, document),
            },
            _ => return self.in_words("document", media, "its source is not known to this wire"),
        };
        let source = if essence(media_type).eq_ignore_ascii_case("application/pdf") {
            Some(Source::Base64 {
                media_type: "application/pdf",
                data,
            })
            .filter(|_| self.capabilities.documents != Some(false))
        } else if is_text(media_type) {
            decode_text(data)
                .filter(|text| !text.trim().is_empty())
                .map(|text| Source::Text {
                    media_type: "text/plain",
                    data: Cow::Owned(text),
                })
        } else {
            None
        };
        match source {
            Some(source) => Block::Document { source, title },
            None => self.in_words("document", media, "this wire takes PDF and text documents"),
        }
    }

    /// A document that the API would fetch: PDF only.
    fn document_at<'a>(&mut self, url: &'a str, document: &'a Document) -> Block<'a> {
        let is_pdf = essence(&document.media.media_type).eq_ignore_ascii_case("application/pdf");
        let title = document.title.as_deref();
        if is_pdf && self.capabilities.documents != Some(false) {
            return Block::Document {
                source: Source::Url { url },
                title,
            };
        }
        let words = format!("[{}: {url}]", title.unwrap_or("document"));
        let message = format!("{words} was sent as these words: this wire fetches PDF only");
        self.warn(WarningKind::PartDowngraded, message);
        Block::text(words)
    }

    /// A medium that cannot be sent is named, so that the model knows of it.
    fn in_words<'a>(&mut self, what: &str, media: &Media, why: &str) -> Block<'a> {
        let name = format!("[{what} {}]", media.media_type);
        let message = format!("{name} was sent as these words: {why}");
        self.warn(WarningKind::PartDowngraded, message);
        Block::text(name)
    }

    fn dropped<'a>(&mut self, part: &Part, why: &str) -> Option<Block<'a>> {
        let what = match part {
            Part::Text(_) => "text",
            Part::Image(_) => "an image",
            Part::Document(_) => "a document",
            Part::Audio(_) => "audio",
            Part::Reasoning(_) => "reasoning",
            Part::ToolUse(_) => "a tool use",
            Part::ToolResult(_) => "a tool result",
            Part::Opaque(opaque) => &opaque.kind,
            _ => "a part",
        };
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

fn said_owned<'a>(text: String) -> Option<Block<'a>> {
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

/// The type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// The types of images that the API takes.
fn image_type(media_type: &str) -> Option<&'static str> {
    match essence(media_type).to_ascii_lowercase().as_str() {
        "image/jpeg" | "image/jpg" => Some("image/jpeg"),
        "image/png" => Some("image/png"),
        "image/gif" => Some("image/gif"),
        "image/webp" => Some("image/webp"),
        _ => None,
    }
}

/// Whether bytes of this type are text.
fn is_text(media_type: &str) -> bool {
    let media_type = essence(media_type).to_ascii_lowercase();
    let suffix = media_type.rsplit(['+', '/']).next().unwrap_or_default();
    media_type.starts_with("text/")
        || matches!(
            suffix,
            "json" | "xml" | "yaml" | "x-yaml" | "toml" | "javascript" | "sql" | "x-ndjson"
        )
}

/// The type and the bytes of a `data:` URL in base64; the API fetches no such address.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
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
