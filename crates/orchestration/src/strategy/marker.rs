//! `NEED MORE DATA:`, the marker by which a model continues the gather phase.

const WORDS: [&str; 3] = ["NEED", "MORE", "DATA"];

/// Returns the reason after the marker, which may be empty. Returns `None` without a marker.
///
/// The marker is at the start of a line, in any letter case, and may have Markdown decoration
/// (`**NEED MORE DATA:** …`, `- need more data: …`, `## NEED MORE DATA:`). Inside a code block or a
/// sentence it has no effect. If the rest of the line is empty, the reason is the next paragraph.
pub(super) fn reason(text: &str) -> Option<&str> {
    let mut fence: Option<Fence> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        match (fence, Fence::of(line)) {
            (Some(open), Some(mark)) if mark.closes(open) => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            (Some(_), _) => {}
            (None, None) => {
                if let Some(rest) = after_marker(line) {
                    let rest = trimmed(rest);
                    return Some(if rest.is_empty() {
                        paragraph(&text[end..])
                    } else {
                        rest
                    });
                }
            }
        }
        start = end;
    }
    None
}

/// Returns a text without marker lines and without [`NOTHING_TO_GATHER`](super::prompt).
pub(super) fn without(text: &str) -> String {
    let is_content = |line: &&str| {
        after_marker(line).is_none() && line.trim() != super::prompt::NOTHING_TO_GATHER
    };
    let lines: Vec<&str> = text.lines().filter(is_content).collect();
    lines.join("\n").trim().to_owned()
}

/// A line that starts or ends a code block.
#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
    /// Whether the line has only marks, so that it can end a block.
    bare: bool,
}

impl Fence {
    fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        let mark = line
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let rest = line.trim_start_matches(mark);
        let length = line.len() - rest.len();
        (length >= 3).then_some(Self {
            mark,
            length,
            bare: rest.is_empty(),
        })
    }

    fn closes(self, open: Self) -> bool {
        self.bare && self.mark == open.mark && self.length >= open.length
    }
}

/// Returns the rest of a line after the marker.
fn after_marker(line: &str) -> Option<&str> {
    let is_decoration = |c: char| c.is_whitespace() || "*_#>-+`\"'•".contains(c);
    let mut rest = line.trim_start_matches(is_decoration);
    for (position, word) in WORDS.iter().enumerate() {
        if position > 0 {
            let spaced =
                rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '_' | '-'));
            if spaced.len() == rest.len() {
                return None;
            }
            rest = spaced;
        }
        let (head, tail) = rest.split_at_checked(word.len())?;
        if !head.eq_ignore_ascii_case(word) {
            return None;
        }
        rest = tail;
    }
    // Also `NEED MORE DATA**:`, and the full-width colon.
    rest.trim_start_matches(is_decoration)
        .strip_prefix([':', '\u{ff1a}'])
}

fn trimmed(reason: &str) -> &str {
    reason.trim_matches(|c: char| c.is_whitespace() || "*_`".contains(c))
}

fn paragraph(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find("\n\n").unwrap_or(text.len());
    trimmed(&text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_marker_is_found_with_any_decoration() {
        for (text, expected) in [
            (
                "NEED MORE DATA: the id is missing",
                Some("the id is missing"),
            ),
            ("Found it.\n\nneed more data: its value", Some("its value")),
            ("**NEED MORE DATA:** its value", Some("its value")),
            ("**NEED MORE DATA**: its value", Some("its value")),
            ("**Need more data: its value**", Some("its value")),
            ("- NEED  MORE DATA : its value", Some("its value")),
            ("## NEED_MORE_DATA:\r\nits value\r\n", Some("its value")),
            (
                "NEED MORE DATA:\n\nits value\n\nmore words",
                Some("its value"),
            ),
            ("> NEED MORE DATA\u{ff1a}値", Some("値")),
            ("NEED MORE DATA:", Some("")),
            ("`NEED MORE DATA: its value`", Some("its value")),
            (
                "```\ncode\n```\nNEED MORE DATA: its value",
                Some("its value"),
            ),
        ] {
            assert_eq!(reason(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_mention_of_the_marker_is_not_the_marker() {
        for text in [
            "",
            "I do not NEED MORE DATA: all is there.",
            "No need for more data.",
            "NEED MORE DATA",
            "NEED MOREDATA: x",
            "NEED MORE DATABASES: x",
            "```\nNEED MORE DATA: x\n```",
            "````text\n```\nNEED MORE DATA: x\n````",
            "~~~\nNEED MORE DATA: x",
            "I write \"NEED MORE DATA:\" if I do.",
        ] {
            assert_eq!(reason(text), None, "{text:?}");
        }
    }

    #[test]
    fn markers_of_the_gather_phase_are_not_text() {
        assert_eq!(
            without("Found 3.\nNEED MORE DATA: x\nSo far."),
            "Found 3.\nSo far."
        );
        assert_eq!(without("Nothing to gather.\n"), "");
        assert_eq!(without(" **NEED MORE DATA:** x"), "");
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "\\PC*|[`~*#> \\nNEDMORATA:é_-]{0,60}") {
            if let Some(reason) = reason(&text) {
                prop_assert!(text.contains(reason));
            }
        }

        #[test]
        fn the_reason_survives(before in "([a-z ]{0,20}\\n){0,3}", why in "[a-z][a-z ]{0,20}[a-z]") {
            let text = format!("{before}NEED MORE DATA: {why}\n");
            prop_assert_eq!(reason(&text), Some(why.as_str()));
        }
    }
}
