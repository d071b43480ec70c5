//! Equality of calls.

use std::fmt::Write as _;

use serde_json::Value;
use switchboard_orchestration::ToolCallRecord;

/// The limit (2^53) above which a floating-point number does not represent every whole number.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// A comparable key of a tool call. Calls with equal keys have the same result.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct CallKey<'a> {
    server: Option<&'a str>,
    tool: &'a str,
    input: String,
}

impl<'a> CallKey<'a> {
    pub(super) fn new(call: &'a ToolCallRecord) -> Self {
        let mut input = String::new();
        match &*call.input {
            Value::Null => input.push_str("{}"),
            value => write_canonical_json(value, &mut input),
        }
        Self {
            server: call.server.as_deref(),
            tool: &call.tool,
            input,
        }
    }
}

/// Writes a JSON value in canonical form: equal values get equal texts, with sorted names and `1`
/// for `1.0`.
fn write_canonical_json(value: &Value, text: &mut String) {
    // Writing to a string does not fail.
    let _ = match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in fields {
                let _ = write!(text, "{name:?}:");
                write_canonical_json(value, text);
                text.push(',');
            }
            text.write_char('}')
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical_json(item, text);
                text.push(',');
            }
            text.write_char(']')
        }
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            // Adding 0 to a number removes the sign of a negative zero.
            Some(it) if it.fract() == 0.0 && it.abs() < MAX_EXACT => {
                write!(text, "{:.0}", it + 0.0)
            }
            _ => write!(text, "{number}"),
        },
        other => write!(text, "{other}"),
    };
}
