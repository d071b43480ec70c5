//! Lenient parsing of JSON that is in a code fence or prose, has superfluous commas, or is
//! truncated.

use serde_json::{Map, Value};
use switchboard_domain::MAX_JSON_DEPTH;

/// A JSON object or list that was found in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundJson {
    pub(super) value: Value,
    /// Description of the repair of the JSON text. `None` if the text was valid JSON.
    pub(super) repair: Option<&'static str>,
}

/// Finds a JSON object or list in a text.
///
/// Other JSON values, such as numbers, are ignored, because any text may start with one. A
/// truncated object or list is returned only if `cut_off` is set.
pub(super) fn find_json(text: &str, cut_off: bool) -> Option<FoundJson> {
    if let Some(value) = parse_valid_json(text) {
        return Some(FoundJson {
            value,
            repair: None,
        });
    }
    let is_value = |text: &&str| text.trim_start().starts_with(['{', '[']);
    let text = find_fenced_content(text).filter(is_value).unwrap_or(text);
    let (value, is_complete) = parse_json_prefix(&text[text.find(['{', '['])?..]);
    let value = value.filter(|value| match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    })?;
    (is_complete || cut_off).then_some(FoundJson {
        value,
        repair: Some(if is_complete {
            "its JSON was embedded in text or had errors"
        } else {
            "its JSON was truncated and was parsed as far as possible"
        }),
    })
}

fn parse_valid_json(text: &str) -> Option<Value> {
    serde_json::from_str::<Value>(text)
        .ok()
        .filter(|value| value.is_object() || value.is_array())
}

/// Returns the content of the first Markdown code fence, even if the fence is not closed.
fn find_fenced_content(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("```")?;
    let (_, inside) = after.split_once('\n')?;
    Some(
        inside
            .rsplit_once("```")
            .map_or(inside, |(inside, _)| inside),
    )
}

/// Parses the JSON value at the start of a text up to the first fault. Returns the value, which is
/// `None` if no value starts there, and whether the value is complete.
///
/// Incomplete strings are included, except for keys. Superfluous and missing commas, raw control
/// characters in strings and unknown escapes are accepted. Keys must be quoted, so that prose in
/// brackets is not an object.
pub(super) fn parse_json_prefix(text: &str) -> (Option<Value>, bool) {
    let mut reader = LenientParser {
        rest: text,
        depth: 0,
        is_complete: true,
    };
    let value = reader.parse_value();
    (value, reader.is_complete)
}

struct LenientParser<'a> {
    rest: &'a str,
    depth: usize,
    /// Whether every object, list and string so far was closed. `false` after a fault or if the
    /// text ended too early.
    is_complete: bool,
}

