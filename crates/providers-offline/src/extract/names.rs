//! Names: capitalised words that do not merely begin a sentence.

use super::{Findings, Found};
use crate::{
    text::{Word, is_stop},
    thesaurus::{alike, is_generic},
};

/// Words between the parts of one name.
const PARTICLES: &[&str] = &["da", "de", "del", "der", "di", "la", "van", "von"];

/// Finds names: `Ada Lovelace`, `New York`, `Ludwig van Beethoven`.
pub(super) fn find(text: &str, words: &[Word], findings: &mut Findings) {
    let mut i = 0;
    while let Some(first) = words.get(i) {
        if !is_capitalised(text, first) || findings.overlaps(first.start, first.end) {
            i += 1;
            continue;
        }
        let mut last = i;
        while let Some(next) = words.get(last + 1) {
            let beside = text
                .get(words[last].end..next.start)
                .is_some_and(|gap| matches!(gap, " " | "-" | ". "))
                && !text[words[last].start..words[last].end].ends_with("'s")
                && !findings.overlaps(next.start, next.end);
            let particle = PARTICLES.contains(&next.lower.as_str())
                && words
                    .get(last + 2)
                    .is_some_and(|after| is_capitalised(text, after));
            if !(beside && (particle || is_capitalised(text, next))) {
                break;
            }
            last += 1;
        }
        let from = if begins_sentence(text, first.start) && is_common(first) {
            i + 1
        } else {
            i
        };
        let alone_at_start = begins_sentence(text, first.start) && last == i;
        if from <= last && !alone_at_start && !is_stop(&words[from].lower) {
            let (start, end) = (words[from].start, words[last].end);
            let name = text[start..end]
                .trim_end_matches("'s")
                .trim_end_matches("’s");
            findings.add(start, start + name.len(), Found::Name(name.to_owned()));
        }
        i = last + 1;
    }
}

fn is_capitalised(text: &str, word: &Word) -> bool {
    let original = &text[word.start..word.end];
    let mut chars = original.chars();
    chars.next().is_some_and(char::is_uppercase) && chars.next().is_some_and(char::is_lowercase)
}

fn is_common(word: &Word) -> bool {
    word.is_stop() || is_generic(&word.stem) || !alike(&word.stem).is_empty()
}

fn begins_sentence(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end();
    before.is_empty() || before.ends_with(['.', '!', '?', ':', '\n', '"', '“'])
}
