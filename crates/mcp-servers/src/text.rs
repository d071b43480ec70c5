//! Formatting of texts for models: quantities, lists and shortened values.

use switchboard_domain::similar_names::find_nearest;

/// Formats a number with its noun: `1 node`, `2 nodes`, `3 entries`.
pub(crate) fn format_quantity(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

/// Joins the first `max` items with commas, and states the number of the other items:
/// `a, b and 3 more`.
pub(crate) fn join_first_items<T: AsRef<str>>(items: &[T], max: usize) -> String {
    let shown: Vec<&str> = items.iter().take(max).map(AsRef::as_ref).collect();
    let shown = shown.join(", ");
    match items.len().saturating_sub(max) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns ` Did you mean X?`, where `X` is the known name that is most similar to `name`. Returns
/// an empty text if no known name is similar.
pub(crate) fn suggest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    find_nearest(name, known).map_or_else(String::new, |meant| format!(" Did you mean {meant}?"))
}

/// Replaces control characters such as line breaks by spaces, so that text from another service
/// stays on one line. Removes white space at both ends.
pub(crate) fn to_single_line(text: &str) -> String {
    let text = text.replace(|it: char| it.is_control(), " ");
    text.trim().to_owned()
}

/// Returns the text, or its start followed by `…` if the text has more than `max_chars` characters.
/// The result has at most `max_chars` characters.
pub(crate) fn truncate(text: &str, max_chars: usize) -> String {
    if text.chars().nth(max_chars).is_none() {
        return text.to_owned();
    }
    let start: String = text.chars().take(max_chars.saturating_sub(1)).collect();
    format!("{start}…")
}
