//! Lines such as nearly all are, read without copying anything.

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_providers_common::plain::{Nothing, Object, Words};

/// A line in the middle of an answer in which nothing is odd.
///
/// It forgives nothing, and ignores what a [`Chunk`](super::wire::Chunk) ignores. Where reading it succeeds, reading a chunk comes to
/// the same and costs more; all else must be read as a chunk.
#[derive(Debug, Deserialize)]
pub(crate) struct PlainLine<'a> {
    /// The model that answers.
    #[serde(default, borrow)]
    pub(crate) model: Option<Words<'a>>,
    #[serde(borrow)]
    message: Object<PlainMessage<'a>>,
    #[serde(default)]
    done: bool,
    #[serde(default, rename = "prompt_eval_count")]
    _prompt_eval_count: Nothing,
    #[serde(default, rename = "eval_count")]
    _eval_count: Nothing,
    #[serde(default, rename = "error")]
    _error: Nothing,
}

/// What is new of the message.
#[derive(Debug, Deserialize)]
pub(crate) struct PlainMessage<'a> {
    /// Text.
    #[serde(default, borrow)]
    pub(crate) content: Option<Words<'a>>,
    /// Thinking.
    #[serde(default, borrow)]
    pub(crate) thinking: Option<Words<'a>>,
    /// Calls, each of them whole.
    #[serde(default, borrow)]
    tool_calls: Option<Vec<Object<PlainCall<'a>>>>,
}

/// A call.
#[derive(Debug, Deserialize)]
pub(crate) struct PlainCall<'a> {
    /// Its id.
    #[serde(default, borrow)]
    pub(crate) id: Option<Words<'a>>,
    #[serde(borrow)]
    function: Object<PlainFunction<'a>>,
}

#[derive(Debug, Deserialize)]
struct PlainFunction<'a> {
    #[serde(default, borrow)]
    name: Option<Words<'a>>,
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

impl<'a> PlainLine<'a> {
    /// The line, if `data` is one.
    pub(crate) fn read(data: &'a str) -> Option<Self> {
        // serde would read a list as the fields in order.
        if !data.starts_with('{') {
            return None;
        }
        let line: Self = serde_json::from_str(data).ok()?;
        (!line.done).then_some(line)
    }

    /// What is new of the message.
    pub(crate) fn message(&self) -> &PlainMessage<'a> {
        &self.message.0
    }
}

impl<'a> PlainMessage<'a> {
    /// The calls.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &PlainCall<'a>> {
        self.tool_calls.iter().flatten().map(|call| &call.0)
    }
}

impl PlainCall<'_> {
    /// The function's name; empty if it has none.
    pub(crate) fn name(&self) -> &str {
        self.function.0.name.as_deref().unwrap_or_default()
    }

    /// What it is given, as JSON text; empty for none.
    pub(crate) fn json(&self) -> String {
        let arguments = self.function.0.arguments.map(RawValue::get);
        match arguments {
            None => String::new(),
            // Servers that only speak like Ollama write JSON text.
            Some(text) if text.starts_with('"') => serde_json::from_str(text).unwrap_or_default(),
            Some(text) => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_more_is_not_read_by_it() {
        for more in [
            r#""done":true"#,
            r#""done":null"#,
            r#""error":"x""#,
            r#""eval_count":3"#,
            r#""prompt_eval_count":3"#,
            r#""message":["a"]"#,
        ] {
            let line = format!(r#"{{"message":{{"content":"a"}},{more}}}"#);
            assert!(PlainLine::read(&line).is_none(), "{line}");
        }
        for less in [r#"{"done":false}"#, "[]", r#"{"message":["a"]}"#, "{"] {
            assert!(PlainLine::read(less).is_none(), "{less}");
        }
        let line = r#"{"message":{"content":"a","images":[]},"created_at":"now","done":false}"#;
        assert!(PlainLine::read(line).is_some());
    }
}
