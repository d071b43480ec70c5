//! Notes in place of media that a model does not accept.

use std::sync::Arc;

use switchboard_domain::{Media, MediaSource, Message, ModelCapabilities, Part, ToolContent};

/// Replaces media in tool results that the model does not accept by notes.
pub(crate) fn replace_unsupported_media(messages: &mut [Arc<Message>], model: &ModelCapabilities) {
    let is_unsupported = |content: &ToolContent| match content {
        ToolContent::Image(_) => model.images == Some(false),
        ToolContent::Audio(_) => model.audio == Some(false),
        _ => false,
    };
    for message in messages {
        let has_unsupported = message
            .results()
            .any(|result| result.content.iter().any(is_unsupported));
        if has_unsupported {
            for part in &mut Arc::make_mut(message).parts {
                if let Part::ToolResult(result) = part {
                    result.content = for_model(&result.content, model);
                }
            }
        }
    }
}

/// Returns the content for a model. Images and audio that it does not accept become notes. Media
/// with an unknown capability stay.
pub fn for_model(content: &[ToolContent], model: &ModelCapabilities) -> Arc<[ToolContent]> {
    content
        .iter()
        .map(|piece| match piece {
            ToolContent::Image(media) if model.images == Some(false) => {
                note("image", media, "does not accept images")
            }
            ToolContent::Audio(media) if model.audio == Some(false) => {
                note("audio", media, "does not accept audio")
            }
            _ => piece.clone(),
        })
        .collect()
}

fn note(kind: &str, media: &Media, reason: &str) -> ToolContent {
    let media_type = &media.media_type;
    let size = match &media.source {
        MediaSource::Base64(data) => format!(", {}", format_bytes(data.len() / 4 * 3)),
        MediaSource::Url(url) => format!(" at {url}"),
        _ => String::new(),
    };
    ToolContent::text(format!(
        "[{kind} {media_type}{size}, omitted: this model {reason}]"
    ))
}

/// Formats a size, such as `512 bytes`, `3.4 KB` or `12 MB`.
fn format_bytes(bytes: usize) -> String {
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
    fn unsupported_media_become_notes() {
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
                "[image image/png, 3.4 KB, omitted: this model does not accept images]",
                "[audio audio/wav at https://example.com/a.wav, omitted: this model does not accept audio]",
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
        assert_eq!(format_bytes(999), "999 bytes");
        assert_eq!(format_bytes(9_990), "9.9 KB");
        assert_eq!(format_bytes(34_567), "34 KB");
        assert_eq!(format_bytes(1_250_000), "1.2 MB");
    }
}
