//! Readable text for content blocks that only one provider has, such as a web search result.

use serde_json::{Map, Value};
use switchboard_domain::JsonObject;

/// Maximum length of the result of [`opaque_block_text`], in characters.
const MAX_CHARS: usize = 2_000;
/// Maximum length in bytes of a run of base64 characters that stays in the text. A longer run is
/// replaced by `[data]`.
const MAX_BASE64_RUN: usize = 200;

/// Returns the content block of a provider-executed tool as compact JSON, for people and for models
/// of other providers.
///
/// The text has at most 2,000 characters. It has no encrypted fields, no `type`, no ids and no
/// status, and `[data]` in place of encoded data. Returns `None` for a block without other fields.
pub fn opaque_block_text(block: &JsonObject) -> Option<String> {
    let text = Value::Object(readable_fields(block)?).to_string();
    if text.chars().nth(MAX_CHARS).is_none() {
        return Some(text);
    }
    let beginning = text.chars().take(MAX_CHARS - 1);
    Some(beginning.chain(['…']).collect())
}

fn readable_fields(object: &JsonObject) -> Option<JsonObject> {
    let is_hidden = |name: &str| {
        matches!(name, "type" | "id" | "status" | "signature" | "fingerprint")
            || name.ends_with("_id")
            || name.starts_with("encrypted_")
    };
    let fields = object.iter().filter(|(name, _)| !is_hidden(name));
    let media_types = ["media_type", "mime_type", "mimeType"].into_iter();
    let mut media_types = media_types.filter_map(|name| object.get(name)?.as_str());
    let has_media = media_types.any(|media_type| !media_type.starts_with("text/"));
    let fields: Map<_, _> = fields
        .filter_map(|(name, value)| {
            if has_media && name == "data" {
                return Some((name.clone(), Value::String("[data]".to_owned())));
            }
            Some((name.clone(), readable_value(value)?))
        })
        .collect();
    (!fields.is_empty()).then_some(fields)
}

fn readable_value(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) => (!text.is_empty()).then(|| Value::String(replace_base64_runs(text))),
        Value::Array(list) => {
            let list: Vec<Value> = list.iter().filter_map(readable_value).collect();
            (!list.is_empty()).then_some(Value::Array(list))
        }
        Value::Object(object) => readable_fields(object).map(Value::Object),
        other => Some(other.clone()),
    }
}

/// Replaces long runs of base64 characters by `[data]`. Words, paths and addresses stay, because
/// they contain other characters.
fn replace_base64_runs(text: &str) -> String {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    let runs = text.split_inclusive(|c| !is_base64(c));
    runs.map(|run| {
        let data = run.trim_end_matches(|c| !is_base64(c));
        match run.get(data.len()..) {
            Some(end) if data.len() > MAX_BASE64_RUN => format!("[data]{end}"),
            _ => run.to_owned(),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn text(block: &Value) -> Option<String> {
        opaque_block_text(block.as_object().unwrap())
    }

    #[test]
    fn a_call_and_its_result_are_compact_json() {
        let call = json!({"type": "server_tool_use", "id": "s_1", "name": "web_search",
                          "input": {"query": "weather"}});
        let expected = r#"{"name":"web_search","input":{"query":"weather"}}"#;
        assert_eq!(text(&call).as_deref(), Some(expected));
        let result = json!({"type": "web_search_tool_result", "tool_use_id": "s_1", "content": [
            {"type": "web_search_result", "title": "A", "url": "https://a.example",
             "encrypted_content": "EqgfCioIARgB", "page_age": null}]});
        let expected = r#"{"content":[{"title":"A","url":"https://a.example"}]}"#;
        assert_eq!(text(&result).as_deref(), Some(expected));
    }

    #[test]
    fn encrypted_and_encoded_data_is_not_shown() {
        let encrypted = json!({"type": "compaction", "id": "c", "encrypted_content": "gAAA"});
        assert_eq!(text(&encrypted), None);
        let base64 = "iVBORw0KGgo".repeat(40);
        let image = json!({"result": base64, "url": format!("data:image/png;base64,{base64}")});
        let expected = r#"{"result":"[data]","url":"data:image/png;base64,[data]"}"#;
        assert_eq!(text(&image).as_deref(), Some(expected));
        let pdf = json!({"media_type": "application/pdf", "data": "JVBERi0="});
        let expected = r#"{"media_type":"application/pdf","data":"[data]"}"#;
        assert_eq!(text(&pdf).as_deref(), Some(expected));
        let path = json!({"path": "a/b.c".repeat(100)});
        assert_eq!(text(&path), Some(path.to_string()));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let long = text(&json!({"output": "ä ".repeat(2_000)})).unwrap();
        assert_eq!(long.chars().count(), MAX_CHARS);
        assert!(long.ends_with('…'));
    }

    proptest! {
        #[test]
        fn any_text_is_bounded_and_not_data(value in "[ -~äö\n]{0,60}", repeat in 1..80_usize) {
            let shown = text(&json!({"output": [{"text": value.repeat(repeat)}]}));
            prop_assert!(shown.is_none_or(|it| it.chars().count() <= MAX_CHARS));
        }
    }
}
