//! The size limit of results.

use std::{borrow::Cow, fmt::Write as _};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::{ToolContent, ToolOutput};

use super::{
    full_results::{FullResult, READ_TOOL},
    outline::outline,
};
use crate::tools::tokens;

/// The size limit of a tool result in a prompt, in [estimated tokens](tokens).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultLimit {
    /// Maximum number of tokens. A longer result is cut.
    pub max_tokens: u64,
    /// Number of tokens of a cut text.
    pub preview_tokens: u64,
}

/// Returns 20,000 tokens and a preview of 2,000.
impl Default for ResultLimit {
    fn default() -> Self {
        Self {
            max_tokens: 20_000,
            preview_tokens: 2_000,
        }
    }
}

impl ResultLimit {
    /// Returns the result for the model, and the full result if it was cut. `id` is the id of the
    /// tool use.
    ///
    /// A cut text ends after a line, a word or a character. A marker states that the result is cut
    /// and how to read the rest. Structured content that is too large is replaced by its outline.
    /// Media stay if they fit the limit.
    pub fn apply(
        &self,
        id: &str,
        tool: &str,
        output: ToolOutput,
    ) -> (ToolOutput, Option<FullResult>) {
        let data_tokens = output.structured.as_ref().map_or(0, tokens::estimate_value);
        if data_tokens <= self.max_tokens && tokens::content_fits(&output.content, self.max_tokens)
        {
            return (output, None);
        }
        let content_tokens = tokens::estimate_content(&output.content);
        let preview = self.preview_tokens.min(self.max_tokens);
        let whole = whole_text(&output);
        let total = tokens::estimate(&whole);
        let ToolOutput {
            content,
            structured,
            is_error,
        } = output;

        let cut_data = data_tokens
            > if content_tokens > self.max_tokens {
                preview
            } else {
                self.max_tokens
            };
        let shape = match &structured {
            Some(data) => cut_data.then(|| outline(data)),
            None => serde_json::from_str::<Value>(&whole)
                .ok()
                .filter(|value| value.is_object() || value.is_array())
                .map(|value| outline(&value)),
        };
        let (mut content, cut) = if content_tokens > self.max_tokens {
            self.cut(content, preview)
        } else {
            (content, Cut::default())
        };
        content.push(ToolContent::text(marker(id, &cut, total, shape.as_ref())));
        let structured = match (structured, shape) {
            (Some(_), Some(shape)) => Some(json!({"cut": true, "result_id": id, "outline": shape})),
            (structured, _) => structured,
        };
        let output = ToolOutput {
            content,
            structured,
            is_error,
        };
        (output, Some(FullResult::new(id, tool, whole)))
    }

    fn cut(&self, content: Vec<ToolContent>, preview: u64) -> (Vec<ToolContent>, Cut) {
        let mut pieces = Vec::new();
        let mut cut = Cut::default();
        let mut text_left = preview;
        let mut other_left = self.max_tokens - preview;
        for mut piece in content {
            let size = tokens::estimate_content(std::slice::from_ref(&piece));
            let Some(text) = text_of(&piece) else {
                match other_left.checked_sub(size) {
                    Some(left) => {
                        other_left = left;
                        pieces.push(piece);
                    }
                    None => cut.removed += 1,
                }
                continue;
            };
            if cut.rest.is_some() {
                continue;
            }
            let start = cut.read + usize::from(cut.has_text);
            cut.has_text = true;
            if let Some(left) = text_left.checked_sub(size) {
                text_left = left;
                cut.read = start + text.len();
                pieces.push(piece);
                continue;
            }
            let end = line_or_word_end(&text, tokens::prefix_of(&text, text_left));
            cut.rest = Some(start + end);
            if end > 0 {
                let text = text[..end].to_owned();
                match &mut piece {
                    ToolContent::Resource { text: whole, .. } => *whole = Some(text),
                    other => *other = ToolContent::Text { text },
                }
                pieces.push(piece);
            }
        }
        (pieces, cut)
    }
}

/// The position of a cut in the full text.
#[derive(Default)]
struct Cut {
    /// Whether there was a text before.
    has_text: bool,
    /// Number of bytes of the full text that stayed.
    read: usize,
    /// Offset of the rest. `None` if the text was not cut.
    rest: Option<usize>,
    /// Number of parts other than text that were removed.
    removed: usize,
}

/// Returns the text of a piece, or `None` for media.
fn text_of(piece: &ToolContent) -> Option<Cow<'_, str>> {
    match piece {
        ToolContent::Text { text }
        | ToolContent::Resource {
            text: Some(text), ..
        } => Some(Cow::Borrowed(text)),
        ToolContent::Unknown { value } => Some(Cow::Owned(value.to_string())),
        _ => None,
    }
}

/// Returns the text of a result, and its structured content unless the text is the same JSON.
fn whole_text(output: &ToolOutput) -> String {
    let pieces: Vec<_> = output.content.iter().filter_map(text_of).collect();
    let mut whole = pieces.join("\n");
    if let Some(structured) = &output.structured {
        let is_equal = serde_json::from_str::<Value>(&whole).is_ok_and(|text| text == *structured);
        if !is_equal {
            if !whole.is_empty() {
                whole.push_str("\n\n");
            }
            // `{:#}` writes indented JSON, so that a search finds lines. Writing to a string cannot
            // fail.
            let _ = write!(whole, "{structured:#}");
        }
    }
    whole
}

/// Returns the end of a line or word shortly before `end`, or `end`.
fn line_or_word_end(text: &str, end: usize) -> usize {
    let close = text.floor_char_boundary(end / 5 * 4);
    if end >= text.len() {
        return text.len();
    }
    let near = &text[close..end];
    let found = near.rfind('\n').or_else(|| near.rfind(' '));
    found.map_or(end, |at| close + at + 1)
}

fn marker(id: &str, cut: &Cut, total: u64, shape: Option<&Value>) -> String {
    let mut parts = Vec::new();
    let call = |rest: Value| {
        let mut input = json!({"result_id": id});
        if let (Value::Object(input), Value::Object(rest)) = (&mut input, rest) {
            input.extend(rest);
        }
        input
    };
    let whole = if let Some(at) = cut.rest {
        parts.push(format!(
            "[This result is cut here. It has about {total} tokens; this is its beginning."
        ));
        call(json!({"offset": at}))
    } else {
        parts.push(format!(
            "[This result is not shown in full. It has about {total} tokens."
        ));
        call(json!({}))
    };
    if cut.removed > 0 {
        parts.push(format!(
            "Parts other than text that were too large and are omitted: {}.",
            cut.removed
        ));
    }
    if let Some(shape) = shape {
        parts.push(format!("Outline of the whole: {shape}."));
    }
    let find = call(json!({"search": "…"}));
    parts.push(format!(
        "Continue with {READ_TOOL} {whole}, or find a text with {find}.]"
    ));
    parts.join(" ")
}

#[cfg(test)]
#[path = "limit_tests.rs"]
mod tests;
