//! Removes control characters from text, because they could change the terminal.

use std::borrow::Cow;

/// Removes control characters except line breaks and tabs.
pub(crate) fn strip_control_characters(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_control_character) {
        Cow::Owned(text.chars().filter(|&c| !is_control_character(c)).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns the start of a text as one line of at most `width` characters. `…` replaces omitted
/// text.
pub(crate) fn to_one_line(text: &str, width: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        for c in word.chars().filter(|&c| !is_control_character(c)) {
            if length >= width {
                line.pop();
                line.push('…');
                return line;
            }
            line.push(c);
            length += 1;
        }
    }
    line
}

/// Returns whether a character controls a terminal or changes the direction of text.
pub(crate) fn is_control_character(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_lose_their_power() {
        assert_eq!(
            strip_control_characters("a\u{1b}[2Jb\u{9b}31m\r\n\tc"),
            "a[2Jb31m\n\tc"
        );
        assert_eq!(strip_control_characters("rm \u{202e}fdp.exe"), "rm fdp.exe");
        assert!(matches!(
            strip_control_characters("grün ✔\n"),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn a_line_is_a_line() {
        assert_eq!(to_one_line(" a\n  b\tc ", 10), "a b c");
        assert_eq!(to_one_line("äöüäöü", 4), "äöü…");
        assert_eq!(to_one_line("abcd", 4), "abcd");
        assert_eq!(to_one_line("ab cd", 3), "ab…");
        assert_eq!(to_one_line("", 3), "");
    }
}
