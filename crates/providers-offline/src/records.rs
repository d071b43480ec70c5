//! Values out of tool results, by key.

use serde_json::{Map, Value};
use switchboard_domain::{ToolContent, ToolResult};

use crate::{
    schema::Param,
    text::{identifier_words, stem},
    thesaurus::same,
    validate::fits,
};

/// One object of a result that holds a value for a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    /// The value.
    pub(crate) value: Value,
    /// The object it stands in.
    pub(crate) fields: Map<String, Value>,
}

impl Record {
    /// Whether a field says this, as a whole or as words of it.
    pub(crate) fn says(&self, text: &str) -> bool {
        let wanted = identifier_words(text);
        !wanted.is_empty()
            && self.fields.values().any(|field| {
                let said = match field {
                    Value::String(said) => identifier_words(said),
                    Value::Number(number) => identifier_words(&number.to_string()),
                    _ => return false,
                };
                said.windows(wanted.len()).any(|run| run == wanted)
            })
    }

    /// What a person would call it.
    pub(crate) fn label(&self) -> String {
        let value = plain(&self.value);
        let key = ["name", "title", "subject", "label", "full_name", "email"];
        let name = key
            .iter()
            .find_map(|key| self.fields.get(*key).and_then(Value::as_str));
        match name {
            Some(name) if name != value => format!("{name} ({value})"),
            _ => value,
        }
    }
}

/// A value as text, strings without quotation marks.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A result as data: its structured form, or else its text if that is JSON.
pub(crate) fn data(result: &ToolResult) -> Option<Value> {
    if let Some(structured) = &result.structured {
        return Some(Value::clone(structured));
    }
    let texts: Vec<&str> = result
        .content
        .iter()
        .filter_map(|content| match content {
            ToolContent::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let parse = |text: &str| serde_json::from_str::<Value>(text.trim()).ok();
    let parsed = match texts[..] {
        [text] => parse(text),
        // One JSON object for each piece of text is a list of them.
        [_, _, ..] => texts
            .iter()
            .map(|text| parse(text))
            .collect::<Option<Vec<_>>>()
            .map(Value::Array),
        [] => None,
    };
    parsed.filter(|value| value.is_object() || value.is_array())
}

/// How well a key names a parameter: the same words, or `id` in something named like the parameter.
pub(crate) fn key_fits(key: &str, around: &[String], param: &Param) -> bool {
    let key_words = identifier_words(key);
    if key_words == param.words {
        return true;
    }
    // `id` of `customers` is `customer_id`; `customer_id` of anything is `customer`'s id.
    let (Some(own_last), Some(key_last)) = (param.words.last(), key_words.last()) else {
        return false;
    };
    let is_id = |word: &str| matches!(word, "id" | "key" | "uuid" | "number");
    let head: Vec<String> = param
        .words
        .iter()
        .filter(|word| !is_id(word))
        .map(|word| stem(word))
        .collect();
    let around_has = |wanted: &String| around.iter().any(|word| same(wanted, &stem(word)));
    is_id(own_last)
        && is_id(key_last)
        && key_words.len() == 1
        && !head.is_empty()
        && head.iter().all(around_has)
}

/// The records of a result that hold an allowed value for a parameter, in order, each value once.
/// `tool_words` are the words of the tool that gave it.
pub(crate) fn records(
    data: &Value,
    tool_words: &[String],
    param: &Param,
    root: &Value,
) -> Vec<Record> {
    let mut found = Vec::new();
    let mut around = tool_words.to_vec();
    collect(data, &mut around, param, root, &mut found, 0);
    found
}

fn collect(
    value: &Value,
    around: &mut Vec<String>,
    param: &Param,
    root: &Value,
    found: &mut Vec<Record>,
    depth: usize,
) {
    if depth > 8 || found.len() >= 200 {
        return;
    }
    match value {
        Value::Array(items) => {
            for item in items {
                collect(item, around, param, root, found, depth + 1);
            }
        }
        Value::Object(map) => {
            let mut keys: Vec<&String> = map
                .keys()
                .filter(|key| key_fits(key, around, param))
                .collect();
            keys.sort_by_key(|key| identifier_words(key) != param.words);
            let value = keys.into_iter().find_map(|key| {
                let value = map.get(key)?;
                fits(value, &param.schema, root).then(|| value.clone())
            });
            if let Some(value) = value
                && !found.iter().any(|record| record.value == value)
            {
                found.push(Record {
                    value,
                    fields: map.clone(),
                });
            }
            for (key, inner) in map {
                let length = around.len();
                around.extend(identifier_words(key));
                collect(inner, around, param, root, found, depth + 1);
                around.truncate(length);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::params;

    fn customer_id() -> Param {
        let schema = json!({"properties": {"customer_id": {"type": "integer"}}});
        params(&schema).remove(0)
    }

    #[test]
    fn an_id_is_found_under_its_own_name_and_as_the_id_of_its_kind() {
        let param = customer_id();
        for data in [
            json!({"customers": [{"customer_id": 3, "name": "Ada"}]}),
            json!({"customers": [{"id": 3, "name": "Ada"}]}),
            json!({"customer": {"id": 3, "name": "Ada"}}),
        ] {
            let found = records(&data, &[], &param, &Value::Null);
            assert_eq!(found.len(), 1, "{data}");
            assert!(found[0].says("Ada"));
            assert_eq!(found[0].label(), "Ada (3)");
        }
        assert!(records(&json!({"orders": [{"id": 3}]}), &[], &param, &Value::Null).is_empty());
        assert!(records(&json!({"customer_id": "x"}), &[], &param, &Value::Null).is_empty());
    }
}
