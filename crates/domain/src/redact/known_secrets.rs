//! Search for known secrets in all their spellings.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

use aho_corasick::AhoCorasick;

use super::{secret_names::is_secret_name, spellings::spellings};

/// Minimum bytes of a secret. Shorter values are placeholders and settings (`ollama`, `8080`).
const MIN_SECRET_BYTES: usize = 8;

/// Minimum bytes of a secret whose name suggests a secret.
const MIN_NAMED_SECRET_BYTES: usize = 4;

/// Maximum bytes of a secret that looks like a word. Longer texts of letters are keys.
const MAX_WORD_BYTES: usize = 15;

/// Minimum bytes of a secret's beginning that are redacted before a cut.
const MIN_CUT_BYTES: usize = 4;

/// Marks the place where an excerpt was cut.
const CUT: char = '…';

/// Maximum number of cuts examined in one text, which bounds the time.
const MAX_CUTS: usize = 100;

/// The place of a text, which decides about secrets that look like words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Text,
    Name,
}

/// Known secrets, the oldest first.
#[derive(Clone, Default)]
pub(super) struct KnownSecrets {
    secrets: Vec<Secret>,
    /// Built by the first search after a change.
    search: OnceLock<Arc<Search>>,
}

#[derive(Clone)]
struct Secret {
    text: String,
    /// Whether it is redacted only where it is a whole word.
    is_word: bool,
}

struct Search {
    /// Finds all spellings of all secrets. `None` if there are too many.
    automaton: Option<AhoCorasick>,
    /// For each spelling, whether it is redacted only where it is a whole word.
    is_word: Vec<bool>,
    longest: usize,
}

impl KnownSecrets {
    pub(super) fn len(&self) -> usize {
        self.secrets.len()
    }

    /// Adds a secret, or makes it the newest one.
    pub(super) fn insert(&mut self, secret: &str) {
        for text in with_bare_token(secret) {
            if text.len() >= MIN_SECRET_BYTES {
                let is_word = text.len() <= MAX_WORD_BYTES
                    && text
                        .bytes()
                        .all(|it| it.is_ascii_alphabetic() || it == b'_');
                self.push(text, is_word);
            }
        }
    }

    /// Adds a secret that is redacted inside longer words too.
    pub(super) fn insert_named(&mut self, name: &str, secret: &str) {
        let min_bytes = if is_secret_name(name) || name.to_ascii_lowercase().contains("key") {
            MIN_NAMED_SECRET_BYTES
        } else {
            MIN_SECRET_BYTES
        };
        for text in with_bare_token(secret) {
            if text.len() >= min_bytes {
                self.push(text, false);
            }
        }
    }

    fn push(&mut self, text: &str, is_word: bool) {
        let known = self.secrets.iter().position(|it| it.text == text);
        match known {
            Some(at) if self.secrets[at].is_word == is_word => {
                let newest = self.secrets.remove(at);
                self.secrets.push(newest);
                return;
            }
            Some(at) => drop(self.secrets.remove(at)),
            None => {}
        }
        let text = text.to_owned();
        self.secrets.push(Secret { text, is_word });
        self.search = OnceLock::new();
    }

    pub(super) fn drop_oldest(&mut self, max_count: usize, max_bytes: usize) {
        let mut bytes: usize = self.secrets.iter().map(|it| it.text.len()).sum();
        let mut excess = 0;
        for secret in &self.secrets {
            if self.secrets.len() - excess <= max_count && bytes <= max_bytes {
                break;
            }
            bytes -= secret.text.len();
            excess += 1;
        }
        if excess > 0 {
            self.secrets.drain(..excess);
            self.search = OnceLock::new();
        }
    }

    /// Returns the number of bytes of the longest spelling.
    pub(super) fn longest(&self) -> usize {
        if self.secrets.is_empty() {
            return 0;
        }
        self.search().longest
    }

    /// Returns where secrets are, in any order; ranges may overlap.
    pub(super) fn find(&self, text: &str, place: Place) -> Vec<Range<usize>> {
        if self.secrets.is_empty() {
            return Vec::new();
        }
        let search = self.search();
        let Some(automaton) = &search.automaton else {
            return std::iter::once(0..text.len()).collect();
        };
        let mut ranges = Vec::new();
        if automaton.is_match(text) {
            for found in automaton.find_overlapping_iter(text) {
                let is_word = search.is_word[found.pattern().as_usize()];
                if !is_word || (place == Place::Text && is_whole_word(text, &found.range())) {
                    ranges.push(found.range());
                }
            }
        }
        for (at, _) in text.match_indices(CUT).take(MAX_CUTS) {
            let secrets = self.secrets.iter().filter(|secret| !secret.is_word);
            let lengths = secrets.filter_map(|secret| cut_length(&text[..at], &secret.text));
            ranges.extend(lengths.max().map(|length| at - length..at));
        }
        ranges
    }

