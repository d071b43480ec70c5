use proptest::prelude::*;
use serde_json::json;

use super::*;

fn text(text: &str) -> AnswerItem {
    AnswerItem::Text { text: text.into() }
}

fn artifact(artifact_type: &str, title: &str, content: &str, language: Option<&str>) -> AnswerItem {
    AnswerItem::Artifact {
        artifact_type: artifact_type.into(),
        title: title.into(),
        content: content.into(),
        language: language.map(str::to_owned),
    }
}

#[test]
fn a_valid_formatted_answer_needs_no_repair() {
    let reading = read(json!({
        "thinking": "It is one row.",
        "conversation": [
            {"type": "text", "content": "# One\n"},
            {"type": "artifact", "artifactType": "code", "title": "T", "language": "rust", "content": "x\n"},
            {"type": "artifact", "artifactType": "table", "title": "T", "language": null, "content": "a | b"},
        ],
    }));
    assert_eq!(
        reading,
        Reading {
            items: vec![
                text("# One"),
                artifact("code", "T", "x\n", Some("rust")),
                artifact("table", "T", "a | b", None),
            ],
            thinking: Some("It is one row.".into()),
            repairs: vec![],
        }
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of mistakes")]
fn every_known_mistake_is_repaired_and_reported() {
    let one = || vec![text("Hello")];
    let item = json!({"type": "text", "content": "Hello"});
    let whole = json!({"conversation": [item]});
    for (written, items, repair) in [
        // A string `conversation`: JSON in it, or plain text.
        (
            json!({"conversation": "Hello"}),
            one(),
            "`conversation` was a string",
        ),
        (
            json!({"conversation": json!([item]).to_string()}),
            one(),
            "JSON inside of a string was decoded",
        ),
        (
            json!({"conversation": format!("```json\n{}\n```", json!([item]))}),
            one(),
            "the code fence around its JSON was removed",
        ),
        (
            json!({"conversation": whole.to_string()}),
            one(),
            "JSON inside of a string was decoded",
        ),
        // A missing type.
        (
            json!({"conversation": [{"content": "Hello"}]}),
            one(),
            "the type of an item was derived from its other fields",
        ),
        (
            json!({"conversation": [{"artifactType": "svg", "title": "T", "content": "<svg/>"}]}),
            vec![artifact("svg", "T", "<svg/>", None)],
            "the type of an item was derived from its other fields",
        ),
        // One object instead of a list.
        (
            json!({"conversation": item}),
            one(),
            "`conversation` was a single object",
        ),
        (item.clone(), one(), "a single item had no enclosing list"),
        (
            json!([item]),
            one(),
            "the list of items had no enclosing object",
        ),
        (
            json!({"conversation": ["Hello"]}),
            one(),
            "an item was a plain string",
        ),
        (
            json!({"conversation": [[item]]}),
            one(),
            "a list was nested in the list",
        ),
        // Wrapped and encoded once more.
        (
            json!({"response_formatter": whole}),
            one(),
            "the answer was inside of `response_formatter`",
        ),
        (
            json!({"name": "response_formatter", "arguments": whole.to_string()}),
            one(),
            "the answer was inside of `arguments`",
        ),
        (
            json!({"response": "Hello"}),
            one(),
            "`response` was used instead of `conversation`",
        ),
        (
            json!({"conversation": [{"type": "text", "content": whole.to_string()}]}),
            one(),
            "JSON inside of a string was decoded",
        ),
        (
            json!({"conversation": [{"type": "text", "text": "Hello"}]}),
            one(),
            "`text` was used instead of `content`",
        ),
        (
            json!({"conversation": [{"type": "text", "content": ["Hello"]}]}),
            one(),
            "the content of an item was not a string",
        ),
        // Artifacts.
        (
            json!({"conversation": [{"type": "artifact", "artifactType": "code", "content": "x"}]}),
            vec![artifact("code", "Code", "x", None)],
            "an artifact had no title",
        ),
        (
            json!({"conversation": [{"type": "artifact", "title": "T", "content": "# x"}]}),
            vec![artifact("text/markdown", "T", "# x", None)],
            "an artifact had no type",
        ),
        (
            json!({"conversation": [{"type": "mermaid", "title": "T", "content": "graph TD"}]}),
            vec![artifact("mermaid", "T", "graph TD", None)],
            "`mermaid` was used as the type of an artifact",
        ),
        (
            json!({"conversation": [{"type": "artifact", "artifact":
                {"type": "code", "id": "1", "title": "T", "content": "x", "language": "c"}}]}),
            vec![artifact("code", "T", "x", Some("c"))],
            "an artifact was nested in the field `artifact`",
        ),
        (
            json!({"conversation": [{"type": "artifact", "artifactType": "json", "title": "T",
                "content": {"a": 1}}]}),
            vec![artifact("json", "T", "{\n  \"a\": 1\n}", None)],
            "the content of an item was not a string",
        ),
    ] {
        let reading = read(written.clone());
        assert_eq!(reading.items, items, "{written}");
        assert!(
            reading.repairs.iter().any(|it| it == repair),
            "{written}: {:?}",
            reading.repairs
        );
    }
}

#[test]
fn an_unknown_kind_of_artifact_is_an_artifact() {
    let reading = read(json!({"conversation": [
        {"type": "artifact", "artifactType": "x-sheet-music", "title": "T", "content": "c d e"},
    ]}));
    assert_eq!(
        reading.items,
        [artifact("x-sheet-music", "T", "c d e", None)]
    );
    assert!(reading.repairs.is_empty());
}

#[test]
fn an_artifact_takes_its_title_from_a_heading() {
    assert_eq!(title_of("text/markdown", "\n## Results ##\n\nx"), "Results");
    assert_eq!(title_of("application/vnd.mermaid", "graph TD"), "Mermaid");
    assert_eq!(title_of("", "#"), UNTITLED);
}

#[test]
fn values_without_text_become_no_item() {
    for empty in [
        json!({}),
        json!(null),
        json!({"conversation": []}),
        json!({"conversation": null}),
        json!({"conversation": [{"type": "text", "content": "  "}, null]}),
        json!({"conversation": [{"type": "artifact", "artifactType": "code", "title": "T"}]}),
        json!({"thinking": "I think."}),
        json!({"foo": "bar"}),
    ] {
        assert_eq!(read(empty.clone()).items, [], "{empty}");
    }
    assert_eq!(readable_text(&json!({"foo": "bar", "type": "x"})), "bar");
    assert_eq!(readable_text(&json!({"foo": 3})), "{\n  \"foo\": 3\n}");
    assert_eq!(readable_text(&json!({"foo": [null, ""]})), "");
}

#[test]
fn text_that_only_looks_like_json_stays_text() {
    for words in [
        "[1] is the source",
        "{braces} and more",
        "{\"a\": 1}",
        "see `[x]`",
    ] {
        let reading = read(json!({"conversation": words}));
        assert_eq!(reading.items, [text(words)]);
    }
    assert!(!looks_like_answer(
        &json!({"type": "object", "properties": {}})
    ));
    assert!(!looks_like_answer(&json!([1, 2])));
    assert!(looks_like_answer(
        &json!([{"type": "text", "content": "x"}])
    ));
}

/// Generates JSON that resembles an answer.
fn near() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "",
        " ",
        "text",
        "artifact",
        "code",
        "Hello",
        "[",
        "{\"conversation\": [\"x\"]}",
        "```json\n[1]\n```",
        "{\"type\":\"text\",\"content\":\"x\"}",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        words.prop_map(Value::from),
        "\\PC{0,10}".prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "conversation",
        "type",
        "content",
        "text",
        "artifact",
        "artifactType",
        "title",
        "language",
        "thinking",
        "arguments",
        "response_formatter",
        "response",
        "name",
        "foo",
    ]);
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner.clone()), 0..5).prop_map(|fields| {
                fields
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect::<Value>()
            }),
            inner.prop_map(|inner| Value::from(inner.to_string())),
        ]
    })
}

proptest! {
    /// Reading does not panic, items are not empty, and reading the result again changes nothing.
    #[test]
    fn whatever_is_written_can_be_read(written in near()) {
        let reading = read(written);
        for item in &reading.items {
            prop_assert!(!render::render(std::slice::from_ref(item)).is_empty(), "{:?}", item);
        }
        let again: Vec<Value> = reading
            .items
            .iter()
            .map(|item| match item {
                AnswerItem::Text { text } => serde_json::json!({"type": "text", "content": text}),
                AnswerItem::Artifact { artifact_type, title, content, language } => serde_json::json!({
                    "type": "artifact", "artifactType": artifact_type, "title": title,
                    "content": content, "language": language,
                }),
            })
            .collect();
        let second = read(serde_json::json!({"conversation": again}));
        prop_assert_eq!(second.items, reading.items);
    }

    /// A text where the conversation belongs is never lost.
    #[test]
    fn text_is_never_lost(words in "\\PC{0,40}") {
        let reading = read(serde_json::json!({"conversation": words}));
        prop_assert_eq!(reading.items.is_empty(), words.trim().is_empty());
    }
}
