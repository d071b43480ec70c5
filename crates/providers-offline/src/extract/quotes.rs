//! Text in quotation marks.

use super::{Findings, Found};

/// Opening and closing marks. Typewriter marks open and close alike.
const MARKS: &[(char, char)] = &[
    ('"', '"'),
    ('“', '”'),
    ('„', '“'),
    ('«', '»'),
    ('`', '`'),
    ('‘', '’'),
    ('\'', '\''),
];

/// Finds quotations. An apostrophe within a word is no mark.
pub(super) fn find(text: &str, findings: &mut Findings) {
    let mut from = 0;
    while let Some((start, end, inner)) = next(text, from) {
        findings.add(start, end, Found::Quoted(inner.to_owned()));
        from = end;
    }
}

fn next(text: &str, from: usize) -> Option<(usize, usize, &str)> {
    let rest = text.get(from..)?;
    rest.char_indices().find_map(|(offset, open)| {
        let (_, close) = MARKS.iter().find(|(mark, _)| *mark == open)?;
        let start = from + offset;
        if text[..start]
            .chars()
            .next_back()
            .is_some_and(char::is_alphanumeric)
        {
            return None;
        }
        let inner_start = start + open.len_utf8();
        let inner_end = closing(text, inner_start, *close)?;
        let inner = &text[inner_start..inner_end];
        (!inner.trim().is_empty()).then(|| (start, inner_end + close.len_utf8(), inner))
    })
}

fn closing(text: &str, from: usize, close: char) -> Option<usize> {
    text[from..]
        .char_indices()
        .map(|(offset, c)| (from + offset, c))
        .find(|&(at, c)| {
            let after = text[at + c.len_utf8()..].chars().next();
            c == close && !after.is_some_and(char::is_alphanumeric)
        })
        .map(|(at, _)| at)
}
