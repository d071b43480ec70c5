//! The end of the output of a command, which contains the result of compilers and tests.

use std::collections::VecDeque;

/// The last bytes of an output.
#[derive(Debug)]
pub(super) struct Tail {
    limit: usize,
    kept: VecDeque<u8>,
    omitted: u64,
}

impl Tail {
    /// Creates a buffer of the last `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: VecDeque::new(),
            omitted: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(self.limit);
        let (dropped, bytes) = bytes.split_at(bytes.len() - kept);
        let room = self.limit - kept;
        let surplus = self.kept.len().saturating_sub(room);
        self.kept.drain(..surplus);
        self.kept.extend(bytes);
        let gone = dropped.len().saturating_add(surplus);
        self.omitted += u64::try_from(gone).unwrap_or(u64::MAX);
    }

    /// Returns the text and the number of omitted bytes. A shortened text starts at a line.
    pub(super) fn finish(self) -> (String, u64) {
        let mut bytes: Vec<u8> = self.kept.into();
        let mut omitted = self.omitted;
        if omitted > 0
            && let Some(end) = bytes.iter().position(|&byte| byte == b'\n')
        {
            bytes.drain(..=end);
            omitted += u64::try_from(end + 1).unwrap_or_default();
        }
        (
            without_terminal_codes(&String::from_utf8_lossy(&bytes)),
            omitted,
        )
    }
}

/// Removes escape sequences and overwritten lines.
fn without_terminal_codes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut line_start = 0;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => match characters.peek() {
                Some('[') => {
                    characters.next();
                    // A letter ends the sequence.
                    while let Some(next) = characters.next_if(|it| !it.is_control()) {
                        if ('@'..='~').contains(&next) {
                            break;
                        }
                    }
                }
                Some(']') => {
                    // A bell or ESC \ ends a title or a link.
                    while let Some(next) = characters.next_if(|it| *it != '\n') {
                        if next == '\u{7}' {
                            break;
                        }
                        if next == '\u{1b}' {
                            characters.next_if_eq(&'\\');
                            break;
                        }
                    }
                }
                _ => {}
            },
            '\r' if characters.peek() == Some(&'\n') => {}
            // A progress bar overwrites its line.
            '\r' => plain.truncate(line_start),
            '\n' => {
                plain.push('\n');
                line_start = plain.len();
            }
            '\t' => plain.push('\t'),
            _ if character.is_control() => {}
            _ => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let mut tail = Tail::new(10);
        tail.push(b"one\ntwo\n");
        tail.push(b"three\nfour\n");
        assert_eq!(tail.finish(), ("four\n".to_owned(), 14));
        let mut tail = Tail::new(4);
        tail.push(b"abcdefgh");
        assert_eq!(tail.finish(), ("efgh".to_owned(), 4));
        let mut tail = Tail::new(100);
        tail.push(b"all\nof it");
        assert_eq!(tail.finish(), ("all\nof it".to_owned(), 0));
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
            assert_eq!(without_terminal_codes(written), read, "{written:?}");
        }
    }

    proptest! {
        #[test]
        fn kept_and_omitted_bytes_are_the_whole_output(
            chunks in prop::collection::vec(prop::collection::vec(97u8..100, 0..20), 0..8),
            limit in 1usize..30,
        ) {
            let whole: Vec<u8> = chunks.concat();
            let mut tail = Tail::new(limit);
            for chunk in &chunks {
                tail.push(chunk);
            }
            let (text, omitted) = tail.finish();
            prop_assert_eq!(text.as_bytes(), &whole[whole.len() - whole.len().min(limit)..]);
            prop_assert_eq!(omitted, (whole.len() - text.len()) as u64);
        }
    }
}
