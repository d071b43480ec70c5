//! Splits texts and identifiers into words and word stems.

use rust_stemmers::{Algorithm, Stemmer};

/// Frequent words that do not help to select a tool for a question.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "an", "and", "any", "are", "at", "be", "by", "can", "could", "did", "do",
    "does", "each", "for", "from", "give", "has", "have", "hello", "hi", "how", "i", "in", "is",
    "it", "its", "many", "me", "most", "much", "my", "of", "on", "or", "our", "please", "show",
    "some", "tell", "than", "thank", "that", "the", "their", "them", "then", "these", "this", "to",
    "use", "was", "we", "what", "when", "where", "which", "who", "will", "with", "would", "you",
    "your",
];

/// Returns the lower-case words of a text or identifier: `get`, `user` and `id` for `getUser_id`.
pub(crate) fn split_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower_case = false;
    for character in text.chars() {
        let starts_word = after_lower_case && character.is_uppercase();
        if starts_word || !character.is_alphanumeric() {
            words.push(String::new());
        }
        if character.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(character.to_lowercase());
        }
        after_lower_case = character.is_lowercase() || character.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the stem of a lower-case English word: `custom` for `customers`.
pub(crate) fn stem_word(word: &str) -> String {
    Stemmer::create(Algorithm::English).stem(word).into_owned()
}

/// Returns the stems of all words of a text or identifier.
pub(crate) fn stem_all_words(text: &str) -> Vec<String> {
    let words = split_words(text);
    words.iter().map(|word| stem_word(word)).collect()
}

/// Returns the word stems of a text, without stop words and numbers.
pub(crate) fn stem_words(text: &str) -> Vec<String> {
    let is_term =
        |word: &String| !STOP_WORDS.contains(&word.as_str()) && !word.chars().all(char::is_numeric);
    split_words(text)
        .into_iter()
        .filter(is_term)
        .map(|word| stem_word(&word))
        .collect()
}

/// Returns an identifier as words: `account_value` becomes `account value`.
pub(crate) fn identifier_to_label(identifier: &str) -> String {
    split_words(identifier).join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_and_sentences_have_the_same_words() {
        assert_eq!(split_words("getUser_id-2"), ["get", "user", "id", "2"]);
        assert_eq!(
            split_words("Get the user's id."),
            ["get", "the", "user", "s", "id"]
        );
        assert!(split_words(" --- ").is_empty());
    }

    #[test]
    fn stems_leave_out_stop_words_and_numbers() {
        assert_eq!(
            stem_words("What are the values of customers 42 and 7?"),
            ["valu", "custom"]
        );
    }
}
