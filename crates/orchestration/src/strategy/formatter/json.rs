//! Lenient reading of JSON: in a code fence, inside of prose, with superfluous commas, truncated.

use serde_json::{Map, Value};

/// Maximum nesting depth. Below the limit of `serde_json`, so that the value can be serialized.
const MAX_DEPTH: usize = 64;

/// An object or list in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) value: Value,
    /// Description of the repair; `None` for valid JSON.
    pub(super) repair: Option<&'static str>,
}

/// Finds an object or list in a text. Other values are ignored: any text may start with one.
pub(super) fn find(text: &str) -> Option<Found> {
    let text = text.trim();
    // Fast exit: most texts contain no JSON.
    let start = text.find(['{', '['])?;
    if let Some(value) = strict(text) {
        return Some(Found {
            value,
            repair: None,
        });
    }
    if let Some(value) = fenced(text).and_then(strict) {
        return Some(Found {
            value,
            repair: Some("the code fence around its JSON was removed"),
        });
    }
    let end = text.rfind(['}', ']'])?.max(start);
    if let Some(value) = text.get(start..=end).and_then(strict) {
        return Some(Found {
            value,
            repair: Some("the text around its JSON was ignored"),
        });
    }
    let from = fenced(text)
        .map(str::trim_start)
        .filter(|inside| inside.starts_with(['{', '[']));
    lenient(from.unwrap_or(&text[start..])).map(|value| Found {
        value,
        repair: Some("its JSON was invalid and was read up to the fault"),
    })
}

/// Finds a value like [`find`]. It may also be truncated before its first bracket closes.
pub(super) fn find_cut_off(text: &str) -> Option<Found> {
    find(text).or_else(|| {
        let start = text.find(['{', '['])?;
        lenient(&text[start..]).map(|value| Found {
            value,
            repair: Some("its JSON was truncated and was read to its end"),
        })
    })
}

fn strict(text: &str) -> Option<Value> {
    serde_json::from_str::<Value>(text)
        .ok()
        .filter(|value| value.is_object() || value.is_array())
}

/// Returns the content of the first code fence, which may be unclosed.
fn fenced(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("```")?;
    let (_, inside) = after.split_once('\n')?;
    Some(
        inside
            .rsplit_once("```")
            .map_or(inside, |(inside, _)| inside),
    )
}

/// Reads a value up to the first fault. Accepts superfluous and missing commas, raw control
/// characters in strings, unknown escapes and truncated input. Keys must be quoted, so that prose
/// in brackets is not an object.
fn lenient(text: &str) -> Option<Value> {
    let mut reader = Lenient {
        rest: text,
        depth: 0,
    };
    let value = reader.value()?;
    let empty = match &value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    (!empty).then_some(value)
}

struct Lenient<'a> {
    rest: &'a str,
    depth: usize,
}

impl Lenient<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn skip(&mut self, c: char) {
        self.rest = &self.rest[c.len_utf8()..];
    }

    /// Reads a value. Returns `None` if there is none.
    fn value(&mut self) -> Option<Value> {
        match self.peek()? {
            '"' => self.string().map(|(text, _)| Value::String(text)),
            c @ ('{' | '[') if self.depth < MAX_DEPTH => {
                self.skip(c);
                self.depth += 1;
                let value = if c == '{' {
                    self.object()
                } else {
                    self.array()
                };
                self.depth -= 1;
                Some(value)
            }
            _ => self.scalar(),
        }
    }

    fn object(&mut self) -> Value {
        let mut fields = Map::new();
        loop {
            match self.peek() {
                Some('}') => {
                    self.skip('}');
                    break;
                }
                Some(',') => self.skip(','),
                Some('"') => {
                    let Some((key, true)) = self.string() else {
                        break;
                    };
                    if self.peek() != Some(':') {
                        break;
                    }
                    self.skip(':');
                    let Some(value) = self.value() else { break };
                    fields.insert(key, value);
                }
                _ => break,
            }
        }
        Value::Object(fields)
    }

    fn array(&mut self) -> Value {
        let mut items = Vec::new();
        loop {
            match self.peek() {
                Some(']') => {
                    self.skip(']');
                    break;
                }
                Some(',') => self.skip(','),
                Some(_) => match self.value() {
                    Some(value) => items.push(value),
                    None => break,
                },
                None => break,
            }
        }
        Value::Array(items)
    }

    /// Reads a string. Returns it, and whether it was closed.
    fn string(&mut self) -> Option<(String, bool)> {
        let inside = self.rest.strip_prefix('"')?;
        let mut text = String::new();
        let mut chars = inside.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &inside[at + 1..];
                    return Some((text, true));
                }
                '\\' => match chars.next().map(|(_, escaped)| escaped) {
                    Some('u') => {
                        let (c, length) = unicode(chars.as_str());
                        text.push(c);
                        for _ in 0..length {
                            chars.next();
                        }
                    }
                    Some(escaped) => text.push(unescaped(escaped)),
                    None => {}
                },
                c => text.push(c),
            }
        }
        self.rest = "";
        Some((text, false))
    }

    fn scalar(&mut self) -> Option<Value> {
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word {
            "None" => Some(Value::Null),
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            word => serde_json::from_str(word).ok(),
        }
    }
}

/// Returns the character of an escape other than `u`. An unknown escape means the character itself.
pub(super) fn unescaped(escaped: char) -> char {
    match escaped {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        other => other,
    }
}

/// Returns the character after `\u`, and the length of its code in the text. Invalid codes and
/// single surrogates become the replacement character.
fn unicode(text: &str) -> (char, usize) {
    let unit = |text: &str| {
        let digits = text.get(..4)?;
        let all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        all.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    };
    let Some(first) = unit(text) else {
        return (char::REPLACEMENT_CHARACTER, 0);
    };
    if !(0xD800..0xDC00).contains(&first) {
        return (
            char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER),
            4,
        );
    }
    let second = text[4..].strip_prefix("\\u").and_then(unit);
    match second.and_then(|second| pair(first, second)) {
        Some(c) => (c, 10),
        None => (char::REPLACEMENT_CHARACTER, 4),
    }
}

/// Returns the character of a surrogate pair.
pub(super) fn pair(high: u32, low: u32) -> Option<char> {
    if !(0xD800..0xDC00).contains(&high) || !(0xDC00..0xE000).contains(&low) {
        return None;
    }
    char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn value(text: &str) -> Option<Value> {
        find_cut_off(text).map(|found| found.value)
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
            (
                "{\"a\": True, \"b\": None}",
                json!({"a": true, "b": null}),
                true,
            ),
            ("{\"a\": 1 \"b\": 2}", json!({"a": 1, "b": 2}), true),
        ] {
            let found = find(text).unwrap_or_else(|| panic!("nothing was found in {text}"));
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
            if let Some(found) = find_cut_off(&text) {
                prop_assert!(found.value.is_object() || found.value.is_array());
                prop_assert!(serde_json::to_string(&found.value).is_ok());
            }
        }
    }
}
