//! Finds parts of a text in which calls are ignored: Markdown code, quoted lines and thinking.

/// Minimum number of backticks or tildes that open a Markdown code block.
const FENCE: usize = 3;
/// Marks around reasoning that a server left in the text.
const THINKING: [(&str, &str); 2] = [("<think>", "</think>"), ("[THINK]", "[/THINK]")];

/// Returns the length in bytes of the reasoning at the beginning of a text, with the marks around
/// it. Reasoning without a closing mark extends to the end of the text. Returns `None` if the text
/// does not begin with an opening mark.
pub(crate) fn leading_reasoning_length(text: &str) -> Option<usize> {
    let (_, closer) = THINKING
        .iter()
        .find(|(opener, _)| text.starts_with(opener))?;
    let end = text.find(closer).map(|end| end + closer.len());
    Some(end.unwrap_or(text.len()))
}

/// Returns whether a text ends with the mark that closes reasoning.
pub(crate) fn ends_with_think_tag(text: &str) -> bool {
    THINKING.iter().any(|(_, closer)| text.ends_with(closer))
}

/// Returns the length in bytes of the Markdown code or the quoted line at the beginning of a text.
/// Code without an end extends to the end of the text. Returns `None` if the text begins with
/// neither. `line_is_blank` is whether only white space precedes the text in its line.
pub(crate) fn leading_code_or_quote_length(text: &str, line_is_blank: bool) -> Option<usize> {
    let mut lines = text.split_inclusive('\n');
    let line = lines.next()?;
    let mark = line.chars().next()?;
    if mark == '>' && line_is_blank {
        return Some(line.len());
    }
    if !matches!(mark, '`' | '~') {
        return None;
    }
    let run_length = |text: &str| text.len() - text.trim_start_matches(mark).len();
    let opener = run_length(line);
    let rest = line.get(opener..).unwrap_or_default();
    // A line with further backticks is a code span and does not open a block.
    let opens_block = opener >= FENCE && !(mark == '`' && rest.contains(mark));
    if line_is_blank && opens_block {
        let mut end = line.len();
        for line in lines {
            end += line.len();
            let line = line.trim();
            let closer = run_length(line);
            if closer >= opener && closer == line.len() {
                break;
            }
        }
        return Some(end);
    }
    if mark == '~' {
        return Some(opener);
    }
    let mut end = opener;
    for mut line in std::iter::once(rest).chain(lines) {
        // A code span that is not closed ends with its paragraph, because its backtick may be plain
        // text.
        if opener < FENCE && end > opener && line.trim().is_empty() {
            break;
        }
        let line_end = end + line.len();
        while let Some(found) = line.find(mark) {
            line = line.get(found..).unwrap_or_default();
            let closer = run_length(line);
            line = line.get(closer..).unwrap_or_default();
            if closer == opener {
                return Some(line_end - line.len());
            }
        }
        end = line_end;
    }
    Some(end)
}