    fn search(&self) -> &Search {
        let new = || Arc::new(Search::new(&self.secrets));
        self.search.get_or_init(new)
    }
}

impl Search {
    fn new(secrets: &[Secret]) -> Self {
        let mut is_word = BTreeMap::new();
        for secret in secrets {
            let encoded = secret.text.len() >= MIN_SECRET_BYTES;
            for spelling in spellings(&secret.text, encoded) {
                let word = secret.is_word && spelling == secret.text;
                *is_word.entry(spelling).or_insert(word) &= word;
            }
        }
        Self {
            automaton: AhoCorasick::new(is_word.keys()).ok(),
            longest: is_word.keys().map(String::len).max().unwrap_or_default(),
            is_word: is_word.into_values().collect(),
        }
    }
}

/// Returns the secret without white space around it, and the token of `Bearer TOKEN`.
fn with_bare_token(secret: &str) -> impl Iterator<Item = &str> {
    let secret = secret.trim();
    let token = secret.split_once(' ').map(|(_, token)| token.trim_start());
    let token = token.filter(|token| !token.contains(' '));
    std::iter::once(secret).chain(token)
}

fn is_whole_word(text: &str, range: &Range<usize>) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    !text[..range.start].ends_with(in_word) && !text[range.end..].starts_with(in_word)
}

