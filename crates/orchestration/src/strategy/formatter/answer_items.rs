//! Conversion of a model's JSON to the items of an answer, with repairs of common mistakes.

use serde_json::{Map, Value};

use super::{json, render::UNTITLED};
use crate::AnswerItem;

/// Texts and artifacts that were read from a formatted answer, and descriptions of the repairs.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ParsedAnswer {
    pub(super) items: Vec<AnswerItem>,
    /// Notes of the model on how it reached the answer: the field `thinking` of its JSON.
    pub(super) thinking: Option<String>,
    pub(super) repairs: Vec<String>,
}

/// Returns whether a JSON value is probably a formatted answer: an object with `conversation`, an
/// item with a type and `content`, or a list of such items.
pub(super) fn looks_like_answer(value: &Value) -> bool {
    let is_item = |item: &Value| item.as_object().is_some_and(is_answer_item);
    match value {
        Value::Array(items) => !items.is_empty() && items.iter().all(is_item),
        value => value.get("conversation").is_some() || is_item(value),
    }
}

fn is_answer_item(fields: &Map<String, Value>) -> bool {
    let is_typed = fields.contains_key("artifactType") || fields.contains_key("type");
    is_typed && fields.contains_key("content")
}

impl ParsedAnswer {
    /// Adds the description of a repair, unless it is already listed.
    pub(super) fn add_repair(&mut self, repair: impl Into<String>) {
        let repair = repair.into();
        if !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
    }

    pub(super) fn add_text_item(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            self.items.push(AnswerItem::Text {
                content: text.to_owned(),
            });
        }
    }

    /// Adds the items of a formatted answer and repairs malformed ones. Values that cannot be an
    /// item are ignored.
    pub(super) fn add_answer_items(&mut self, value: Value) {
        match value {
            Value::Object(mut fields) => {
                if let Some(conversation) = fields.shift_remove("conversation") {
                    let thinking = fields
                        .get("thinking")
                        .and_then(Value::as_str)
                        .map(str::trim);
                    let thinking = thinking.filter(|text| !text.is_empty());
                    self.thinking = thinking.map(str::to_owned).or(self.thinking.take());
                    self.add_conversation_items(conversation);
                } else if is_answer_item(&fields) {
                    self.add_repair("a single item had no enclosing list");
                    self.add_answer_item(fields);
                }
            }
            list => {
                self.add_repair("the list of items had no enclosing object");
                self.add_conversation_items(list);
            }
        }
    }

    fn add_conversation_items(&mut self, value: Value) {
        match value {
            Value::Array(items) => {
                for item in items {
                    match item {
                        Value::Object(fields) => self.add_answer_item(fields),
                        Value::String(text) => {
                            self.add_repair("an item was a plain string");
                            self.add_text_item(&text);
                        }
                        _ => {}
                    }
                }
            }
            Value::Object(fields) => {
                self.add_repair("`conversation` was a single object");
                self.add_answer_item(fields);
            }
            Value::String(text) => {
                self.add_repair("`conversation` was a string");
                match json::find_json(&text, false).filter(|found| looks_like_answer(&found.value))
                {
                    Some(found) => {
                        self.add_repair("JSON inside a string was decoded");
                        self.add_answer_items(found.value);
                    }
                    None => self.add_text_item(&text),
                }
            }
            _ => {}
        }
    }

    fn add_answer_item(&mut self, mut fields: Map<String, Value>) {
        let mut text_of = |key: &str| match fields.shift_remove(key) {
            Some(Value::String(text)) if !text.trim().is_empty() => Some(text),
            _ => None,
        };
        let (kind, named) = (text_of("type"), text_of("artifactType"));
        let (title, language) = (text_of("title"), text_of("language"));
        let is_artifact = if let Some(kind) = &kind {
            kind != "text"
        } else {
            self.add_repair("the type of an item was derived from its other fields");
            named.is_some() || title.is_some() || language.is_some()
        };
        let content = match fields.shift_remove("content") {
            Some(Value::String(content)) => content,
            None | Some(Value::Null) => return,
            Some(other) => {
                self.add_repair("the content of an item was not a string");
                if is_artifact {
                    to_pretty_json(&other)
                } else {
                    extract_readable_text(&other)
                }
            }
        };
        if !is_artifact {
            return self.add_text_item(&content);
        }
        if content.trim().is_empty() {
            return;
        }
        let artifact_type = named
            .or(kind.filter(|kind| kind != "artifact"))
            .unwrap_or_else(|| {
                self.add_repair("an artifact had no type");
                let is_code = language.is_some();
                if is_code { "code" } else { "text/markdown" }.to_owned()
            });
        let title = title.unwrap_or_else(|| {
            self.add_repair("an artifact had no title");
            UNTITLED.to_owned()
        });
        self.items.push(AnswerItem::Artifact {
            artifact_type,
            title,
            content,
            language,
        });
    }
}

