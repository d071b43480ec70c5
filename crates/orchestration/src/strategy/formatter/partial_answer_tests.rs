use proptest::prelude::*;
use serde_json::json;

use super::*;

fn shown(pieces: &[&str]) -> String {
    let mut partial = PartialAnswerReader::new();
    pieces
        .iter()
        .map(|piece| partial.push_json(piece))
        .collect()
}

#[test]
fn text_is_emitted_as_it_arrives() {
    let mut partial = PartialAnswerReader::new();
    for (piece, new) in [
        (r#"{"thinking": "hm", "conversation": [{"type": "te"#, ""),
        (r#"xt", "content": " Hel"#, "Hel"),
        (r"lo\u00", "lo"),
        (r"e9 \ud83d", "é"),
        (r#"\ude00\n"}, {"content": "ne"#, " 😀"),
        // The content is buffered until the type of its item is known.
        (r#"xt", "type": "text"}"#, ""),
        ("]}", "\n\nnext"),
        (r#" {"conversation": ["b"]}"#, ""),
    ] {
        assert_eq!(partial.push_json(piece), new, "{piece}");
    }
}

#[test]
fn an_artifact_is_emitted_when_its_type_and_title_are_known() {
    let mut partial = PartialAnswerReader::new();
    for (piece, new) in [
        (
            r#"{"conversation":[{"type":"artifact","artifactType":"table","title":"T","content":"a"#,
            "**T**\n\n```\na",
        ),
        (r#" | b\n"}"#, " | b"),
        // The content of a code block is buffered until its language is known.
        (
            r#",{"type":"artifact","artifactType":"code","title":"T","content":"  x"#,
            "\n```",
        ),
        (r#"","language":"c""#, ""),
        ("}]}", "\n\n**T**\n\n```c\n  x\n```"),
    ] {
        assert_eq!(partial.push_json(piece), new, "{piece}");
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
    let mut partial = PartialAnswerReader::new();
    partial.push_json(r#"{"conversation": [{"type": "text", "content": "Hel"#);
    assert_eq!(partial.unemitted_text("Hello"), Some("lo"));
    assert_eq!(partial.unemitted_text("Another"), None);
    assert_eq!(
        PartialAnswerReader::new_without_output().push_json("{\"sum\": 3}"),
        ""
    );
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
    let artifact =
        (kinds, "[a-z]{1,5}", language, content).prop_map(|(kind, title, language, content)| {
            let mut fields = vec![
                ("type", json!("artifact")),
                ("artifactType", json!(kind)),
                ("title", json!(title)),
                ("content", json!(content)),
            ];
            fields.extend(language.map(|language| ("language", json!(language))));
            fields
        });
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
    /// The emitted text equals the answer, however the JSON is divided and its keys are ordered.
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
        let mut reading = ParsedAnswer::default();
        reading.add_answer_items(written);
        prop_assert_eq!(shown(&pieces), render::render_markdown(&reading.items));
    }
}
