//! The size limit of tool results that the model reads.

use std::{borrow::Cow, fmt::Write as _};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::{ToolContent, ToolOutput};

use super::full_results::{FullResult, READ_TOOL};
use crate::tools::tokens;

/// The size limit of a tool result that the model reads, in [estimated tokens](tokens).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultLimit {
    /// Maximum number of tokens of a tool result. A longer result is truncated.
    pub max_tokens: u64,
    /// Number of tokens to which the text of a truncated result is cut.
    pub preview_tokens: u64,
}

/// By default, the limit is 20,000 tokens and the preview has 2,000 tokens.
impl Default for ResultLimit {
    fn default() -> Self {
        Self {
            max_tokens: 20_000,
            preview_tokens: 2_000,
        }
    }
}

impl ResultLimit {
    /// Returns the tool result for the model, and the full result if it was truncated. `id` is the
    /// id of the tool use.
    ///
    /// A truncated result contains the beginning of its text, the media that fit the limit, and a
    /// note that states how to read the rest. The text ends after a line, a word or a character.
    /// Structured content that is too large is replaced by an object with the id of the result. If
    /// the result has no text, the beginning of its structured content is shown as text.
    pub fn limit_result(
        &self,
        id: &str,
        tool: &str,
        output: ToolOutput,
    ) -> (ToolOutput, Option<FullResult>) {
        let data_tokens = output.structured.as_ref().map_or(0, tokens::estimate_json);
        let content_tokens = tokens::estimate_content(&output.content);
        if data_tokens.max(content_tokens) <= self.max_tokens {
            return (output, None);
        }
        let texts: Vec<_> = output.content.iter().filter_map(content_text).collect();
        let text = texts.join("\n");
        let whole = join_text_and_json(&text, output.structured.as_ref());
        let (text, text_tokens, media_tokens) =
            if content_tokens > self.max_tokens || text.is_empty() {
                let preview = self.preview_tokens.min(self.max_tokens);
                let text = if text.is_empty() { &whole } else { &text };
                (text, preview, self.max_tokens - preview)
            } else {
                (&text, self.max_tokens, self.max_tokens)
            };
        let end = find_cut_position(text, tokens::prefix_length_for_tokens(text, text_tokens));
        let (media, omitted) = select_media_that_fit(&output.content, media_tokens);
        let rest = (end < text.len()).then_some(end);
        let total = tokens::estimate_text(&whole);
        let shown = (end > 0).then(|| ToolContent::text(&text[..end]));
        let marker = ToolContent::text(truncation_note(id, total, rest, omitted));
        let structured = output.structured.map(|data| {
            if data_tokens > text_tokens {
                json!({"cut": true, "result_id": id})
            } else {
                data
            }
        });
        let output = ToolOutput {
            content: shown.into_iter().chain(media).chain([marker]).collect(),
            structured,
            is_error: output.is_error,
        };
        (output, Some(FullResult::new(id, tool, whole)))
    }
}

/// Returns the media and other items without text that fit into `tokens` tokens, and the number of
/// omitted ones.
fn select_media_that_fit(content: &[ToolContent], mut tokens: u64) -> (Vec<ToolContent>, usize) {
    let (mut media, mut omitted) = (Vec::new(), 0);
    for piece in content.iter().filter(|piece| content_text(piece).is_none()) {
        let size = tokens::estimate_content(std::slice::from_ref(piece));
        match tokens.checked_sub(size) {
            Some(left) => {
                tokens = left;
                media.push(piece.clone());
            }
            None => omitted += 1,
        }
    }
    (media, omitted)
}

/// Returns the text of a content item, or `None` for an item without text, such as an image.
fn content_text(piece: &ToolContent) -> Option<Cow<'_, str>> {
    match piece {
        ToolContent::Text { text }
        | ToolContent::Resource {
            text: Some(text), ..
        } => Some(Cow::Borrowed(text)),
        ToolContent::Unknown { value } => Some(Cow::Owned(value.to_string())),
        _ => None,
    }
}

/// Joins the text and the structured content of a result, unless both are the same JSON value.
fn join_text_and_json(text: &str, structured: Option<&Value>) -> String {
    let mut whole = text.to_owned();
    if let Some(structured) = structured
        && serde_json::from_str::<Value>(text).ok().as_ref() != Some(structured)
    {
        if !whole.is_empty() {
            whole.push_str("\n\n");
        }
        // `{:#}` writes indented JSON, so that a search finds lines. Writing to a string cannot
        // fail.
        let _ = write!(whole, "{structured:#}");
    }
    whole
}

/// Returns the byte offset at which `text` is cut so that it has at most `end` bytes: after the
/// last line break, or else after the last space. Searches only the last fifth before `end`, and
/// returns `end` if this part has neither.
fn find_cut_position(text: &str, end: usize) -> usize {
    let close = text.floor_char_boundary(end / 5 * 4);
    if end >= text.len() {
        return text.len();
    }
    let near = &text[close..end];
    let found = near.rfind('\n').or_else(|| near.rfind(' '));
    found.map_or(end, |at| close + at + 1)
}

/// Returns a note for the model that states how to read the rest of a truncated result. `total` is
/// the estimated size of the full result in tokens. `rest` is the byte offset at which the omitted
/// text starts, and `omitted` is the number of omitted media.
fn truncation_note(id: &str, total: u64, rest: Option<usize>, omitted: usize) -> String {
    let (start, read) = match rest {
        Some(rest) => (
            format!("cut here. It has about {total} tokens; this is its beginning."),
            json!({"result_id": id, "offset": rest}),
        ),
        None => (
            format!("not shown in full. It has about {total} tokens."),
            json!({"result_id": id}),
        ),
    };
    let mut marker = format!("[This result is {start}");
    // Writing to a string cannot fail.
    if omitted > 0 {
        let _ = write!(
            marker,
            " Omitted non-text parts that were too large: {omitted}."
        );
    }
    let find = json!({"result_id": id, "search": "…"});
    let _ = write!(
        marker,
        " Continue with {READ_TOOL} {read}, or search the text with {find}.]"
    );
    marker
}

#[cfg(test)]
#[path = "limit_tests.rs"]
mod tests;
