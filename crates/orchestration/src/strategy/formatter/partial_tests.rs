use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::strategy::formatter::{items, render};

fn shown(pieces: &[&str]) -> String {
    let mut partial = PartialFormatter::new();
    let joined: String = pieces
        .iter()
        .flat_map(|piece| partial.push(piece))
        .map(|delta| delta.text)
        .collect();
    assert_eq!(joined, partial.shown());
    joined
}

fn rendered(written: Value) -> String {
    render(&items::read(written).items)
}

#[test]
fn text_is_emitted_by_character() {
    let mut partial = PartialFormatter::new();
    let mut push = |piece: &str| {
        let deltas = partial.push(piece);
        deltas
            .into_iter()
            .map(|delta| (delta.item, delta.text))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        push(r#"{"thinking": "hm", "conversation": [{"type": "te"#),
        []
    );
    assert_eq!(push(r#"xt", "content": " Hel"#), [(0, "Hel".into())]);
    assert_eq!(push(r"lo\u00"), [(0, "lo".into())]);
    assert_eq!(push(r"e9 \ud83d"), [(0, "é".into())]);
    assert_eq!(push(r#"\ude00\n"}, {"content": "ne"#), [(0, " 😀".into())]);
    // The content is stored until the type is known.
    assert_eq!(push(r#"xt", "type": "text"}"#), [(1, "\n\nnext".into())]);
    assert_eq!(push("]}"), []);
}

#[test]
fn an_artifact_is_emitted_when_its_type_and_title_are_known() {
    let mut partial = PartialFormatter::new();
    let mut push = |piece: &str| -> String {
        partial
            .push(piece)
            .into_iter()
            .map(|delta| delta.text)
            .collect()
    };
    assert_eq!(
        push(
            r#"{"conversation":[{"type":"artifact","artifactType":"table","title":"T","content":"a"#
        ),
        "**T**\n\n```\na"
    );
    assert_eq!(push(r#" | b\n"}"#), " | b\n```");
    // Code waits for its language.
    assert_eq!(
        push(r#",{"type":"artifact","artifactType":"code","title":"T","content":"  x"#),
        ""
    );
    assert_eq!(push(r#"","language":"c"#), "");
    assert_eq!(push(r#""}"#), "\n\n**T**\n\n```c\n  x\n```");
}

#[test]
fn malformed_answers_are_emitted_as_far_as_recognized() {
    let item = r#"{"type": "text", "content": "Hello"}"#;
    let encoded = json!({"conversation": format!("[{item}]")}).to_string();
    for written in [
        format!("```json\n{{\"conversation\": [{item}]}}\n```"),
        format!("[{item}]"),
        format!("{{\"conversation\": {item}}}"),
        r#"{"conversation": "Hello"}"#.to_owned(),
        r#"{"conversation": ["Hello"]}"#.to_owned(),
        encoded,
        "Hello".to_owned(),
        "  Hello \n".to_owned(),
        r#"{"conversation": [{"type": "text" "content": "Hello"},]}"#.to_owned(),
    ] {
        assert_eq!(shown(&[&written]), "Hello", "{written}");
    }
    assert_eq!(shown(&["`code` first"]), "`code` first");
    assert_eq!(
        shown(&[r#"{"conversation": 3, "foo": {"content": "x"}}"#]),
        ""
    );
    let nested = r#"{"conversation":[{"type":"artifact","artifact":{"type":"svg","title":"T","content":"<svg/>"}}]}"#;
    assert_eq!(shown(&[nested]), "**T**\n\n```svg\n<svg/>\n```");
}

#[test]
fn text_after_the_answer_is_not_emitted() {
    assert_eq!(
        shown(&[r#"{"conversation": ["a"]} {"conversation": ["b"]}"#]),
        "a"
    );
    assert_eq!(shown(&[&"[".repeat(10_000)]), "");
}

#[test]
fn the_rest_of_the_answer_is_returned() {
    let mut partial = PartialFormatter::new();
    partial.push(r#"{"conversation": [{"type": "text", "content": "Hel"#);
    assert_eq!(partial.rest("Hello"), Some("lo"));
    assert_eq!(partial.rest("Another"), None);
    assert_eq!(PartialFormatter::silent().push("{\"sum\": 3}"), []);
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
    let artifact = (kinds, "[a-z]{1,5}", prop::option::of("[a-z]{1,5}"), content).prop_map(
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
        let items: Vec<Value> = items
            .into_iter()
            .map(|fields| {
                fields
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            })
            .collect();
        json!({"thinking": "t", "conversation": items})
    })
}

/// Splits a text at these positions.
fn cut(text: &str, places: &[usize]) -> Vec<String> {
    let mut cuts: Vec<usize> = places
        .iter()
        .map(|place| place % (text.len() + 1))
        .filter(|&place| text.is_char_boundary(place))
        .collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|pair| text[pair[0]..pair[1]].to_owned())
        .collect()
}

proptest! {
    /// The emitted text is the answer, for any pieces and any order of keys.
    #[test]
    fn the_emitted_text_is_the_answer(
        written in answer(),
        pretty in any::<bool>(),
        escaped in any::<bool>(),
        places in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let expected = rendered(written.clone());
        let mut text = if pretty {
            serde_json::to_string_pretty(&written).unwrap()
        } else {
            written.to_string()
        };
        if escaped {
            text = text
                .chars()
                .flat_map(|c| {
                    let mut units = [0; 2];
                    let units = c.encode_utf16(&mut units).to_vec();
                    units.into_iter().map(move |unit| {
                        if c.is_ascii() { c.to_string() } else { format!("\\u{unit:04x}") }
                    })
                })
                .collect();
        }
        let pieces = cut(&text, &places);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        prop_assert_eq!(shown(&pieces), expected);
    }

    /// The emitted text does not depend on the pieces, for any input.
    #[test]
    fn any_split_emits_the_same_text(
        text in "\\PC{0,60}|[\\[\\]{}\",:\\\\uud83e0 \\n`tcx]{0,80}",
        prefix in prop::sample::select(vec!["", "{\"conversation\": [{\"type\": \"text\", \"content\": \"", "{\"conversation\": \""]),
        places in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let text = format!("{prefix}{text}");
        let pieces = cut(&text, &places);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        prop_assert_eq!(shown(&pieces), shown(&[&text]));
    }
}
