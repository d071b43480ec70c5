//! Replaces a passage of a text that is named by its own words.

/// A text with one passage replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    pub(super) text: String,
    /// The line on which the new passage begins, counted from 1.
    pub(super) first_line: usize,
    /// The line on which it ends.
    pub(super) last_line: usize,
    /// The passage was written with other line breaks than the file has, and got those of the file.
    pub(super) line_breaks_changed: bool,
}

/// Why nothing was replaced. The texts go behind the name of the file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditFault {
    /// The passage is not there.
    #[error(
        "does not have old_text in it{}. Load the file and copy the passage exactly, without line \
         numbers.",
        alike.map_or_else(String::new, |line| format!(", but a passage that differs from it only in white space begins on line {line}"))
    )]
    Nowhere {
        /// Where a passage begins that only differs in white space.
        alike: Option<usize>,
    },
    /// The passage is there more than once.
    #[error(
        "has old_text more than once in it, on the lines {}. Take in more of what stands around the \
         passage that you mean.",
        listed(lines)
    )]
    Several {
        /// Where it begins.
        lines: Vec<usize>,
    },
    /// The new passage is the old one.
    #[error("would not change: old_text and new_text are the same.")]
    Nothing,
}

/// Replaces the one place where `old` is by `new`.
pub(super) fn replace(text: &str, old: &str, new: &str) -> Result<Edited, EditFault> {
    if old == new {
        return Err(EditFault::Nothing);
    }
    match positions(text, old)[..] {
        [position] => Ok(put(text, position, old, new, false)),
        [] => {
            // Models write \n, whatever the file has.
            let (with_returns, new) = (with_returns(old), with_returns(new));
            if with_returns != old && !has_bare_breaks(text) {
                match positions(text, &with_returns)[..] {
                    [position] => return Ok(put(text, position, &with_returns, &new, true)),
                    [] => {}
                    ref several => return Err(several_at(text, several)),
                }
            }
            Err(EditFault::Nowhere {
                alike: alike(text, old),
            })
        }
        ref several => Err(several_at(text, several)),
    }
}

/// Every place where `old` is, overlapping ones too: `aa` is twice in `aaa`.
fn positions(text: &str, old: &str) -> Vec<usize> {
    let mut positions = Vec::new();
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(old)) {
        positions.push(from + found);
        let step = text[from + found..]
            .chars()
            .next()
            .map_or(1, char::len_utf8);
        from += found + step;
        // Enough to be refused.
        if old.is_empty() || positions.len() > 10 {
            break;
        }
    }
    positions
}

fn put(text: &str, position: usize, old: &str, new: &str, line_breaks_changed: bool) -> Edited {
    let (before, rest) = text.split_at(position);
    let after = &rest[old.len()..];
    let first_line = line_of(text, position);
    let inner = new.strip_suffix('\n').unwrap_or(new);
    Edited {
        text: [before, new, after].concat(),
        first_line,
        last_line: first_line + inner.matches('\n').count(),
        line_breaks_changed,
    }
}

fn line_of(text: &str, position: usize) -> usize {
    1 + text[..position].matches('\n').count()
}

fn several_at(text: &str, positions: &[usize]) -> EditFault {
    EditFault::Several {
        lines: positions.iter().map(|&it| line_of(text, it)).collect(),
    }
}

fn with_returns(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn has_bare_breaks(text: &str) -> bool {
    text.matches('\n').count() != text.matches("\r\n").count()
}

/// The first line at which the lines of `old` follow each other if white space does not count.
fn alike(text: &str, old: &str) -> Option<usize> {
    let squeeze = |line: &str| line.split_whitespace().collect::<String>();
    let wanted: Vec<String> = old.trim().lines().map(squeeze).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<String> = text.lines().map(squeeze).collect();
    let found = lines.windows(wanted.len()).position(|here| here == wanted);
    found.map(|index| index + 1)
}

fn listed(lines: &[usize]) -> String {
    let mut listed: Vec<String> = lines.iter().take(10).map(usize::to_string).collect();
    if lines.len() > listed.len() {
        listed.push("…".to_owned());
    }
    listed.join(", ")
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
