//! Results that are too long for a prompt are cut.

use std::{borrow::Cow, fmt::Write as _};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::{ToolContent, ToolOutput};

use super::{
    keep::{KeptResult, READ_TOOL},
    outline::outline,
};
use crate::tools::tokens;

/// How long a tool's result may be in a prompt. Tokens are those of [`tokens`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultLimit {
    /// A result of more tokens is cut.
    pub max_tokens: u64,
    /// What stays of its text then.
    pub preview_tokens: u64,
}

/// 20,000 tokens, of which 2,000 stay.
impl Default for ResultLimit {
    fn default() -> Self {
        Self {
            max_tokens: 20_000,
            preview_tokens: 2_000,
        }
    }
}

impl ResultLimit {
    /// The result as it goes to the model, and the whole of it if that is not all. `id` names it, and is
    /// unique in the run: the tool use's.
    ///
    /// The text ends after a line, a word or at least a character, and then says that it is cut, and how to
    /// read the rest. Data that is too long becomes its outline. Images and the like stay as long as they
    /// fit the limit themselves.
    pub fn apply(
        &self,
        id: &str,
        tool: &str,
        output: ToolOutput,
    ) -> (ToolOutput, Option<KeptResult>) {
        let of_data = output.structured.as_ref().map_or(0, tokens::estimate_value);
        if of_data <= self.max_tokens && tokens::content_fits(&output.content, self.max_tokens) {
            return (output, None);
        }
        let of_content = tokens::estimate_content(&output.content);
        let preview = self.preview_tokens.min(self.max_tokens);
        let whole = whole_text(&output);
        let total = tokens::estimate(&whole);
        let ToolOutput {
            content,
            structured,
            is_error,
        } = output;

        let data_is_cut = of_data
            > if of_content > self.max_tokens {
                preview
            } else {
                self.max_tokens
            };
        let shape = match &structured {
            Some(data) => data_is_cut.then(|| outline(data)),
            None => serde_json::from_str::<Value>(&whole)
                .ok()
                .filter(|value| value.is_object() || value.is_array())
                .map(|value| outline(&value)),
        };
        let (mut content, cut) = if of_content > self.max_tokens {
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
        let kept = KeptResult {
            id: id.to_owned(),
            tool: tool.to_owned(),
            tokens: total,
            text: whole.into(),
        };
        (output, Some(kept))
    }

    fn cut(&self, content: Vec<ToolContent>, preview: u64) -> (Vec<ToolContent>, Cut) {
        let mut kept = Vec::new();
        let mut cut = Cut::default();
        let mut text_left = preview;
        let mut other_left = self.max_tokens - preview;
        for mut piece in content {
            let size = tokens::estimate_content(std::slice::from_ref(&piece));
            let Some(text) = text_of(&piece) else {
                match other_left.checked_sub(size) {
                    Some(left) => {
                        other_left = left;
                        kept.push(piece);
                    }
                    None => cut.left_out += 1,
                }
                continue;
            };
            if cut.at.is_some() {
                continue;
            }
            let start = cut.read + usize::from(cut.any);
            cut.any = true;
            if let Some(left) = text_left.checked_sub(size) {
                text_left = left;
                cut.read = start + text.len();
                kept.push(piece);
                continue;
            }
            let end = good_end(&text, tokens::prefix_of(&text, text_left));
            cut.at = Some(start + end);
            if end > 0 {
                let text = text[..end].to_owned();
                match &mut piece {
                    ToolContent::Resource { text: whole, .. } => *whole = Some(text),
                    other => *other = ToolContent::Text { text },
                }
                kept.push(piece);
            }
        }
        (kept, cut)
    }
}

/// Where a text was cut, in the whole text.
#[derive(Default)]
struct Cut {
    /// Whether there was a piece of text before.
    any: bool,
    /// Bytes of the whole text that stayed.
    read: usize,
    /// Where reading goes on; `None` if the text was not cut.
    at: Option<usize>,
    /// Parts other than text that were left out.
    left_out: usize,
}

/// The text of a piece that is read as text.
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

/// All text of a result, and its data unless the text says the same.
fn whole_text(output: &ToolOutput) -> String {
    let pieces: Vec<_> = output.content.iter().filter_map(text_of).collect();
    let mut whole = pieces.join("\n");
    if let Some(structured) = &output.structured {
        let is_the_same =
            serde_json::from_str::<Value>(&whole).is_ok_and(|text| text == *structured);
        if !is_the_same {
            if !whole.is_empty() {
                whole.push_str("\n\n");
            }
            // `{:#}` of a value is JSON over several lines, in which lines can be found.
            // And writing to a string cannot fail.
            let _ = write!(whole, "{structured:#}");
        }
    }
    whole
}

/// The end of a line or of a word, if there is one close before `end`.
fn good_end(text: &str, end: usize) -> usize {
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
    let whole = if let Some(at) = cut.at {
        parts.push(format!(
            "[This result is cut here: it has about {total} tokens, of which this is the beginning."
        ));
        call(json!({"offset": at}))
    } else {
        parts.push(format!(
            "[This result is not shown in full: it has about {total} tokens."
        ));
        call(json!({}))
    };
    if cut.left_out > 0 {
        let parts_word = if cut.left_out == 1 {
            "part that is"
        } else {
            "parts that are"
        };
        parts.push(format!(
            "{} {parts_word} no text too big and left out.",
            cut.left_out
        ));
    }
    if let Some(shape) = shape {
        parts.push(format!("Outline of the whole: {shape}."));
    }
    let find = call(json!({"search": "…"}));
    parts.push(format!(
        "Read on with {READ_TOOL} {whole}, or find a text in it with {find}.]"
    ));
    parts.join(" ")
}

#[cfg(test)]
#[path = "limit_tests.rs"]
mod tests;