pub(super) fn to_pretty_json(value: &Value) -> String {
    // Serializing a JSON value cannot fail.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns the strings, numbers and booleans in a JSON value, separated by blank lines. The values
/// of `type`, `artifactType` and `language` are omitted.
pub(super) fn extract_readable_text(value: &Value) -> String {
    let mut texts = Vec::new();
    collect_texts(value, &mut texts);
    texts.join("\n\n")
}

fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.trim().is_empty() => texts.push(text.trim().to_owned()),
        Value::Bool(_) | Value::Number(_) => texts.push(value.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "type" | "artifactType" | "language"))
            .for_each(|(_, value)| collect_texts(value, texts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> ParsedAnswer {
        let mut reading = ParsedAnswer::default();
        reading.add_answer_items(value);
        reading
    }

    fn text(text: &str) -> AnswerItem {
        AnswerItem::Text {
            content: text.into(),
        }
    }

    fn artifact(kind: &str, title: &str, content: &str, language: Option<&str>) -> AnswerItem {
        AnswerItem::Artifact {
            artifact_type: kind.into(),
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
                {"type": "artifact", "artifactType": "x-music", "title": "T", "language": null, "content": "c d"},
            ],
        }));
        let items = vec![
            text("# One"),
            artifact("code", "T", "x\n", Some("rust")),
            artifact("x-music", "T", "c d", None),
        ];
        let expected = ParsedAnswer {
            items,
            thinking: Some("It is one row.".to_owned()),
            repairs: Vec::new(),
        };
        assert_eq!(reading, expected);
    }

    #[test]
    fn every_known_mistake_is_repaired_and_reported() {
        let item = json!({"type": "text", "content": "Hello"});
        let list = json!([item]);
        let whole = json!({"conversation": [item]});
        let hello = || text("Hello");
        for (written, expected, repair) in [
            (
                json!({"conversation": "Hello"}),
                hello(),
                "`conversation` was a string",
            ),
            (
                json!({"conversation": list.to_string()}),
                hello(),
                "JSON inside a string was decoded",
            ),
            (
                json!({"conversation": format!("```json\n{list}\n```")}),
                hello(),
                "JSON inside a string was decoded",
            ),
            (
                json!({"conversation": whole.to_string()}),
                hello(),
                "JSON inside a string was decoded",
            ),
            (
                json!({"conversation": [{"content": "Hello"}]}),
                hello(),
                "the type of an item was derived from its other fields",
            ),
            (
                json!({"conversation": [{"artifactType": "svg", "title": "T", "content": "<svg/>"}]}),
                artifact("svg", "T", "<svg/>", None),
                "the type of an item was derived from its other fields",
            ),
            (
                json!({"conversation": item}),
                hello(),
                "`conversation` was a single object",
            ),
            (item.clone(), hello(), "a single item had no enclosing list"),
            (
                list.clone(),
                hello(),
                "the list of items had no enclosing object",
            ),
            (
                json!({"conversation": ["Hello"]}),
                hello(),
                "an item was a plain string",
            ),
            (
                json!({"conversation": [{"type": "text", "content": ["Hello"]}]}),
                hello(),
                "the content of an item was not a string",
            ),
            (
                json!({"conversation": [{"type": "artifact", "artifactType": "code", "content": "x"}]}),
                artifact("code", "Untitled", "x", None),
                "an artifact had no title",
            ),
            (
                json!({"conversation": [{"type": "artifact", "title": "T", "content": "# x"}]}),
                artifact("text/markdown", "T", "# x", None),
                "an artifact had no type",
            ),
            (
                json!({"conversation": [{"type": "artifact", "artifactType": "json", "title": "T",
                    "content": {"a": 1}}]}),
                artifact("json", "T", "{\n  \"a\": 1\n}", None),
                "the content of an item was not a string",
            ),
        ] {
            let reading = read(written.clone());
            assert_eq!(reading.items, [expected], "{written}");
            let repairs = reading.repairs;
            assert!(
                repairs.iter().any(|it| it == repair),
                "{written}: {repairs:?}"
            );
        }
    }

    #[test]
    fn values_without_text_become_no_item() {
        for empty in [
            json!({}),
            json!({"conversation": []}),
            json!({"conversation": null}),
            json!({"conversation": [{"type": "text", "content": "  "}, null]}),
            json!({"conversation": [{"type": "artifact", "artifactType": "code", "title": "T"}]}),
            json!({"thinking": "I think."}),
            json!({"foo": "bar"}),
        ] {
            assert_eq!(read(empty.clone()).items, [], "{empty}");
        }
        assert_eq!(
            extract_readable_text(&json!({"foo": "bar", "type": "x", "n": 3})),
            "bar\n\n3"
        );
        assert_eq!(extract_readable_text(&json!({"foo": [null, ""]})), "");
    }

    #[test]
    fn text_that_only_looks_like_json_stays_text() {
        for words in [
            "[1] is the source",
            "{braces} and more",
            "{\"a\": 1}",
            "see `[x]`",
        ] {
            assert_eq!(read(json!({"conversation": words})).items, [text(words)]);
        }
        assert!(!looks_like_answer(
            &json!({"type": "object", "properties": {}})
        ));
        assert!(!looks_like_answer(&json!([1, 2])));
        assert!(looks_like_answer(
            &json!([{"type": "text", "content": "x"}])
        ));
    }
}
