//! Text notes that replace media in tool results if the model does not accept the media.

use std::sync::Arc;

use switchboard_domain::{Media, MediaSource, Message, ModelCapabilities, Part, ToolContent};

/// Replaces images and audio in tool results by text notes if the model does not accept them. If it
/// is unknown whether the model accepts them, they are not replaced.
pub(crate) fn replace_unsupported_media(messages: &mut [Arc<Message>], model: &ModelCapabilities) {
    let note_of = |piece: &ToolContent| match piece {
        ToolContent::Image(media) if model.images == Some(false) => {
            Some(omitted_media_note("image", media, "does not accept images"))
        }
        ToolContent::Audio(media) if model.audio == Some(false) => {
            Some(omitted_media_note("audio", media, "does not accept audio"))
        }
        _ => None,
    };
    for message in messages {
        let has_unsupported = message
            .tool_results()
            .any(|result| result.content.iter().any(|piece| note_of(piece).is_some()));
        if !has_unsupported {
            continue;
        }
        for part in &mut Arc::make_mut(message).parts {
            if let Part::ToolResult(result) = part {
                let content = result.content.iter();
                let content = content.map(|piece| note_of(piece).unwrap_or_else(|| piece.clone()));
                result.content = content.collect();
            }
        }
    }
}

fn omitted_media_note(kind: &str, media: &Media, reason: &str) -> ToolContent {
    let place = match &media.source {
        MediaSource::Url(url) => format!(" at {url}"),
        _ => String::new(),
    };
    let media_type = &media.media_type;
    ToolContent::text(format!(
        "[{kind} {media_type}{place}, omitted: this model {reason}]"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchboard_domain::ToolResult;

    #[test]
    fn unsupported_media_become_notes() {
        let content = [
            ToolContent::text("a chart"),
            ToolContent::Image(Media::from_base64("image/png", "A".repeat(4_600))),
            ToolContent::Audio(Media::from_url("audio/wav", "https://example.com/a.wav")),
        ];
        let result = ToolResult {
            content: content.to_vec().into(),
            ..ToolResult::text("1", "t", "")
        };
        let for_model = |images, audio| {
            let mut messages = [Arc::new(Message::from_tool_results([result.clone()]))];
            let model = ModelCapabilities {
                images,
                audio,
                ..ModelCapabilities::default()
            };
            replace_unsupported_media(&mut messages, &model);
            let result = messages[0].tool_results().next().unwrap();
            result.content.to_vec()
        };
        let texts: Vec<_> = for_model(Some(false), Some(false))
            .iter()
            .map(ToolContent::as_text)
            .collect();
        assert_eq!(
            texts,
            [
                "a chart",
                "[image image/png, omitted: this model does not accept images]",
                "[audio audio/wav at https://example.com/a.wav, omitted: this model does not \
                 accept audio]",
            ]
        );
        assert_eq!(for_model(None, Some(true)), content);
    }
}
