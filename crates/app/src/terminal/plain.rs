//! Text from elsewhere, made harmless.

use std::borrow::Cow;

/// The text without control characters but line breaks and tabs: no escape sequence survives.
pub fn without_controls(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_harmful) {
        Cow::Owned(text.chars().filter(|&c| !is_harmful(c)).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// The beginning of the text on one line, at most `width` characters; what is left out shows as
/// `…`.
pub fn one_line(text: &str, width: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        for c in word.chars().filter(|&c| !is_harmful(c)) {
            if length >= width {
                // Room for the mark itself.
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

/// Control characters, and the marks that change the direction of text and so what it seems to say.
pub fn is_harmful(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_lose_their_power() {
        assert_eq!(
            without_controls("a\u{1b}[2Jb\u{9b}31m\r\n\tc"),
            "a[2Jb31m\n\tc"
        );
        assert_eq!(without_controls("rm \u{202e}fdp.exe"), "rm fdp.exe");
        assert!(matches!(without_controls("grün ✔\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_line_is_a_line() {
        assert_eq!(one_line(" a\n  b\tc ", 10), "a b c");
        assert_eq!(one_line("äöüäöü", 4), "äöü…");
        assert_eq!(one_line("abcd", 4), "abcd");
        assert_eq!(one_line("ab cd", 3), "ab…");
        assert_eq!(one_line("", 3), "");
    }
}
