//! Tool results as text, for provider APIs that accept only text results.

use switchboard_domain::{ToolContent, ToolResult};

use crate::JoinedText;

/// Returns the structured content of a tool result as JSON text, if the content of the result has
/// no text. Otherwise returns an empty text.
pub fn structured_content_text(result: &ToolResult) -> JoinedText<'_> {
    let has_text = result.content.iter().any(|content| match content {
        ToolContent::Text { text }
        | ToolContent::Resource {
            text: Some(text), ..
        } => !text.is_empty(),
        _ => false,
    });
    match &result.structured {
        Some(structured) if !has_text => structured.to_string().into(),
        _ => JoinedText::default(),
    }
}

/// Appends one content part of a tool result: its text, or a placeholder such as `[image …]`.
pub fn push_result_content<'a>(text: &mut JoinedText<'a>, content: &'a ToolContent) {
    match content {
        ToolContent::Text { text: piece }
        | ToolContent::Resource {
            text: Some(piece), ..
        } => text.push("\n", piece),
        other => text.push("\n", other.as_text()),
    }
}

/// Marks the text of a failed tool result, because the API has no field for a failure. The text
/// then starts with the word "error".
pub fn mark_failed_result(text: &mut JoinedText<'_>) {
    if text.is_empty() {
        *text = "Error: the tool failed without an error message".into();
    } else if !starts_with_error(text.as_str()) {
        text.prepend("Error: ");
    }
}

fn starts_with_error(text: &str) -> bool {
    let text = text.trim_start().as_bytes();
    let (word, rest) = text.split_at(text.len().min(5));
    word.eq_ignore_ascii_case(b"error")
        && rest
            .first()
            .is_none_or(|next| *next == b':' || next.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_result_is_marked_once() {
        for (text, expected) in [
            ("no such city", "Error: no such city"),
            ("error: closed", "error: closed"),
            ("Errors everywhere", "Error: Errors everywhere"),
            ("", "Error: the tool failed without an error message"),
        ] {
            let mut marked = JoinedText::from(text);
            mark_failed_result(&mut marked);
            assert_eq!(marked.as_str(), expected);
        }
    }
}
