//! Limits on the nesting of JSON.
//!
//! `serde_json` reads at most 127 nested arrays and objects, but writes more. A value near that
//! limit could be stored inside a message or an event and never be read again. Every value is
//! therefore checked where it enters the program: from a model, from a tool, from an HTTP client
//! and from a person.

use serde_json::Value;

/// Maximum nesting depth of a JSON value from a model, tool, client or person. Each array or object
/// adds one level, including the outermost one.
pub const MAX_JSON_DEPTH: usize = 64;

/// Maximum nesting depth of a whole JSON document: an HTTP body, message, event or run state.
/// Greater than [`MAX_JSON_DEPTH`], because a document contains such values within its own objects.
pub const MAX_DOCUMENT_DEPTH: usize = 96;

/// The error for JSON that is nested more deeply than a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nested more than {max} levels deep")]
pub struct TooDeep {
    /// The maximum number of nested arrays and objects that was exceeded.
    pub max: usize,
}

/// Returns [`TooDeep`] if the arrays and objects of a value are nested more than [`MAX_JSON_DEPTH`]
/// levels deep.
///
/// ```
/// use serde_json::json;
/// use switchboard_domain::json_depth::{MAX_JSON_DEPTH, check_depth};
///
/// let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
/// assert!(check_depth(&nested(MAX_JSON_DEPTH)).is_ok());
/// assert!(check_depth(&nested(MAX_JSON_DEPTH + 1)).is_err());
/// ```
pub fn check_depth(value: &Value) -> Result<(), TooDeep> {
    if is_deeper_than(value, MAX_JSON_DEPTH) {
        return Err(TooDeep {
            max: MAX_JSON_DEPTH,
        });
    }
    Ok(())
}

/// Returns whether arrays and objects of the value are nested more than `levels` deep. Does not
/// examine deeper values.
fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let is_deeper = |child: &Value| is_deeper_than(child, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(is_deeper),
        Value::Object(fields) => levels == 0 || fields.values().any(is_deeper),
        _ => false,
    }
}

/// Returns [`TooDeep`] if a JSON text is nested more than [`MAX_DOCUMENT_DEPTH`] levels deep.
/// Counts brackets outside of strings and does not check that the text is valid JSON.
pub fn check_document_depth(json: &[u8]) -> Result<(), TooDeep> {
    let brackets = json.iter().filter(|byte| matches!(byte, b'[' | b'{'));
    if brackets.count() <= MAX_DOCUMENT_DEPTH {
        return Ok(());
    }
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b'[' | b'{' if !is_string => {
                depth += 1;
                if depth > MAX_DOCUMENT_DEPTH {
                    return Err(TooDeep {
                        max: MAX_DOCUMENT_DEPTH,
                    });
                }
            }
            b']' | b'}' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "json_depth_tests.rs"]
mod tests;
