//! Frames of which each is the one before but for a text.

use std::borrow::Cow;

/// The frame that was read last, without the one text of it that counts.
///
/// A model's answer comes in hundreds of frames that say the same about themselves (id, model,
/// place) and differ in a word. One that begins and ends as the last one did, and has one JSON
/// string between, says what the last one said with another text in that place: it need not be read
/// as JSON to know that.
///
/// ```
/// use switchboard_providers_common::Repeated;
///
/// let mut frames = Repeated::default();
/// let first = r#"{"id": "a", "delta": {"text": "Good "}, "end": null}"#;
/// frames.learn(first, &first[31..36]);
/// let text = |frame| frames.text(frame).map(String::from);
/// assert_eq!(text(r#"{"id": "a", "delta": {"text": "mor\tning"}, "end": null}"#).unwrap(), "mor\tning");
/// assert_eq!(text(r#"{"id": "b", "delta": {"text": "evening"}, "end": null}"#), None);
/// assert_eq!(text(r#"{"id": "a", "delta": {"text": "", "more": ""}, "end": null}"#), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Repeated {
    /// All up to the quotation mark that begins the text, with it; empty if nothing was learnt.
    before: String,
    /// All from the quotation mark that ends it.
    after: String,
}

impl Repeated {
    /// Takes `frame`, which was read and is whole JSON, for the form of those to come. `text` is
    /// the slice of it that a JSON string holds, as it stands there. If it is no such slice,
    /// nothing is learnt.
    pub fn learn(&mut self, frame: &str, text: &str) {
        let at = (text.as_ptr() as usize).wrapping_sub(frame.as_ptr() as usize);
        self.before.clear();
        self.after.clear();
        let Some((before, rest)) = frame.split_at_checked(at) else {
            return;
        };
        let Some((_, after)) = rest.split_at_checked(text.len()) else {
            return;
        };
        if before.ends_with('"') && after.starts_with('"') {
            self.before.push_str(before);
            self.after.push_str(after);
        }
    }

    /// The text of a frame that differs from what was learnt in its text only; `None` if this one
    /// must be read as a whole.
    pub fn text<'a>(&self, frame: &'a str) -> Option<Cow<'a, str>> {
        if self.before.is_empty() {
            return None;
        }
        // Not by `strip_prefix` and `strip_suffix` in turn: the two must not share the quotation
        // mark.
        let length = frame
            .len()
            .checked_sub(self.before.len() + self.after.len())?;
        let (before, rest) = frame.split_at_checked(self.before.len())?;
        let (text, after) = rest.split_at_checked(length)?;
        if before != self.before || after != self.after {
            return None;
        }
        let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..0x20);
        if text.as_bytes().iter().all(is_plain) {
            return Some(Cow::Borrowed(text));
        }
        // With its quotation marks it must be one JSON string, and no more.
        let begin = self.before.len() - 1;
        let literal = frame.get(begin..begin + length + 2)?;
        serde_json::from_str(literal).ok().map(Cow::Owned)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Texts that look like parts of frames.
    fn any_text() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "a",
            "\"",
            "\\",
            "\n",
            "\u{0}",
            "é",
            "🦀",
            "\",\"y\":\"",
            "{",
            "}",
            "",
        ]);
        prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        /// What it reads out of a frame is what a reader of JSON reads, whatever the frame is.
        #[test]
        fn it_reads_what_a_reader_of_json_reads(
            first in "[a-z é]{0,4}",
            texts in prop::collection::vec((any_text(), any_text(), 0..3_usize), 1..8),
        ) {
            let frame = |x: &str, y: &str| json!({"x": x, "y": y}).to_string();
            let learnt = frame(&first, "");
            let at = learnt.find(":\"").unwrap() + 2;
            let mut frames = Repeated::default();
            frames.learn(&learnt, &learnt[at..at + first.len()]);
            for (x, y, cut) in &texts {
                let whole = frame(x, if cut % 2 == 0 { "" } else { y });
                let given: String = whole.chars().skip(*cut).collect();
                for frame in [&whole, &given] {
                    let read: Option<Value> = serde_json::from_str(frame).ok();
                    let found = frames.text(frame);
                    if let Some(text) = &found {
                        let read = read.unwrap();
                        prop_assert_eq!(read["x"].as_str(), Some(text.as_ref()), "{}", frame);
                        prop_assert_eq!(&read["y"], "", "{}", frame);
                    }
                    // And nothing of the form is missed.
                    if frame == &whole && cut % 2 == 0 {
                        prop_assert!(found.is_some(), "{}", frame);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_text_of_the_frame_teaches_nothing() {
        let frame = r#"{"x": "text"}"#;
        let mut frames = Repeated::default();
        for text in [
            "text",
            &frame[8..10],
            &frame[1..4],
            "",
            &frame[frame.len()..],
        ] {
            frames.learn(frame, &frame[7..11]);
            assert!(frames.text(frame).is_some());
            frames.learn(frame, text);
            assert!(frames.text(frame).is_none(), "{text}");
        }
        // One that is shorter than what it would begin and end with.
        let frame = r#"{"x":""}"#;
        frames.learn(frame, &frame[6..6]);
        assert_eq!(frames.text(frame).as_deref(), Some(""));
        assert_eq!(frames.text(r#"{"x":"}"#), None);
    }
}
