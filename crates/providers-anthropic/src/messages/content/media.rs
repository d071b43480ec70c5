//! Converts images and documents to content blocks.

use std::borrow::Cow;

use switchboard_domain::{Document, Media, MediaSource};
use switchboard_providers_common::media::{decode_text, is_text_media_type, media_type_essence};

use super::{ContentMapper, text_block};
use crate::messages::wire::{Block, BlockSource};

impl ContentMapper<'_> {
    /// Converts the bytes of a resource to a content block. Returns `None` if the API or the model
    /// does not support the media type.
    pub(super) fn map_resource<'a>(&self, media_type: &'a str, data: &'a str) -> Option<Block<'a>> {
        if let Some(media_type) = supported_image_type(media_type) {
            let source = BlockSource::Base64 { media_type, data };
            let supported = self.capabilities.images != Some(false);
            return supported.then_some(Block::Image { source });
        }
        if is_pdf(media_type) {
            let (source, title) = (pdf_source(data), None);
            let supported = self.capabilities.documents != Some(false);
            return supported.then_some(Block::Document { source, title });
        }
        if is_text_media_type(media_type) {
            return text_block(decode_text(data)?);
        }
        None
    }

    pub(super) fn map_image<'a>(&mut self, media: &'a Media) -> Block<'a> {
        if self.capabilities.images == Some(false) {
            return self.media_as_text("image", media, "the model does not support images");
        }
        let source = match &media.source {
            MediaSource::Base64(data) => supported_image_type(&media.media_type)
                .map(|media_type| BlockSource::Base64 { media_type, data }),
            MediaSource::Url(url) => match parse_data_url(url) {
                Some((media_type, data)) => supported_image_type(media_type)
                    .map(|media_type| BlockSource::Base64 { media_type, data }),
                None => Some(BlockSource::Url { url }),
            },
            _ => None,
        };
        match source {
            Some(source) => Block::Image { source },
            None => self.media_as_text("image", media, "this API supports JPEG, PNG, GIF and WebP"),
        }
    }

    pub(super) fn map_document<'a>(&mut self, document: &'a Document) -> Block<'a> {
        let media = &document.media;
        let title = document.title.as_deref();
        let (media_type, data) = match &media.source {
            MediaSource::Base64(data) => (media.media_type.as_str(), data.as_str()),
            MediaSource::Url(url) => match parse_data_url(url) {
                Some(parts) => parts,
                None => return self.map_document_url(url, document),
            },
            _ => return self.media_as_text("document", media, "its source is not supported"),
        };
        let source = if is_pdf(media_type) {
            Some(pdf_source(data)).filter(|_| self.capabilities.documents != Some(false))
        } else if is_text_media_type(media_type) {
            decode_text(data)
                .filter(|text| !text.trim().is_empty())
                .map(|text| BlockSource::Text {
                    media_type: "text/plain",
                    data: Cow::Owned(text),
                })
        } else {
            None
        };
        match source {
            Some(source) => Block::Document { source, title },
            None => self.media_as_text(
                "document",
                media,
                "this API supports PDF and text documents",
            ),
        }
    }

    /// Converts a document at a URL. The API downloads only PDF documents. For another document,
    /// returns a text block with its title and URL.
    fn map_document_url<'a>(&mut self, url: &'a str, document: &'a Document) -> Block<'a> {
        let title = document.title.as_deref();
        if is_pdf(&document.media.media_type) && self.capabilities.documents != Some(false) {
            let source = BlockSource::Url { url };
            return Block::Document { source, title };
        }
        let name = format!("[{}: {url}]", title.unwrap_or("document"));
        let why = "this API downloads only PDF";
        Block::from_text(self.warnings.warn_sent_as_text(name, why))
    }
}

fn is_pdf(media_type: &str) -> bool {
    media_type_essence(media_type).eq_ignore_ascii_case("application/pdf")
}

fn pdf_source(data: &str) -> BlockSource<'_> {
    let media_type = "application/pdf";
    BlockSource::Base64 { media_type, data }
}

/// Returns the media type of an image as the API names it: `image/jpg` becomes `image/jpeg`.
/// Returns `None` if the API does not support the type.
fn supported_image_type(media_type: &str) -> Option<&'static str> {
    match media_type_essence(media_type).to_ascii_lowercase().as_str() {
        "image/jpeg" | "image/jpg" => Some("image/jpeg"),
        "image/png" => Some("image/png"),
        "image/gif" => Some("image/gif"),
        "image/webp" => Some("image/webp"),
        _ => None,
    }
}

/// Returns the media type and the base64 text of a `data:` URL. They are sent instead of the URL,
/// because the API refuses `data:` URLs. Returns `None` for other URLs.
fn parse_data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}
