//! Fast reading of frames that differ from the previous frame only in their text.

use serde_json::Value;
use switchboard_domain::ModelEvent;

/// Maximum number of consecutive frames that differ in more than their text. After that, the
/// decoder converts every frame without a comparison. Some servers write a new number or time into
/// each frame, so their frames never repeat.
const MAX_DIFFERENT: u8 = 16;

/// Reader of frames that differ from the last decoded frame only in their text.
///
/// Most frames of a streamed answer differ only in their text, and comparing frames is cheaper than
/// parsing their JSON.
#[derive(Default)]
pub(super) struct TextDeltaFastPath {
    name: String,
    /// Part of the last decoded frame before the JSON string that contains the text.
    before: String,
    /// Part of the last decoded frame after the JSON string that contains the text.
    after: String,
    /// Event of the last decoded frame, with an empty text. `None` if the next frames cannot be
    /// compared with that frame, for example because it had other events.
    event: Option<ModelEvent>,
    /// Number of text and reasoning frames that the decoder had to convert since the last frame
    /// that was converted by comparison.
    different: u8,
}

impl TextDeltaFastPath {
    /// Returns the event of a frame that differs from the last decoded frame only in its text.
    /// Returns `None` for any other frame, which the decoder must convert.
    pub(super) fn read_frame(&mut self, name: &str, data: &str) -> Option<ModelEvent> {
        let event = self.event.as_ref()?;
        let literal = data.strip_prefix(self.before.as_str())?;
        let literal = literal.strip_suffix(self.after.as_str())?;
        // The differing part must be exactly one JSON string, so the rest of the frame keeps its
        // meaning.
        let text: String = serde_json::from_str(literal).ok()?;
        if text.is_empty() || name != self.name {
            return None;
        }
        self.different = 0;
        let mut event = event.clone();
        *event.delta_mut()?.1 = text;
        Some(event)
    }

    /// Stores a frame that the decoder has converted, for the comparison with the next frames.
    /// Frames are stored only if their only event is a text or reasoning delta.
    pub(super) fn set_decoded_frame(&mut self, name: &str, data: &str, events: &[ModelEvent]) {
        self.event = None;
        let [
            event @ (ModelEvent::TextDelta { text, .. } | ModelEvent::ReasoningDelta { text, .. }),
        ] = events
        else {
            return;
        };
        if self.different == MAX_DIFFERENT {
            return;
        }
        self.different += 1;
        let literal = Value::from(text.as_str()).to_string();
        let (Some(at), mut event) = (data.find(&literal), event.clone()) else {
            return;
        };
        let (before, after) = (&data[..at], &data[at + literal.len()..]);
        // The JSON string of the text must occur only once in the frame, and the rest of the frame
        // must not contain escapes. Otherwise another string of the frame could have the same
        // content as the text.
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
