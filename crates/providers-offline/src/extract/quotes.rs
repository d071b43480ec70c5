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
    // Marks after which the text has no closing one any more; looking for it again and again would
    // take as many times the length of the text as there are marks.
    let mut unclosed: Vec<char> = Vec::new();
    while let Some((start, end, inner)) = next(text, from, &mut unclosed) {
        findings.add(start, end, Found::Quoted(inner.to_owned()));
        from = end;
    }
}

fn next<'t>(
    text: &'t str,
    from: usize,
    unclosed: &mut Vec<char>,
) -> Option<(usize, usize, &'t str)> {
    let rest = text.get(from..)?;
    rest.char_indices().find_map(|(offset, open)| {
        let (_, close) = MARKS.iter().find(|(mark, _)| *mark == open)?;
        if unclosed.contains(&open) {
            return None;
        }
        let start = from + offset;
        if text[..start]
            .chars()
            .next_back()
            .is_some_and(char::is_alphanumeric)
        {
            return None;
        }
        let inner_start = start + open.len_utf8();
        let Some(inner_end) = closing(text, inner_start, *close) else {
            unclosed.push(open);
            return None;
        };
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
