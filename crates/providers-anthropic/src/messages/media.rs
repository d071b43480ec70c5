//! Images and documents → blocks.

use std::borrow::Cow;

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use switchboard_domain::{Document, Media, MediaSource, WarningKind};

use super::{
    content::{Mapper, said_owned},
    wire::{Block, Source},
};

impl Mapper<'_> {
    /// The block for bytes of a resource, if the wire has one.
    pub(super) fn bytes<'a>(&self, media_type: &'a str, data: &'a str) -> Option<Block<'a>> {
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

    pub(super) fn image<'a>(&mut self, media: &'a Media) -> Block<'a> {
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

    pub(super) fn document<'a>(&mut self, document: &'a Document) -> Block<'a> {
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

/// Texts come as bytes, while this wire wants the text of a document: base64 as MCP servers and people
/// write it, with or without padding.
const FORGIVING: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The text in base64, white space skipped; `None` if it is no base64 or no UTF-8.
fn decode_text(base64: &str) -> Option<String> {
    let mut symbols = Cow::Borrowed(base64.as_bytes());
    if symbols.iter().any(u8::is_ascii_whitespace) {
        symbols.to_mut().retain(|byte| !byte.is_ascii_whitespace());
    }
    let bytes = FORGIVING.decode(&symbols).ok()?;
    String::from_utf8(bytes).ok()
}

/// The type and the bytes of a `data:` URL in base64; the API fetches no such address.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

#[cfg(test)]
mod tests {
    use super::decode_text;

    #[test]
    fn text_comes_back() {
        for (base64, text) in [
            ("", ""),
            ("YQ==", "a"),
            ("YWI=", "ab"),
            ("YWJj", "abc"),
            ("w6TDtsO8Cg==", "äöü\n"),
            ("YWJ\nj", "abc"),
            ("YQ", "a"),
            ("Pz8+Pz8/", "??>???"),
        ] {
            assert_eq!(decode_text(base64).as_deref(), Some(text), "{base64}");
        }
    }

    #[test]
    fn what_is_no_base64_or_no_text_is_none() {
        for base64 in ["YQ==YQ==", "Y", "*", "data:text/plain,x", "/w==", "Y*Q="] {
            assert_eq!(decode_text(base64), None, "{base64}");
        }
    }
}
