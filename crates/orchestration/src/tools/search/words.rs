//! Stems of texts.

use rust_stemmers::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

/// Stop words. They are rare in tool descriptions and would have a large weight.
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

/// Splits texts into stems: `createEvents`, `create_event` and "created an event" have the same
/// two.
pub(super) struct Words {
    stemmer: Stemmer,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            stemmer: Stemmer::create(Algorithm::English),
        }
    }
}

impl Words {
    /// Appends the stems of a text in order.
    pub(super) fn stems_into(&self, text: &str, stems: &mut Vec<String>) {
        for piece in text.unicode_words().flat_map(|word| word.split('_')) {
            for word in split_camel_case(piece) {
                let word = word.to_lowercase();
                let word = word.trim_end_matches("'s").trim_end_matches("’s");
                if word.is_empty() || STOP_WORDS.contains(&word) {
                    continue;
                }
                stems.push(self.stemmer.stem(word).into_owned());
            }
        }
    }

    /// Returns the stems of a text in order.
    pub(super) fn stems(&self, text: &str) -> Vec<String> {
        let mut stems = Vec::new();
        self.stems_into(text, &mut stems);
        stems
    }
}

/// Splits a name in camel case: `getHTTPStatus` is `get`, `HTTP` and `Status`. Digits do not split.
fn split_camel_case(word: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    let mut parts = Vec::new();
    let mut start = 0;
    for (i, pair) in chars.windows(2).enumerate() {
        let [(_, before), (at, current)] = pair else {
            continue;
        };
        let next_is_lower = chars
            .get(i + 2)
            .is_some_and(|(_, next)| next.is_lowercase());
        let starts_word = current.is_uppercase()
            && (!before.is_uppercase() || next_is_lower)
            && before.is_alphanumeric();
        if starts_word {
            parts.push(&word[start..*at]);
            start = *at;
        }
    }
    parts.push(&word[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::{Words, split_camel_case};

    #[test]
    fn names_are_split_into_words() {
        for (name, parts) in [
            ("getHTTPStatus", &["get", "HTTP", "Status"][..]),
            ("createEvent", &["create", "Event"]),
            ("ipv4", &["ipv4"]),
            ("URL", &["URL"]),
            ("", &[""]),
            ("éÀà", &["é", "Àà"]),
        ] {
            assert_eq!(split_camel_case(name), parts, "{name}");
        }
    }

    #[test]
    fn forms_of_a_word_have_the_same_stem() {
        let words = Words::default();
        let expected = ["creat", "event"];
        for text in [
            "create_event",
            "createEvents",
            "Created an event.",
            "create-event's",
        ] {
            assert_eq!(words.stems(text), expected, "{text}");
        }
        assert!(words.stems("What is it about? ___ ''").is_empty());
    }
}
