//! The best form of images and documents on a wire.

use switchboard_domain::{Document, Media, MediaSource, WarningKind};

use super::{Item, Reader, Source};
use crate::{Column, draft};

impl Reader {
    fn downgraded(&mut self, words: String) -> Item {
        self.losses.push(WarningKind::PartDowngraded);
        Item::text(words)
    }

    pub(super) fn image(&mut self, media: &Media) -> Item {
        let media_type = &media.media_type;
        match (&media.source, self.column) {
            (MediaSource::Url(url), Column::Ollama) => {
                self.downgraded(format!("[image {media_type}: {url}]"))
            }
            (MediaSource::Url(url), column) => Item::Image {
                media_type: Some(media_type.clone()).filter(|_| column == Column::Gemini),
                source: Source::At(url.clone()),
            },
            (MediaSource::Base64(bytes), column) => Item::Image {
                media_type: Some(media_type.clone()).filter(|_| column != Column::Ollama),
                source: Source::Bytes(bytes.clone()),
            },
            (other, _) => unreachable!("no draft has {other:?}"),
        }
    }

    pub(super) fn document(&mut self, document: &Document) -> Item {
        let Document { media, title } = document;
        let media_type = Some(media.media_type.clone());
        let kind = media.media_type.as_str();
        let known = |bytes: &str| {
            let words = draft::WORDS.iter().find(|(known, _)| *known == bytes);
            words.map(|(_, words)| (*words).to_owned())
        };
        let (bytes, url) = match &media.source {
            MediaSource::Base64(bytes) => (Some(bytes.clone()), String::new()),
            MediaSource::Url(url) => (None, url.clone()),
            other => unreachable!("no draft has {other:?}"),
        };
        // On Chat Completions and the Responses API, every file needs a name.
        let named = title.clone().unwrap_or_else(|| match kind {
            "application/pdf" => "document.pdf".to_owned(),
            _ => "document.txt".to_owned(),
        });
        match (self.column, bytes) {
            (Column::Anthropic, Some(bytes)) => match known(&bytes) {
                Some(words) => Item::Document {
                    title: title.clone(),
                    media_type,
                    source: Source::Words(words),
                },
                None => Item::Document {
                    title: title.clone(),
                    media_type,
                    source: Source::Bytes(bytes),
                },
            },
            (Column::Anthropic | Column::Responses, None) => Item::Document {
                title: title.clone(),
                media_type: None,
                source: Source::At(url),
            },
            (Column::Gemini, bytes) => Item::Document {
                title: title.clone(),
                media_type,
                source: bytes.map_or(Source::At(url), Source::Bytes),
            },
            (Column::Chat | Column::Compatible | Column::Responses, Some(bytes)) => {
                Item::Document {
                    title: Some(named),
                    media_type,
                    source: Source::Bytes(bytes),
                }
            }
            (Column::Chat | Column::Compatible, None) => {
                let title = title.as_deref().unwrap_or("document");
                self.downgraded(format!("[{title}: {url}]"))
            }
            (Column::Ollama, bytes) => {
                let title = title.as_ref().map(|title| format!(" \"{title}\""));
                let title = title.unwrap_or_default();
                let words = match bytes.as_deref().map(known) {
                    Some(Some(words)) => format!("[document{title} {kind}]\n{words}"),
                    Some(None) => format!("[document{title} {kind}]"),
                    None => format!("[document{title} {kind}: {url}]"),
                };
                self.downgraded(words)
            }
        }
    }
}
