//! Word stems of texts, for tool search.

use heck::ToSnakeCase;
use rust_stemmers::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

/// Words that are neither indexed nor searched. They are rare in tool descriptions, so the search
/// would give them a large weight.
const STOP_WORDS: &[&str] = &[
    "a", "about", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "current",
    "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "let", "like", "may",
    "me", "might", "must", "my", "need", "now", "of", "on", "or", "our", "please", "shall", "she",
    "should", "so", "some", "tell", "than", "that", "the", "their", "them", "then", "there",
    "these", "they", "this", "those", "to", "tool", "tools", "use", "us", "very", "want", "was",
    "we", "were", "what", "when", "where", "which", "who", "whom", "whose", "why", "will", "with",
    "would", "you", "your",
];

/// A splitter of texts into word stems: `createEvents`, `create_event` and "created an event" have
/// the same two stems.
pub(super) struct StemSplitter {
    stemmer: Stemmer,
}

impl Default for StemSplitter {
    fn default() -> Self {
        Self {
            stemmer: Stemmer::create(Algorithm::English),
        }
    }
}

impl StemSplitter {
    /// Appends the word stems of a text to `stems`, in the order of the text.
    pub(super) fn append_stems(&self, text: &str, stems: &mut Vec<String>) {
        for word in text.unicode_words() {
            let word = word.trim_end_matches("'s").trim_end_matches("’s");
            for part in word.to_snake_case().split('_') {
                if !part.is_empty() && !STOP_WORDS.contains(&part) {
                    stems.push(self.stemmer.stem(part).into_owned());
                }
            }
        }
    }

    /// Returns the word stems of a text, in the order of the text.
    pub(super) fn split_into_stems(&self, text: &str) -> Vec<String> {
        let mut stems = Vec::new();
        self.append_stems(text, &mut stems);
        stems
    }
}

#[cfg(test)]
mod tests {
    use super::StemSplitter;

    #[test]
    fn forms_of_a_word_have_the_same_stem() {
        let words = StemSplitter::default();
        let expected = ["creat", "event"];
        for text in [
            "create_event",
            "createEvents",
            "Created an event.",
            "create-event's",
        ] {
            assert_eq!(words.split_into_stems(text), expected, "{text}");
        }
        assert!(
            words
                .split_into_stems("What is it about? ___ ''")
                .is_empty()
        );
    }
}
