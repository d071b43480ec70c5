//! Replacement of one passage in a text.

/// The text of a file after a passage was replaced, with the position of the new passage.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditedText {
    pub(super) text: String,
    /// Line number at which the new passage starts, counted from 1.
    pub(super) first_line: usize,
    /// Line number at which the new passage ends, inclusive.
    pub(super) last_line: usize,
    /// Whether the line breaks of the new passage were converted to CR LF, which the file has.
    pub(super) line_breaks_changed: bool,
}

/// Replaces the passage `old` with `new`. Returns an error if `old` does not occur exactly once or
/// equals `new`. The caller writes the file name before the error text, such as
/// `does not contain old_text.`
pub(super) fn replace_passage(text: &str, old: &str, new: &str) -> Result<EditedText, String> {
    if old == new {
        return Err("would not change: old_text and new_text are equal.".to_owned());
    }
    match find_positions(text, old)[..] {
        [position] => Ok(apply_replacement(text, position, old, new, false)),
        [] => {
            // Models write `\n` even for files with CR LF line breaks, so the passage is searched
            // again with CR LF.
            let (with_returns, new) = (to_crlf(old), to_crlf(new));
            if with_returns != old && !has_bare_newlines(text) {
                match find_positions(text, &with_returns)[..] {
                    [position] => {
                        return Ok(apply_replacement(text, position, &with_returns, &new, true));
                    }
                    [] => {}
                    ref several => return Err(several_matches_error(text, several)),
                }
            }
            Err(
                "does not contain old_text. Load the file and copy the passage exactly, without \
                 line numbers."
                    .to_owned(),
            )
        }
        ref several => Err(several_matches_error(text, several)),
    }
}

/// Returns the byte positions at which `old` begins in a text, at most 11. The occurrences may
/// overlap: `aaa` contains `aa` twice.
fn find_positions(text: &str, old: &str) -> Vec<usize> {
    let mut positions = Vec::new();
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(old)) {
        positions.push(from + found);
        let step = text[from + found..]
            .chars()
            .next()
            .map_or(1, char::len_utf8);
        from += found + step;
        // The search stops after 11 positions, because the error message lists at most ten of them
        // and then `…`.
        if old.is_empty() || positions.len() > 10 {
            break;
        }
    }
    positions
}

fn apply_replacement(
    text: &str,
    position: usize,
    old: &str,
    new: &str,
    line_breaks_changed: bool,
) -> EditedText {
    let (before, rest) = text.split_at(position);
    let after = &rest[old.len()..];
    let first_line = line_number_at(text, position);
    let inner = new.strip_suffix('\n').unwrap_or(new);
    EditedText {
        text: [before, new, after].concat(),
        first_line,
        last_line: first_line + inner.matches('\n').count(),
        line_breaks_changed,
    }
}

fn line_number_at(text: &str, position: usize) -> usize {
    1 + text[..position].matches('\n').count()
}

/// Returns the error for a passage that occurs several times, with its line numbers.
fn several_matches_error(text: &str, positions: &[usize]) -> String {
    let lines = positions
        .iter()
        .map(|&it| line_number_at(text, it).to_string());
    let mut listed: Vec<String> = lines.take(10).collect();
    if positions.len() > listed.len() {
        listed.push("…".to_owned());
    }
    format!(
        "contains old_text several times, on the lines {}. Include more of the surrounding text.",
        listed.join(", ")
    )
}

fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn has_bare_newlines(text: &str) -> bool {
    text.matches('\n').count() != text.matches("\r\n").count()
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
