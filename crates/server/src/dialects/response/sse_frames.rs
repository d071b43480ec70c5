//! Encodes server-sent events as bytes.

use std::io::Write as _;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

/// A buffer of server-sent events. Each JSON value is serialized only once, directly into the bytes
/// of the response.
#[derive(Debug, Default)]
pub(crate) struct SseFrames {
    buffer: Vec<u8>,
}

impl SseFrames {
    /// Appends a server-sent event without a name.
    pub(crate) fn push_unnamed_event(&mut self, value: &impl Serialize) {
        self.push_frame(None, value);
    }

    /// Appends a server-sent event with a name.
    pub(crate) fn push_named_event(&mut self, name: &str, value: &impl Serialize) {
        self.push_frame(Some(name), value);
    }

    /// Appends a server-sent event whose data is `text`. The text must not contain line breaks.
    pub(crate) fn push_text_event(&mut self, text: &str) {
        self.buffer.extend_from_slice(b"data: ");
        self.buffer.extend_from_slice(text.as_bytes());
        self.buffer.extend_from_slice(b"\n\n");
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns the buffered bytes and clears the buffer.
    pub(crate) fn take_bytes(&mut self) -> Bytes {
        Bytes::from(std::mem::take(&mut self.buffer))
    }

    fn push_frame(&mut self, name: Option<&str>, value: &impl Serialize) {
        let start = self.buffer.len();
        if let Some(name) = name {
            // Writing to a buffer in memory does not fail.
            let _ = writeln!(self.buffer, "event: {name}");
        }
        self.buffer.extend_from_slice(b"data: ");
        // Compact JSON has no line breaks, because strings escape them.
        match serde_json::to_writer(&mut self.buffer, value) {
            Ok(()) => self.buffer.extend_from_slice(b"\n\n"),
            // Serialization fails only for maps whose keys are not strings. No value here contains
            // such a map.
            Err(_) => self.buffer.truncate(start),
        }
    }
}

/// Removes fields with the value `null` from a JSON object.
pub(crate) fn remove_null_fields(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_break_in_a_value_does_not_end_its_frame() {
        let mut frames = SseFrames::default();
        frames.push_unnamed_event(&json!({"text": "a\n\nb\r\ndata: c"}));
        frames.push_named_event("ping", &json!({}));
        frames.push_text_event("[DONE]");
        let text = String::from_utf8(frames.take_bytes().to_vec()).unwrap();
        assert_eq!(
            text,
            "data: {\"text\":\"a\\n\\nb\\r\\ndata: c\"}\n\n\
             event: ping\ndata: {}\n\ndata: [DONE]\n\n"
        );
        assert!(frames.is_empty());
    }
}
