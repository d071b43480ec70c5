//! The marker `NEED MORE DATA:`. A model writes it to call further tools before it answers.

/// Returns whether a line of the text starts with the marker `NEED MORE DATA:`.
pub(super) fn requests_more_data(text: &str) -> bool {
    text.lines().any(is_more_data_line)
}

/// Removes lines that start with the marker `NEED MORE DATA:` and lines that consist of
/// `Nothing to gather.` from a text.
pub(super) fn remove_marker_lines(text: &str) -> String {
    let is_content =
        |line: &&str| !is_more_data_line(line) && line.trim() != super::prompt::NOTHING_TO_GATHER;
    let lines: Vec<&str> = text.lines().filter(is_content).collect();
    lines.join("\n").trim().to_owned()
}

/// Returns whether a line starts with the marker, in any letter case and with any decoration, such
/// as `**NEED MORE DATA:**`, `- need more data:` or the full-width colon.
fn is_more_data_line(line: &str) -> bool {
    let Some((head, _)) = line.split_once([':', '\u{ff1a}']) else {
        return false;
    };
    head.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_uppercase)
        .eq(["NEED", "MORE", "DATA"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_recognized_with_decoration() {
        for text in [
            "NEED MORE DATA: its value",
            "Found 3.\n\nneed more data: its value",
            "**NEED MORE DATA:** its value",
            "- NEED  MORE DATA : its value",
            "## NEED_MORE_DATA:\r\nits value\r\n",
            "> NEED MORE DATA\u{ff1a}値",
            "NEED MORE DATA:",
            "`NEED MORE DATA: its value`",
        ] {
            assert!(requests_more_data(text), "{text:?}");
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
            "I write \"NEED MORE DATA:\" if I do.",
        ] {
            assert!(!requests_more_data(text), "{text:?}");
        }
    }

    #[test]
    fn markers_of_the_gathering_phase_are_not_text() {
        assert_eq!(
            remove_marker_lines("Found 3.\nNEED MORE DATA: x\nSo far."),
            "Found 3.\nSo far."
        );
        assert_eq!(remove_marker_lines("Nothing to gather.\n"), "");
        assert_eq!(remove_marker_lines(" **NEED MORE DATA:** x"), "");
    }
}
