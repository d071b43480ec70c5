//! Fast reading of frames that differ from the previous frame only in their text.

use serde_json::Value;
use switchboard_domain::ModelEvent;

/// Number of different frames in a row after which the comparison ends. Some servers write a new
/// number or time into each frame, so their frames never repeat.
const MAX_DIFFERENT: u8 = 16;

/// Reader of frames that differ from the last decoded frame only in their text.
///
/// Most frames of a streamed answer do, and comparing them is cheaper than parsing their JSON.
#[derive(Default)]
pub(super) struct RepeatedText {
    name: String,
    /// The frame before the JSON string with the text.
    before: String,
    /// The frame after this string.
    after: String,
    /// The event of the frame, without its text. `None` if the last frame was not only text.
    event: Option<ModelEvent>,
    /// Number of decoded frames since the last repeated one.
    different: u8,
}

impl RepeatedText {
    /// Returns the event of a frame that repeats the last decoded frame with another text.
    pub(super) fn read_frame(&mut self, name: &str, data: &str) -> Option<ModelEvent> {
        let event = self.event.as_ref()?;
        let literal = data.strip_prefix(self.before.as_str())?;
        let literal = literal.strip_suffix(self.after.as_str())?;
        // Only one whole JSON string is accepted, so the rest of the frame keeps its meaning.
        let text: String = serde_json::from_str(literal).ok()?;
        if text.is_empty() || name != self.name {
            return None;
        }
        self.different = 0;
        let mut event = event.clone();
        *event.delta_mut()?.1 = text;
        Some(event)
    }

    /// Stores a decoded frame for the comparison with the next frames, if its only event was text
    /// or reasoning.
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
        // Without escapes, a string that occurs once is the text, and not another one equal to it.
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
