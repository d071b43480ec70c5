//! Buffer for the end of a command's output, which contains the results of compilers and tests.

use anstream::adapter::strip_str;

/// A buffer of the last bytes of a command's output.
#[derive(Debug)]
pub(in crate::workspace) struct OutputTail {
    limit: usize,
    buffered: Vec<u8>,
    omitted: usize,
}

impl OutputTail {
    /// Creates a buffer for the last `limit` bytes.
    pub(in crate::workspace) fn new(limit: usize) -> Self {
        Self {
            limit,
            buffered: Vec::new(),
            omitted: 0,
        }
    }

    pub(in crate::workspace) fn push(&mut self, bytes: &[u8]) {
        self.buffered.extend_from_slice(bytes);
        self.drop_first_bytes(self.buffered.len().saturating_sub(self.limit));
    }

    /// Returns the buffered text and the number of bytes that were omitted before it. If bytes were
    /// omitted, the text begins at the start of a line, unless the buffer contains no line break.
    /// Terminal codes are removed.
    pub(in crate::workspace) fn into_text(mut self) -> (String, u64) {
        let line_end = self.buffered.iter().position(|&byte| byte == b'\n');
        if let Some(end) = line_end.filter(|_| self.omitted > 0) {
            self.drop_first_bytes(end + 1);
        }
        let text = strip_terminal_codes(&String::from_utf8_lossy(&self.buffered));
        (text, u64::try_from(self.omitted).unwrap_or(u64::MAX))
    }

    fn drop_first_bytes(&mut self, bytes: usize) {
        self.buffered.drain(..bytes);
        self.omitted += bytes;
    }
}

/// Removes escape sequences, control characters other than tabs and line breaks, and overwritten
/// parts of lines from terminal output.
fn strip_terminal_codes(text: &str) -> String {
    let text = strip_str(text).to_string().replace("\r\n", "\n");
    let lines = text.split('\n').map(|line| {
        // A progress bar overwrites its line, so only the text after the last carriage return is
        // visible.
        let line = line.rsplit('\r').next().unwrap_or_default();
        line.replace(|it: char| it.is_control() && it != '\t', "")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let mut tail = OutputTail::new(10);
        tail.push(b"one\ntwo\n");
        tail.push(b"three\nfour\n");
        assert_eq!(tail.into_text(), ("four\n".to_owned(), 14));
        let mut tail = OutputTail::new(4);
        tail.push(b"abcdefgh");
        assert_eq!(tail.into_text(), ("efgh".to_owned(), 4));
        let mut tail = OutputTail::new(100);
        tail.push(b"all\nof it");
        assert_eq!(tail.into_text(), ("all\nof it".to_owned(), 0));
    }

    #[test]
    fn terminal_codes_are_removed() {
        for (written, read) in [
            ("\u{1b}[1;31merror\u{1b}[0m: no", "error: no"),
            (" 10%\r 50%\r100%\r\ndone", "100%\ndone"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b", "ab"),
            ("a\u{8}\u{0}\tb\u{9b}", "a\tb"),
            ("x\u{1b}[", "x"),
        ] {
            assert_eq!(strip_terminal_codes(written), read, "{written:?}");
        }
    }

    proptest! {
        #[test]
        fn kept_and_omitted_bytes_are_the_whole_output(
            chunks in prop::collection::vec(prop::collection::vec(97u8..100, 0..20), 0..8),
            limit in 1usize..30,
        ) {
            let whole: Vec<u8> = chunks.concat();
            let mut tail = OutputTail::new(limit);
            for chunk in &chunks {
                tail.push(chunk);
            }
            let (text, omitted) = tail.into_text();
            prop_assert_eq!(text.as_bytes(), &whole[whole.len() - whole.len().min(limit)..]);
            prop_assert_eq!(omitted, (whole.len() - text.len()) as u64);
        }
    }
}
