//! Streaming of a formatted answer.

use serde_json::Value;

use super::{
    items::{Reading, looks_like_answer},
    json,
    render::{self, takes_language},
};
use crate::AnswerItem;

/// Reads the formatter's JSON in pieces and returns the text of the answer.
///
/// The text of an item is emitted as it arrives if its keys are in the order of the
/// [schema](super::schema), and with the next item otherwise. Malformed answers may be emitted at
/// their end only: [`PartialFormatter::rest`] returns the part of an answer that was not emitted.
///
/// ```
/// use switchboard_orchestration::strategy::formatter::PartialFormatter;
///
/// let mut partial = PartialFormatter::new();
/// let pieces = [r#"{"conversation": [{"type": "text", "content": "Hel"#, r#"lo\n"}]}"#];
/// let text: String = pieces.iter().map(|piece| partial.push(piece)).collect();
/// assert_eq!(text, "Hello");
/// assert_eq!(partial.rest("Hello, world"), Some(", world"));
/// ```
#[derive(Debug, Default)]
pub struct PartialFormatter {
    is_silent: bool,
    input: String,
    /// Length of the input at which it is read again.
    next_length: usize,
    shown: String,
}

impl PartialFormatter {
    /// Creates a reader.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a reader that emits nothing, for answers with a custom schema.
    pub(super) fn silent() -> Self {
        Self {
            is_silent: true,
            ..Self::default()
        }
    }

    /// Reads the next piece and returns the new text.
    pub fn push(&mut self, json: &str) -> String {
        if self.is_silent {
            return String::new();
        }
        self.input.push_str(json);
        // Every reading starts at the beginning, so a long input is read after a minimum growth.
        if self.input.len() < self.next_length {
            return String::new();
        }
        self.next_length = self.input.len() + self.input.len() / 512;
        let text = known_text(&self.input);
        let new = text
            .strip_prefix(&self.shown)
            .unwrap_or_default()
            .to_owned();
        self.shown.push_str(&new);
        new
    }

    /// Returns the part of the complete answer that was not emitted; `None` if the answer does not
    /// start with the emitted text.
    pub fn rest<'a>(&self, answer: &'a str) -> Option<&'a str> {
        answer.strip_prefix(&self.shown)
    }
}

/// Returns the known part of the answer's text.
fn known_text(input: &str) -> String {
    let input = input.trim_start();
    let json = match input.strip_prefix("```") {
        Some(fence) => fence.split_once('\n').map_or("", |(_, inside)| inside),
        // Possibly the start of a fence.
        None if "```".starts_with(input) => "",
        None => input,
    };
    let json = json.trim_start();
    if !json.is_empty() && !json.starts_with(['{', '[']) {
        return input.trim_end().to_owned();
    }
    let (Some(mut answer), is_complete) = json::read_prefix(json) else {
        return String::new();
    };
    let mut open = None;
    if !is_complete {
        let list = match &mut answer {
            Value::Object(fields) => fields.get_mut("conversation").and_then(Value::as_array_mut),
            list => list.as_array_mut(),
        };
        let Some(list) = list else {
            return String::new();
        };
        open = list.pop();
    }
    let mut reading = Reading::default();
    if looks_like_answer(&answer) {
        reading.answer(answer);
    }
    let open = open.as_ref().and_then(open_item);
    render::render_partial(&reading.items, open.as_ref())
}

