//! Tools called by their exact name.

use crate::{catalog::Tool, extract::Reading};

/// Where a text names a tool exactly.
///
/// A name of several words or with signs in it needs nothing else. A name that is an ordinary word
/// must be used as a name: "the echo tool", "use echo", "`echo`", or at the beginning of the text.
pub(crate) fn named_exactly(tool: &Tool, reading: &Reading<'_>) -> Option<(usize, usize)> {
    let text = reading.text;
    // Lower-casing may change lengths outside ASCII, so that places would be wrong.
    let lower = text.to_ascii_lowercase();
    tool.exact_names().iter().find_map(|name| {
        let name = name.to_ascii_lowercase();
        if name.is_empty() {
            return None;
        }
        lower.match_indices(&name).find_map(|(start, _)| {
            let end = start + name.len();
            let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            let glued = text[..start].chars().next_back().is_some_and(part)
                || text[end..].chars().next().is_some_and(part);
            let telling = name.contains(|c: char| !c.is_alphanumeric())
                || (tool.name_words.len() > 1 && text.get(start..end).is_some_and(has_hump));
            (!glued && (telling || used_as_name(reading, start, end))).then_some((start, end))
        })
    })
}

fn has_hump(text: &str) -> bool {
    text.chars().skip(1).any(char::is_uppercase)
}

fn used_as_name(reading: &Reading<'_>, start: usize, end: usize) -> bool {
    let text = reading.text;
    let before = reading
        .words_before(start)
        .next()
        .map(|word| word.lower.as_str());
    let after = reading
        .words_after(end)
        .next()
        .map(|word| word.lower.as_str());
    let first = reading
        .words_before(start)
        .all(|word| matches!(word.lower.as_str(), "please" | "now" | "then" | "and"));
    let called = matches!(
        before,
        Some("use" | "using" | "call" | "run" | "invoke" | "tool" | "execute")
    );
    let ticked = text[..start].ends_with('`') && text[end..].starts_with('`');
    let possessive = text[end..].starts_with(['\'', '’']);
    (first && !possessive && after.is_some()) || called || after == Some("tool") || ticked
}
