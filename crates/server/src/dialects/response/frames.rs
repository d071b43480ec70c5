//! Server-sent events as bytes.

use std::io::Write as _;

use bytes::Bytes;
use serde::Serialize;

/// SseFrames of server-sent events, one behind the other. Each value is serialised once, into the bytes that leave.
#[derive(Debug, Default)]
pub(crate) struct SseFrames {
    buffer: Vec<u8>,
}

impl SseFrames {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A frame with a value and no name.
    pub(crate) fn data(&mut self, value: &impl Serialize) {
        self.frame(None, value);
    }

    /// A frame with a name and a value.
    pub(crate) fn named(&mut self, name: &str, value: &impl Serialize) {
        self.frame(Some(name), value);
    }

    /// A frame of plain words, which hold no line break.
    pub(crate) fn words(&mut self, words: &str) {
        self.buffer.extend_from_slice(b"data: ");
        self.buffer.extend_from_slice(words.as_bytes());
        self.buffer.extend_from_slice(b"\n\n");
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// What there is, which is then gone.
    pub(crate) fn take(&mut self) -> Bytes {
        Bytes::from(std::mem::take(&mut self.buffer))
    }

    fn frame(&mut self, name: Option<&str>, value: &impl Serialize) {
        let before = self.buffer.len();
        if let Some(name) = name {
            // Writing to memory does not fail.
            let _ = writeln!(self.buffer, "event: {name}");
        }
        self.buffer.extend_from_slice(b"data: ");
        // JSON without indentation has no line break of its own: they are escaped in its strings.
        match serde_json::to_writer(&mut self.buffer, value) {
            Ok(()) => self.buffer.extend_from_slice(b"\n\n"),
            // Only a map whose keys are no strings has no JSON, and there is none. Half a frame must not stay.
            Err(_) => self.buffer.truncate(before),
        }
    }
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
        frames.words("[DONE]");
        let text = String::from_utf8(frames.take().to_vec()).unwrap();
        assert_eq!(
            text,
            "data: {\"text\":\"a\\n\\nb\\r\\ndata: c\"}\n\nevent: ping\ndata: {}\n\ndata: [DONE]\n\n"
        );
        assert!(frames.is_empty());
    }
}
