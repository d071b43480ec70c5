//! Search for known secrets in all their spellings.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

use aho_corasick::AhoCorasick;

use super::{secret_names::is_secret_name, secret_spellings::list_secret_spellings};

/// Minimum size of a secret in bytes. Shorter values are not redacted, because they are usually
/// placeholders or settings such as `8080`.
const MIN_SECRET_BYTES: usize = 8;

/// Minimum size in bytes of a secret whose name suggests a secret, such as `api_key`.
const MIN_NAMED_SECRET_BYTES: usize = 4;

/// Maximum size in bytes of a secret that counts as a word, such as `postgres`. Such a secret
/// consists of ASCII letters and `_`, and it is not redacted inside longer words.
const MAX_WORD_BYTES: usize = 15;

/// Minimum size in bytes of an incomplete secret that is redacted directly before a truncation
/// mark. Shorter beginnings of secrets are not redacted.
const MIN_CUT_BYTES: usize = 4;

/// The character that marks where a text was truncated.
const CUT: char = '…';

/// Maximum number of truncation marks that are examined in one text, to limit the run time.
const MAX_CUTS: usize = 100;

/// The kind of a searched text. A secret that looks like a word is redacted in a text, but not in a
/// name, such as the name of a JSON member, a tool or a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Text,
    Name,
}

/// The secrets that a redactor replaces, the oldest first.
#[derive(Clone, Default)]
pub(super) struct KnownSecrets {
    secrets: Vec<Secret>,
    /// Automaton that finds the secrets in a text. The first search after a change of the secrets
    /// builds it.
    search: OnceLock<Arc<SecretSearch>>,
}

#[derive(Clone)]
struct Secret {
    text: String,
    /// Whether the secret is redacted only where it is a whole word.
    is_word: bool,
}

struct SecretSearch {
    /// Automaton that finds each spelling of the secrets, such as the base64 form. `None` if it
    /// could not be built; whole texts are then redacted.
    automaton: Option<AhoCorasick>,
    /// For each spelling of a secret, whether it is redacted only where it is a whole word.
    is_word: Vec<bool>,
    longest: usize,
}

impl KnownSecrets {
    pub(super) fn len(&self) -> usize {
        self.secrets.len()
    }

    /// Adds a secret of at least [`MIN_SECRET_BYTES`] bytes, and ignores a shorter one. A secret
    /// that is already known becomes the newest one.
    pub(super) fn insert(&mut self, secret: &str) {
        for text in secret_variants(secret) {
            if text.len() >= MIN_SECRET_BYTES {
                let is_word = text.len() <= MAX_WORD_BYTES
                    && text
                        .bytes()
                        .all(|it| it.is_ascii_alphabetic() || it == b'_');
                self.push(text, is_word);
            }
        }
    }

    /// Adds a secret with its name. The secret is redacted inside longer words too. If the name
    /// suggests a secret, the minimum size is [`MIN_NAMED_SECRET_BYTES`] instead of
    /// [`MIN_SECRET_BYTES`].
    pub(super) fn insert_named_secret(&mut self, name: &str, secret: &str) {
        let min_bytes = if is_secret_name(name) || name.to_ascii_lowercase().contains("key") {
            MIN_NAMED_SECRET_BYTES
        } else {
            MIN_SECRET_BYTES
        };
        for text in secret_variants(secret) {
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

    pub(super) fn drop_oldest_secrets(&mut self, max_count: usize, max_bytes: usize) {
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

    /// Returns the size in bytes of the longest spelling of a secret, such as its base64 form.
    pub(super) fn longest_spelling_bytes(&self) -> usize {
        if self.secrets.is_empty() {
            return 0;
        }
        self.get_or_build_search().longest
    }

    /// Returns the byte ranges of secrets in a text, in any order. Ranges may overlap.
    pub(super) fn find_secrets(&self, text: &str, place: TextKind) -> Vec<Range<usize>> {
        if self.secrets.is_empty() {
            return Vec::new();
        }
        let search = self.get_or_build_search();
        let Some(automaton) = &search.automaton else {
            return std::iter::once(0..text.len()).collect();
        };
        let mut ranges = Vec::new();
        if automaton.is_match(text) {
            for found in automaton.find_overlapping_iter(text) {
                let is_word = search.is_word[found.pattern().as_usize()];
                if !is_word || (place == TextKind::Text && is_whole_word(text, &found.range())) {
                    ranges.push(found.range());
                }
            }
        }
        for (at, _) in text.match_indices(CUT).take(MAX_CUTS) {
            let secrets = self.secrets.iter().filter(|secret| !secret.is_word);
            let lengths =
                secrets.filter_map(|secret| truncated_secret_length(&text[..at], &secret.text));
            ranges.extend(lengths.max().map(|length| at - length..at));
        }
        ranges
    }

    fn get_or_build_search(&self) -> &SecretSearch {
        let new = || Arc::new(SecretSearch::new(&self.secrets));
        self.search.get_or_init(new)
    }
}

impl SecretSearch {
    fn new(secrets: &[Secret]) -> Self {
        let mut is_word = BTreeMap::new();
        for secret in secrets {
            let encoded = secret.text.len() >= MIN_SECRET_BYTES;
            for spelling in list_secret_spellings(&secret.text, encoded) {
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

/// Returns the secret without white space around it. For a secret of two words, such as `Bearer
/// TOKEN`, also returns the second word.
fn secret_variants(secret: &str) -> impl Iterator<Item = &str> {
    let secret = secret.trim();
    let token = secret.split_once(' ').map(|(_, token)| token.trim_start());
    let token = token.filter(|token| !token.contains(' '));
    std::iter::once(secret).chain(token)
}

fn is_whole_word(text: &str, range: &Range<usize>) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    !text[..range.start].ends_with(in_word) && !text[range.end..].starts_with(in_word)
}

/// Returns the length in bytes of an incomplete `secret` at the end of `text`, where the text was
/// truncated. Returns `None` if fewer than [`MIN_CUT_BYTES`] bytes of the secret are there.
fn truncated_secret_length(text: &str, secret: &str) -> Option<usize> {
    let mut lengths = (MIN_CUT_BYTES..secret.len()).rev();
    lengths.find(|length| {
        let beginning = secret.get(..*length);
        beginning.is_some_and(|beginning| text.ends_with(beginning))
    })
}

#[cfg(test)]
#[path = "known_secrets_tests.rs"]
mod tests;
