//! Shortening of tool results in the current turn, so that a request fits its size limit.

use switchboard_domain::{Message, Part, ToolContent, ToolResult};

use crate::tools::tokens::{estimate_content, estimate_text, prefix_length_for_tokens};

/// Minimum number of tokens that the shortening of a tool result must save. The model gets a note
/// about the removed text, which also needs tokens, so a smaller saving is not worthwhile.
const MIN_SAVED_TOKENS: u64 = 60;

/// Returns the message with each long tool result shortened to about `keep` tokens, or `None` if no
/// result is long enough.
///
/// The same arguments always return the same text, so that prompt caches stay valid.
pub(super) fn shorten_tool_results(message: &Message, keep: u64) -> Option<Message> {
    let mut changed = false;
    let mut parts = message.parts.clone();
    for part in &mut parts {
        if let Part::ToolResult(result) = part
            && let Some(shortened) = shorten_tool_result(result, keep)
        {
            *result = shortened;
            changed = true;
        }
    }
    changed.then(|| Message::new(message.role, parts))
}

fn shorten_tool_result(result: &ToolResult, keep: u64) -> Option<ToolResult> {
    let structured;
    let content = match &result.structured {
        // The model reads structured content only if the result has no other content.
        Some(data) if result.content.is_empty() => {
            structured = [ToolContent::text(data.to_string())];
            &structured[..]
        }
        _ => &result.content[..],
    };
    let whole = estimate_content(content);
    if whole <= keep.saturating_add(MIN_SAVED_TOKENS) {
        return None;
    }
    let mut left = keep;
    let mut shortened = Vec::new();
    for piece in content {
        let tokens = estimate_content(std::slice::from_ref(piece));
        if tokens <= left {
            left -= tokens;
            shortened.push(piece.clone());
            continue;
        }
        if let ToolContent::Text { text }
        | ToolContent::Resource {
            text: Some(text), ..
        } = piece
        {
            let end = prefix_length_for_tokens(text, left);
            if end > 0 {
                shortened.push(ToolContent::text(&text[..end]));
            }
        }
        break;
    }
    let lost = whole.saturating_sub(estimate_content(&shortened));
    shortened.push(ToolContent::text(format!(
        "[… about {lost} tokens of this result were removed later, because the conversation became \
         too long. Call the tool again if they are needed.]"
    )));
    Some(ToolResult {
        content: shortened.into(),
        structured: None,
        ..result.clone()
    })
}

/// Returns the start of a text with at most `tokens` tokens. An ellipsis marks a cut.
pub(super) fn truncate_text(text: &str, tokens: u64) -> String {
    if estimate_text(text) <= tokens {
        return text.to_owned();
    }
    format!(
        "{} …",
        text[..prefix_length_for_tokens(text, tokens)].trim_end()
    )
}
