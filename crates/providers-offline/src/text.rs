//! Words: where they stand in a question, and the terms by which tools are found.

use rust_stemmers::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

/// Words that say nothing about which tool is meant.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "after",
    "again",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "been",
    "before",
    "being",
    "but",
    "by",
    "can",
    "could",
    "did",
    "do",
    "does",
    "doing",
    "don't",
    "each",
    "else",
    "every",
    "everybody",
    "everyone",
    "for",
    "from",
    "had",
    "has",
    "have",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "hey",
    "hi",
    "him",
    "his",
    "how",
    "i",
    "i'd",
    "i'll",
    "i'm",
    "i've",
    "if",
    "in",
    "into",
    "is",
    "it",
    "it's",
    "its",
    "just",
    "kindly",
    "like",
    "many",
    "may",
    "me",
    "might",
    "mine",
    "much",
    "must",
    "my",
    "no",
    "not",
    "now",
    "of",
    "off",
    "ok",
    "on",
    "only",
    "or",
    "other",
    "our",
    "ours",
    "out",
    "over",
    "please",
    "right",
    "shall",
    "she",
    "should",
    "so",
    "some",
    "such",
    "than",
    "that",
    "that's",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "too",
    "up",
    "us",
    "very",
    "was",
    "we",
    "were",
    "what",
    "what's",
    "when",
    "where",
    "which",
    "who",
    "who's",
    "whole",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "would",
    "you",
    "your",
    "yours",
];

/// One word of a text and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// Lower case, without a possessive `'s`.
    pub(crate) lower: String,
    /// The stem of it.
    pub(crate) stem: String,
    /// The first byte.
    pub(crate) start: usize,
    /// The byte after the last.
    pub(crate) end: usize,
}

impl Word {
    /// Whether it says nothing about which tool is meant.
    pub(crate) fn is_stop(&self) -> bool {
        is_stop(&self.lower)
    }
}

/// The words of a text by the Unicode rules; `customer_id` counts as two.
pub(crate) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    for (start, word) in text.unicode_word_indices() {
        let mut at = start;
        for piece in word.split('_') {
            if !piece.is_empty() {
                words.push(word_at(piece, at));
            }
            at += piece.len() + 1;
        }
    }
    words
}

fn word_at(piece: &str, start: usize) -> Word {
    let lower = piece.to_lowercase().replace('’', "'");
    let lower = match lower.strip_suffix("'s") {
        Some(owner) if !is_stop(&lower) => owner.to_owned(),
        _ => lower,
    };
    Word {
        stem: stem(&lower),
        lower,
        start,
        end: start + piece.len(),
    }
}

/// Whether a lower-case word says nothing about which tool is meant.
pub(crate) fn is_stop(lower: &str) -> bool {
    STOP_WORDS.binary_search(&lower).is_ok()
}

/// The English stem of a lower-case word.
pub(crate) fn stem(lower: &str) -> String {
    Stemmer::create(Algorithm::English).stem(lower).into_owned()
}

/// The lower-case words of an identifier: `snake_case`, `kebab-case`, `camelCase`, `HTTPServer2`.
pub(crate) fn identifier_words(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (i, &c) in chars.iter().enumerate() {
        let previous = i.checked_sub(1).and_then(|j| chars.get(j));
        let next = chars.get(i + 1);
        let hump = c.is_uppercase()
            && previous.is_some_and(|p| {
                p.is_lowercase()
                    || p.is_numeric()
                    || (p.is_uppercase() && next.is_some_and(|n| n.is_lowercase()))
            });
        if (hump || !c.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The stems of a documentation text: identifiers split, stop words dropped.
pub(crate) fn document_terms(text: &str) -> Vec<String> {
    text.unicode_words()
        .flat_map(identifier_words)
        .filter(|word| word.chars().count() > 1 && !is_stop(word))
        .map(|word| stem(&word))
        .collect()
}

/// Whether a lower-case word looks like a plural noun.
pub(crate) fn is_plural(lower: &str) -> bool {
    lower == "people"
        || (lower.len() > 3
            && lower.ends_with('s')
            && !lower.ends_with("ss")
            && !lower.ends_with("us")
            && !lower.ends_with("is"))
}

/// The first sentence of a text, on one line.
pub(crate) fn first_sentence(text: &str) -> String {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|&(i, c)| {
            let rest = &text[i + c.len_utf8()..];
            let short = ["e.g", "i.e", "etc", "vs"]
                .iter()
                .any(|word| text[..i].ends_with(word));
            c == '\n'
                || (matches!(c, '.' | '!' | '?') && !short && rest.starts_with(char::is_whitespace))
        })
        .map_or(text.len(), |(i, _)| i);
    text[..end].trim_end_matches(['.', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stop_words_are_sorted_so_that_they_are_found() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn identifiers_fall_into_words() {
        for (name, expected) in [
            ("list_open_orders", "list open orders"),
            ("add-up", "add up"),
            ("includeImage", "include image"),
            ("parseHTTPHeader2", "parse http header2"),
            ("server__tool", "server tool"),
            ("__", ""),
        ] {
            assert_eq!(identifier_words(name).join(" "), expected);
        }
    }

    #[test]
    fn words_know_their_place() {
        let text = "Ada’s customer_id";
        let found: Vec<_> = words(text)
            .into_iter()
            .map(|w| (w.lower, &text[w.start..w.end]))
            .collect();
        assert_eq!(
            found,
            [
                ("ada".to_owned(), "Ada’s"),
                ("customer".to_owned(), "customer"),
                ("id".to_owned(), "id")
            ]
        );
    }

    #[test]
    fn the_first_sentence_ends_where_it_ends() {
        assert_eq!(
            first_sentence("Reads v1.2 files. Only those."),
            "Reads v1.2 files"
        );
        assert_eq!(first_sentence("One\nTwo"), "One");
        assert_eq!(first_sentence("A code (e.g. CA). More"), "A code (e.g. CA)");
    }
}