/// Returns the length of the secret's longest proper beginning at the end of `text`.
fn cut_length(text: &str, secret: &str) -> Option<usize> {
    let mut lengths = (MIN_CUT_BYTES..secret.len()).rev();
    lengths.find(|length| {
        let beginning = secret.get(..*length);
        beginning.is_some_and(|beginning| text.ends_with(beginning))
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use serde_json::json;

    use crate::redact::{REDACTED, Redactor};

    fn known(secret: &str) -> Redactor {
        Redactor::default().with_secrets([secret])
    }

    #[test]
    fn known_secrets_are_found_in_the_spellings_of_other_programs() {
        let secret = "Zq9/+\"x\\y Sécr3t<&>";
        let known = known(secret);
        for (written, expected) in [
            // Python: `quote(s, safe='')`, `quote(s)`, `quote_plus(s)`.
            (
                "?q=Zq9%2F%2B%22x%5Cy%20S%C3%A9cr3t%3C%26%3E&n=1",
                "?q=[redacted]&n=1",
            ),
            ("Zq9/%2B%22x%5Cy%20S%C3%A9cr3t%3C%26%3E", "[redacted]"),
            ("Zq9%2F%2B%22x%5Cy+S%C3%A9cr3t%3C%26%3E", "[redacted]"),
            ("Zq9%2f%2b%22x%5cy%20S%c3%a9cr3t%3c%26%3e", "[redacted]"),
            // `json.dumps(s)`, without `ensure_ascii`, and Go's.
            (
                r#"{"k": "Zq9/+\"x\\y S\u00e9cr3t<&>"}"#,
                r#"{"k": "[redacted]"}"#,
            ),
            (
                r#"{"k": "Zq9/+\"x\\y S\u00E9cr3t<&>"}"#,
                r#"{"k": "[redacted]"}"#,
            ),
            (
                r#"{"k": "Zq9/+\"x\\y Sécr3t<&>"}"#,
                r#"{"k": "[redacted]"}"#,
            ),
            (
                r#"{"k": "Zq9/+\"x\\y Sécr3t\u003c\u0026\u003e"}"#,
                r#"{"k": "[redacted]"}"#,
            ),
            (
                r#"{"k": "Zq9\/+\"x\\y S\u00e9cr3t<&>"}"#,
                r#"{"k": "[redacted]"}"#,
            ),
            (
                r#""{\"k\": \"Zq9/+\\\"x\\\\y Sécr3t<&>\"}""#,
                r#""{\"k\": \"[redacted]\"}""#,
            ),
            // The last digit also depends on the text after the secret.
            ("WnE5LysieFx5IFPDqWNyM3Q8Jj4=", "[redacted]="),
            ("5a71392f2b22785c792053c3a9637233743c263e", "[redacted]"),
            ("5A71392F2B22785C792053C3A9637233743C263E", "[redacted]"),
            ("nothing of it: Zq9/", "nothing of it: Zq9/"),
        ] {
            let clean = known.redact_known(written);
            assert!(
                clean == expected || (expected.ends_with('=') && clean.contains("[redacted]")),
                "{written}: {clean}"
            );
        }
    }

    #[test]
    fn white_space_around_a_secret_is_ignored() {
        let known = known(" trailing-newline-77\n");
        assert_eq!(known.redact_known("<trailing-newline-77>"), "<[redacted]>");
        assert_eq!(
            Redactor::default()
                .with_secrets(["  seven77 \n"])
                .secret_count(),
            0
        );
    }

    #[test]
    fn overlapping_secrets_are_redacted_completely() {
        let known = Redactor::default().with_secrets(["abcd-fgh1", "gh1jklmno", "abcd-fgh"]);
        assert_eq!(known.redact_known("xabcd-fgh1jklmnoy"), "x[redacted]y");
        assert_eq!(
            known.redact_known("gh1jklmnoabcd-fgh"),
            "[redacted][redacted]"
        );
    }

    #[test]
    fn a_secret_that_looks_like_a_word_is_redacted_as_a_whole_word() {
        let known = known("customer");
        for name in ["customer-service__get_customers", "customer_id", "Customer"] {
            assert_eq!(known.redact_known(name), name);
        }
        let url = "postgres://me:customer@host";
        assert_eq!(known.redact_known(url), "postgres://me:[redacted]@host");
        assert_eq!(known.redact_known("Y3VzdG9tZXI="), "[redacted]I=");
        assert_eq!(known.redact_known_in_name("customer"), "customer");
    }

    #[test]
    fn the_beginning_of_a_secret_before_a_cut_is_redacted() {
        for (text, expected) in [
            ("wrong: token-12…", "wrong: [redacted]…"),
            (
                "wrong: toke… and token-1… (cut)",
                "wrong: [redacted]… and [redacted]… (cut)",
            ),
            ("a token…", "a [redacted]…"),
            ("a tok…", "a tok…"),
            (
                "token-1 is not cut, this is…",
                "token-1 is not cut, this is…",
            ),
            ("…token-12", "…token-12"),
        ] {
            assert_eq!(known("Bearer token-123").redact_known(text), expected);
        }
    }

    #[test]
    fn a_header_value_is_found_without_its_scheme() {
        let known = known("Bearer tok-12345678");
        assert_eq!(known.redact_known("tok-12345678"), "[redacted]");
        assert_eq!(known.redact_known("Bearer tok-12345678"), "[redacted]");
    }

    #[test]
    fn named_secrets_may_be_short_and_are_found_inside_words() {
        let known = Redactor::default().with_named_secrets([
            ("branch", "main"),
            ("authorization", "Bearer abc1"),
            ("session_key", "p1n4"),
            ("pin_key", "123"),
            ("schema", "customer"),
        ]);
        assert_eq!(
            known.redact_known("main: abc1 of 123, p1n4 my_customers"),
            "main: [redacted] of 123, [redacted] my_[redacted]s"
        );
    }

    fn whole_base64(bytes: &[u8]) -> String {
        // Converts through text of bits, unlike the code under test.
        let mut bits = String::new();
        for byte in bytes {
            let _ = write!(bits, "{byte:08b}");
        }
        while !bits.len().is_multiple_of(6) {
            bits.push('0');
        }
        let digits: Vec<char> = ('A'..='Z')
            .chain('a'..='z')
            .chain('0'..='9')
            .chain(['+', '/'])
            .collect();
        let sixes = bits.as_bytes().chunks(6);
        let sixes = sixes.map(|six| std::str::from_utf8(six).unwrap());
        sixes
            .map(|six| digits[usize::from_str_radix(six, 2).unwrap()])
            .collect()
    }

    proptest! {
        #[test]
        fn secrets_are_found_in_base64_at_every_offset(
            before in "[ -~]{0,9}", secret in "[!-~]{8,24}", after in "[ -~]{0,9}",
        ) {
            let whole = whole_base64(format!("{before}{secret}{after}").as_bytes());
            let known = known(&secret);
            for written in [whole.replace('+', "-").replace('/', "_"), whole] {
                let clean = known.redact_known(&written);
                // At most one digit on each side has bits of the secret and of other text.
                let outside = clean.len().saturating_sub(REDACTED.len());
                prop_assert!(clean.contains(REDACTED), "{} in {}", clean, written);
                prop_assert!(outside <= (before.len() + after.len()) * 4 / 3 + 4, "{} of {}",
                    clean, written);
            }
        }

        #[test]
        fn secrets_are_found_in_json(secret in "\\PC{8,20}") {
            prop_assume!(secret.trim().len() >= 8);
            let known = known(&secret);
            let text = json!({"k": secret.trim()}).to_string();
            prop_assert_eq!(known.redact_known(&text), r#"{"k":"[redacted]"}"#);
        }
    }
}
