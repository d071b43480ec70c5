//! Server-sent events as bytes.

use std::io::Write as _;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

/// A buffer of server-sent events. Each value is serialised once, into the bytes that are sent.
#[derive(Debug, Default)]
pub(crate) struct SseFrames {
    buffer: Vec<u8>,
}

impl SseFrames {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Appends a frame without a name.
    pub(crate) fn data(&mut self, value: &impl Serialize) {
        self.frame(None, value);
    }

    /// Appends a frame with a name.
    pub(crate) fn named(&mut self, name: &str, value: &impl Serialize) {
        self.frame(Some(name), value);
    }

    /// Appends a frame of text without line breaks.
    pub(crate) fn text(&mut self, text: &str) {
        self.buffer.extend_from_slice(b"data: ");
        self.buffer.extend_from_slice(text.as_bytes());
        self.buffer.extend_from_slice(b"\n\n");
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns the buffered bytes and empties the buffer.
    pub(crate) fn take(&mut self) -> Bytes {
        Bytes::from(std::mem::take(&mut self.buffer))
    }

    fn frame(&mut self, name: Option<&str>, value: &impl Serialize) {
        let start = self.buffer.len();
        if let Some(name) = name {
            // Writing to memory does not fail.
            let _ = writeln!(self.buffer, "event: {name}");
        }
        self.buffer.extend_from_slice(b"data: ");
        // Compact JSON contains no line break, because strings escape it.
        match serde_json::to_writer(&mut self.buffer, value) {
            Ok(()) => self.buffer.extend_from_slice(b"\n\n"),
            // Fails only for a map with keys that are not strings, and no value has one.
            Err(_) => self.buffer.truncate(start),
        }
    }
}

/// Removes the fields without a value from a JSON object.
pub(crate) fn without_nulls(mut object: Value) -> Value {
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
        let mut frames = SseFrames::new();
        frames.data(&json!({"text": "a\n\nb\r\ndata: c"}));
        frames.named("ping", &json!({}));
        frames.text("[DONE]");
        let text = String::from_utf8(frames.take().to_vec()).unwrap();
        assert_eq!(
            text,
            "data: {\"text\":\"a\\n\\nb\\r\\ndata: c\"}\n\n\
             event: ping\ndata: {}\n\ndata: [DONE]\n\n"
        );
        assert!(frames.is_empty());
    }
}
