//! Parses an answer that the request field `format` constrains to JSON: a tool call `{"name": …,
//! "parameters": …}` or `{"response": …}`. Other answers are emitted as text, because some servers
//! ignore `format`.

use serde::de::IgnoredAny;
use serde_json::Deserializer;

use super::tool_choice_emulation::{AnswerForm, NAME, PARAMETERS, RESPONSE};

/// An answer that was parsed as `{"name": …, "parameters": …}` or `{"response": …}`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ConstrainedAnswer<'t> {
    /// Name of the called tool. `None` if the answer is not a call.
    pub(crate) tool: Option<String>,
    /// JSON text of `parameters`, or of `response` if `tool` is `None`. Empty for a call without
    /// `parameters`.
    pub(crate) value: &'t str,
    /// Whether the JSON object of the answer is complete.
    pub(crate) is_complete: bool,
    /// Text that follows the JSON object in the answer.
    pub(crate) rest: &'t str,
}

/// Parses an answer that the request field `format` constrains to the JSON that `form` describes.
/// Returns `None` for other text. If the answer was truncated, its value is truncated too.
pub(crate) fn parse_answer<'t>(form: &AnswerForm, text: &'t str) -> Option<ConstrainedAnswer<'t>> {
    let mut answer = ConstrainedAnswer::default();
    let mut has_value = false;
    let mut fields = text.trim_start().strip_prefix('{')?;
    loop {
        // Commas are skipped, so a missing comma between fields is tolerated.
        fields = fields.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if let Some(rest) = fields.strip_prefix('}') {
            answer.is_complete = true;
            answer.rest = rest.trim_start();
            break;
        }
        let (key, Some(after)) = split_first_json_value(fields) else {
            break;
        };
        let Some(after) = after.trim_start().strip_prefix(':') else {
            break;
        };
        let (value, after) = split_first_json_value(after);
        let is_known = has_value || answer.tool.is_some();
        match serde_json::from_str::<String>(key).ok()?.as_str() {
            NAME if answer.tool.is_none() => {
                // If the answer calls a tool that is not in `form.tools`, the result is `None`, and
                // the caller emits the answer as text.
                let name = serde_json::from_str(value).ok();
                answer.tool = Some(name.filter(|name| form.tools.contains(name))?);
            }
            // Many models write the key `arguments` instead of `parameters`.
            PARAMETERS | "arguments" if !has_value => {
                has_value = true;
                answer.value = value;
            }
            RESPONSE if form.may_answer && !is_known => {
                let rest = after.unwrap_or_default().trim_start().strip_prefix('}');
                return Some(ConstrainedAnswer {
                    value,
                    is_complete: rest.is_some(),
                    rest: rest.unwrap_or_default().trim_start(),
                    ..answer
                });
            }
            _ if answer.tool.is_some() => {}
            _ => return None,
        }
        match after {
            Some(after) => fields = after,
            None => break,
        }
    }
    answer.tool.is_some().then_some(answer)
}

/// Returns the JSON value at the start of a text and the text after it. If the text ends within the
/// value, returns the incomplete value and `None`. If the value is invalid, returns an empty text
/// and `None`.
fn split_first_json_value(text: &str) -> (&str, Option<&str>) {
    let text = text.trim_start();
    let mut values = Deserializer::from_str(text).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => {
            let (value, rest) = text.split_at(values.byte_offset());
            (value, Some(rest))
        }
        Some(Err(error)) if !error.is_eof() => ("", None),
        _ => (text, None),
    }
}

#[cfg(test)]
#[path = "constrained_answer_tests.rs"]
mod tests;