impl LenientParser<'_> {
    fn peek_char(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn skip_char(&mut self, c: char) {
        self.rest = &self.rest[c.len_utf8()..];
    }

    /// Parses a JSON value at the current position. Returns `None` if no value starts there.
    fn parse_value(&mut self) -> Option<Value> {
        match self.peek_char()? {
            '"' => self.parse_string().map(Value::String),
            c @ ('{' | '[') if self.depth < MAX_JSON_DEPTH => {
                self.skip_char(c);
                self.depth += 1;
                let value = if c == '{' {
                    self.parse_object()
                } else {
                    self.parse_array()
                };
                self.depth -= 1;
                Some(value)
            }
            _ => self.parse_scalar(),
        }
    }

    fn parse_object(&mut self) -> Value {
        let mut fields = Map::new();
        self.parse_items('}', |reader| {
            let key = reader.parse_string()?;
            reader.peek_char().filter(|c| *c == ':')?;
            reader.skip_char(':');
            fields.insert(key, reader.parse_value()?);
            Some(())
        });
        Value::Object(fields)
    }

    fn parse_array(&mut self) -> Value {
        let mut items = Vec::new();
        self.parse_items(']', |reader| {
            items.push(reader.parse_value()?);
            Some(())
        });
        Value::Array(items)
    }

    /// Parses items with `parse_item` until the closing character `end`, ignoring commas. Stops at
    /// the first item that cannot be parsed and marks the JSON as incomplete.
    fn parse_items(&mut self, end: char, mut parse_item: impl FnMut(&mut Self) -> Option<()>) {
        loop {
            match self.peek_char() {
                Some(c) if c == end => return self.skip_char(end),
                Some(',') => self.skip_char(','),
                _ if parse_item(self).is_none() => {
                    self.is_complete = false;
                    return;
                }
                _ => {}
            }
        }
    }

    /// Parses a JSON string, which may be truncated. An incomplete escape at the end of the text is
    /// omitted. Returns `None` if no string starts at the current position.
    fn parse_string(&mut self) -> Option<String> {
        let mut chars = self.rest.strip_prefix('"')?.chars();
        let mut units: Vec<u16> = Vec::new();
        loop {
            let c = match chars.next() {
                Some('"') => break,
                Some('\\') => match chars.next() {
                    Some('u') if chars.as_str().len() >= 4 => {
                        let code = chars.as_str().get(..4);
                        let unit = code.and_then(|code| u16::from_str_radix(code, 16).ok());
                        match unit {
                            Some(unit) => {
                                units.push(unit);
                                chars = chars.as_str()[4..].chars();
                                continue;
                            }
                            None => char::REPLACEMENT_CHARACTER,
                        }
                    }
                    Some('u') | None => {
                        chars = "".chars();
                        continue;
                    }
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('r') => '\r',
                    Some('b') => '\u{8}',
                    Some('f') => '\u{c}',
                    Some(other) => other,
                },
                Some(c) => c,
                None => {
                    self.is_complete = false;
                    // The text ends between two `\u` escapes of a surrogate pair, so the first half
                    // is removed.
                    units.pop_if(|unit| (0xD800..0xDC00).contains(unit));
                    break;
                }
            };
            units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
        }
        self.rest = chars.as_str();
        Some(String::from_utf16_lossy(&units))
    }

    fn parse_scalar(&mut self) -> Option<Value> {
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')))?;
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        serde_json::from_str(word).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn value(text: &str) -> Option<Value> {
        find_json(text, true).map(|found| found.value)
    }

    #[test]
    fn wrapped_and_invalid_json_is_found() {
        for (text, expected, repaired) in [
            (" {\"a\": 1} ", json!({"a": 1}), false),
            ("```json\n{\"a\": 1}\n```", json!({"a": 1}), true),
            ("Here it is:\n```\n[1]\n```\nDone.", json!([1]), true),
            ("Here it is: {\"a\": 1}. Done.", json!({"a": 1}), true),
            ("{\"a\": [1, 2,], }", json!({"a": [1, 2]}), true),
            (
                "{\"a\": \"x\ny\", \"b\": 1}",
                json!({"a": "x\ny", "b": 1}),
                true,
            ),
            (
                "{\"a\": \"\\q\\u00e9\\ud83d\\ude00\", }",
                json!({"a": "qé😀"}),
                true,
            ),
            ("{\"a\": \"\\ud83d\", }", json!({"a": "\u{fffd}"}), true),
            ("{\"a\": 1 \"b\": 2}", json!({"a": 1, "b": 2}), true),
        ] {
            let found =
                find_json(text, false).unwrap_or_else(|| panic!("nothing was found in {text}"));
            assert_eq!(found.value, expected, "{text}");
            assert_eq!(found.repair.is_some(), repaired, "{text}");
        }
    }

    #[test]
    fn truncated_json_is_read_to_its_end() {
        for (text, expected) in [
            ("{\"a\": [{\"b\": \"one tw", json!({"a": [{"b": "one tw"}]})),
            ("{\"a\": 1, \"b", json!({"a": 1})),
            ("{\"a\": 1, \"b\":", json!({"a": 1})),
            ("{\"a\": \"x\\", json!({"a": "x"})),
            ("```json\n{\"a\": 1, \"b\": tr", json!({"a": 1})),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn prose_is_not_json() {
        for text in [
            "",
            "plain",
            "a [link](x)",
            "{name} is here",
            "[] and {}",
            "3",
            "\"x\"",
        ] {
            assert_eq!(value(text), None, "{text}");
        }
        let deep = "[".repeat(10_000);
        assert!(value(&deep).is_some());
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "\\PC*|[\\[\\]{}\",:\\\\u0-9a-f tn`\\n]{0,80}") {
            if let Some(found) = find_json(&text, true) {
                prop_assert!(found.value.is_object() || found.value.is_array());
                prop_assert!(serde_json::to_string(&found.value).is_ok());
            }
        }
    }
}
