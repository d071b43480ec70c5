//! Words in the place of media that a model cannot take.

use std::{collections::BTreeMap, sync::Arc};

use switchboard_domain::{Media, MediaSource, Message, ModelCapabilities, Part, ToolContent};

/// Messages of a conversation as a model can take them, each made once. The conversation itself keeps what
/// tools gave: the next model may well see images.
#[derive(Debug, Default)]
pub(crate) struct Sensed {
    /// Whether it takes images, and audio.
    takes: (bool, bool),
    /// By where the message is, with that message, so that no other one comes to be there.
    made: BTreeMap<usize, (Arc<Message>, Arc<Message>)>,
}

impl Sensed {
    /// Puts words in the place of what tools gave and this model certainly does not take.
    pub(crate) fn apply(&mut self, messages: &mut [Arc<Message>], model: &ModelCapabilities) {
        let takes = (model.images != Some(false), model.audio != Some(false));
        if takes == (true, true) {
            return;
        }
        if takes != self.takes {
            self.made.clear();
            self.takes = takes;
        }
        let is_lost = |content: &ToolContent| match content {
            ToolContent::Image(_) => !takes.0,
            ToolContent::Audio(_) => !takes.1,
            _ => false,
        };
        for message in messages {
            if !message
                .results()
                .any(|result| result.content.iter().any(is_lost))
            {
                continue;
            }
            let (_, made) = self
                .made
                .entry(Arc::as_ptr(message).addr())
                .or_insert_with(|| (Arc::clone(message), Arc::new(in_words_for(message, model))));
            *message = Arc::clone(made);
        }
    }
}

fn in_words_for(message: &Message, model: &ModelCapabilities) -> Message {
    let mut message = message.clone();
    for part in &mut message.parts {
        if let Part::ToolResult(result) = part {
            result.content = for_model(&result.content, model);
        }
    }
    message
}

/// The content as a model with these capabilities can take it: an image or audio that it certainly does
/// not take becomes a note that says what it was. What is not known to be missing is tried.
pub fn for_model(content: &[ToolContent], model: &ModelCapabilities) -> Arc<[ToolContent]> {
    content
        .iter()
        .map(|piece| match piece {
            ToolContent::Image(media) if model.images == Some(false) => {
                note("image", media, "does not see images")
            }
            ToolContent::Audio(media) if model.audio == Some(false) => {
                note("audio", media, "does not hear audio")
            }
            _ => piece.clone(),
        })
        .collect()
}

fn note(kind: &str, media: &Media, why: &str) -> ToolContent {
    let of = &media.media_type;
    let size = match &media.source {
        MediaSource::Base64(data) => format!(", {}", in_words(data.len() / 4 * 3)),
        MediaSource::Url(url) => format!(" at {url}"),
        _ => String::new(),
    };
    ToolContent::text(format!("[{kind} {of}{size}, left out: this model {why}]"))
}

/// A number of bytes for people: `512 bytes`, `3.4 KB`, `12 MB`.
fn in_words(bytes: usize) -> String {
    const UNITS: [(usize, &str); 2] = [(1_000_000, "MB"), (1_000, "KB")];
    for (unit, name) in UNITS {
        if bytes >= unit * 10 {
            return format!("{} {name}", bytes / unit);
        }
        if bytes >= unit {
            return format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit);
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_does_not_take_is_named() {
        let content = vec![
            ToolContent::text("a chart"),
            ToolContent::Image(Media::base64("image/png", "A".repeat(4_600))),
            ToolContent::Audio(Media::url("audio/wav", "https://example.com/a.wav")),
        ];
        let neither = ModelCapabilities {
            images: Some(false),
            audio: Some(false),
            ..ModelCapabilities::default()
        };
        let texts: Vec<_> = for_model(&content, &neither)
            .iter()
            .map(ToolContent::as_text)
            .collect();
        assert_eq!(
            texts,
            [
                "a chart",
                "[image image/png, 3.4 KB, left out: this model does not see images]",
                "[audio audio/wav at https://example.com/a.wav, left out: this model does not hear audio]",
            ]
        );
        for images in [None, Some(true)] {
            let model = ModelCapabilities {
                images,
                ..ModelCapabilities::default()
            };
            assert_eq!(*for_model(&content, &model), content);
        }
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(in_words(999), "999 bytes");
        assert_eq!(in_words(9_990), "9.9 KB");
        assert_eq!(in_words(34_567), "34 KB");
        assert_eq!(in_words(1_250_000), "1.2 MB");
    }
}