/// Returns an incomplete item if only a part of its content is missing.
fn open_item(item: &Value) -> Option<AnswerItem> {
    let fields = item.as_object()?;
    let text_of = |key: &str| fields.get(key)?.as_str().map(str::to_owned);
    if fields.keys().next_back()? != "content" {
        return None;
    }
    let content = text_of("content")?;
    match text_of("type")?.as_str() {
        "text" => Some(AnswerItem::Text { text: content }),
        "artifact" => {
            let artifact_type = text_of("artifactType")?;
            let language = text_of("language");
            let is_known = language.is_some() || !takes_language(&render::kind(&artifact_type));
            is_known.then_some(AnswerItem::Artifact {
                artifact_type,
                title: text_of("title")?,
                content,
                language,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn shown(pieces: &[&str]) -> String {
        let mut partial = PartialFormatter::new();
        pieces.iter().map(|piece| partial.push(piece)).collect()
    }

    #[test]
    fn text_is_emitted_as_it_arrives() {
        let mut partial = PartialFormatter::new();
        for (piece, new) in [
            (r#"{"thinking": "hm", "conversation": [{"type": "te"#, ""),
            (r#"xt", "content": " Hel"#, "Hel"),
            (r"lo\u00", "lo"),
            (r"e9 \ud83d", "é"),
            (r#"\ude00\n"}, {"content": "ne"#, " 😀"),
            // The content is stored until its item ends.
            (r#"xt", "type": "text"}"#, ""),
            ("]}", "\n\nnext"),
            (r#" {"conversation": ["b"]}"#, ""),
        ] {
            assert_eq!(partial.push(piece), new, "{piece}");
        }
    }

    #[test]
    fn an_artifact_is_emitted_when_its_type_and_title_are_known() {
        let mut partial = PartialFormatter::new();
        for (piece, new) in [
            (
                r#"{"conversation":[{"type":"artifact","artifactType":"table","title":"T","content":"a"#,
                "**T**\n\n```\na",
            ),
            (r#" | b\n"}"#, " | b"),
            // Code waits for its language.
            (
                r#",{"type":"artifact","artifactType":"code","title":"T","content":"  x"#,
                "\n```",
            ),
            (r#"","language":"c""#, ""),
            ("}]}", "\n\n**T**\n\n```c\n  x\n```"),
        ] {
            assert_eq!(partial.push(piece), new, "{piece}");
        }
    }

    #[test]
    fn malformed_answers_are_emitted() {
        let item = r#"{"type": "text", "content": "Hello"}"#;
        for written in [
            format!("```json\n{{\"conversation\": [{item}]}}\n```"),
            format!("[{item}]"),
            format!("{{\"conversation\": {item}}}"),
            r#"{"conversation": "Hello"}"#.to_owned(),
            r#"{"conversation": ["Hello"]}"#.to_owned(),
            "  Hello \n".to_owned(),
            r#"{"conversation": [{"type": "text" "content": "Hello"},]}"#.to_owned(),
        ] {
            assert_eq!(shown(&[&written]), "Hello", "{written}");
        }
        assert_eq!(shown(&["`code` ", "first"]), "`code` first");
        assert_eq!(shown(&[r#"{"foo": {"content": "x"}}"#]), "");
        assert_eq!(shown(&[&"[".repeat(10_000)]), "");
    }

    #[test]
    fn the_rest_of_the_answer_is_returned() {
        let mut partial = PartialFormatter::new();
        partial.push(r#"{"conversation": [{"type": "text", "content": "Hel"#);
        assert_eq!(partial.rest("Hello"), Some("lo"));
        assert_eq!(partial.rest("Another"), None);
        assert_eq!(PartialFormatter::silent().push("{\"sum\": 3}"), "");
    }

    /// Generates an answer with its keys in any order.
    fn answer() -> impl Strategy<Value = Value> {
        let content = prop_oneof![
            "[ \\n]{0,2}[a-z\"\\\\/é😀{}\\[\\]:,]{1,12}[ \\n]{0,3}[a-z`]{0,2}",
            Just("  indented\n\n\tcode\n".to_owned()),
            Just(" ".to_owned()),
        ];
        let text = content
            .clone()
            .prop_map(|content| vec![("type", json!("text")), ("content", json!(content))]);
        let kinds = prop::sample::select(vec!["code", "table", "text/markdown", "mermaid", "x"]);
        let language = prop::option::of("[a-z]{1,5}");
        let artifact = (kinds, "[a-z]{1,5}", language, content).prop_map(
            |(kind, title, language, content)| {
                let mut fields = vec![
                    ("type", json!("artifact")),
                    ("artifactType", json!(kind)),
                    ("title", json!(title)),
                    ("content", json!(content)),
                ];
                fields.extend(language.map(|language| ("language", json!(language))));
                fields
            },
        );
        let item = prop_oneof![text, artifact].prop_flat_map(|fields| Just(fields).prop_shuffle());
        prop::collection::vec(item, 0..4).prop_map(|items| {
            let items = items.into_iter().map(|fields| {
                let fields = fields
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value));
                Value::Object(fields.collect())
            });
            json!({"thinking": "t", "conversation": items.collect::<Vec<_>>()})
        })
    }

    proptest! {
        /// The emitted text is the answer, for any pieces and any order of keys.
        #[test]
        fn the_emitted_text_is_the_answer(
            written in answer(),
            places in prop::collection::vec(any::<usize>(), 0..12),
        ) {
            let text = written.to_string();
            let mut cuts: Vec<usize> = places.iter().map(|place| place % (text.len() + 1)).collect();
            cuts.retain(|&place| text.is_char_boundary(place));
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            let mut reading = Reading::default();
            reading.answer(written);
            prop_assert_eq!(shown(&pieces), render::render(&reading.items));
        }
    }
}
