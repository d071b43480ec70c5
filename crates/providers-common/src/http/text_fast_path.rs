//! Conversion of stream frames without JSON parsing, if they differ from the last parsed frame only
//! in the text of the answer.

use serde_json::Value;
use switchboard_domain::ModelEvent;

/// Maximum number of consecutive text frames that the fast path cannot convert. After this number,
/// the fast path is not tried again. On some servers it never succeeds, because each frame contains
/// a new number or time.
const MAX_UNCONVERTED_FRAMES: u8 = 16;

/// Converter of stream frames, such as SSE events, that differ from the last decoded frame only in
/// the text of the answer. Most frames of a stream are of this kind, such as `{"delta":"a"}` and
/// `{"delta":"b"}`. Comparing two frames is cheaper than parsing their JSON.
#[derive(Default)]
pub(super) struct TextDeltaFastPath {
    name: String,
    /// Beginning of the last decoded frame, such as `{"delta":`. The text of the answer follows it.
    before: String,
    /// End of the last decoded frame, after the text of the answer, such as `}`.
    after: String,
    /// Event of the last decoded frame, with an empty text. `None` if the next frames cannot be
    /// compared with that frame, for example because it had several events.
    event: Option<ModelEvent>,
    /// Number of consecutive text and reasoning frames that the fast path could not convert.
    unconverted: u8,
}

impl TextDeltaFastPath {
    /// Converts a frame that differs from the last decoded frame only in the text of the answer.
    /// Returns `None` for any other frame, which the caller must pass to the decoder.
    pub(super) fn read_frame(&mut self, name: &str, data: &str) -> Option<ModelEvent> {
        let event = self.event.as_ref()?;
        let literal = data.strip_prefix(self.before.as_str())?;
        let literal = literal.strip_suffix(self.after.as_str())?;
        // The text that differs must be one complete JSON string. Otherwise the rest of the frame
        // could have another meaning.
        let text: String = serde_json::from_str(literal).ok()?;
        if text.is_empty() || name != self.name {
            return None;
        }
        self.unconverted = 0;
        let mut event = event.clone();
        *event.delta_mut()?.1 = text;
        Some(event)
    }

    /// Stores a frame that the decoder has converted into `events`. The next frames are compared
    /// with it if its only event is a text or reasoning delta.
    pub(super) fn set_decoded_frame(&mut self, name: &str, data: &str, events: &[ModelEvent]) {
        self.event = None;
        let [
            event @ (ModelEvent::TextDelta { text, .. } | ModelEvent::ReasoningDelta { text, .. }),
        ] = events
        else {
            return;
        };
        if self.unconverted == MAX_UNCONVERTED_FRAMES {
            return;
        }
        self.unconverted += 1;
        let literal = Value::from(text.as_str()).to_string();
        let (Some(at), mut event) = (data.find(&literal), event.clone()) else {
            return;
        };
        let (before, after) = (&data[..at], &data[at + literal.len()..]);
        // The text must occur only once in the frame, and the rest of the frame must not contain
        // escapes. Otherwise another JSON string of the frame could have the same content as the
        // text.
        if data.rfind(&literal) == Some(at)
            && !before.contains('\\')
            && !after.contains('\\')
            && let Some((_, text)) = event.delta_mut()
        {
            text.clear();
            name.clone_into(&mut self.name);
            before.clone_into(&mut self.before);
            after.clone_into(&mut self.after);
            self.event = Some(event);
        }
    }
}
