//! Finds idioms in comments and messages, wide lines, and outdated names.

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};
use regex::{Regex, RegexBuilder};

use super::source::{Prose, flatten_tokens};
use crate::files;

#[cfg(test)]
#[path = "language_tests.rs"]
mod tests;

/// Maximum width of a line of code, comments or Markdown, in characters.
pub(super) const MAX_WIDTH: usize = 100;

/// Minimum number of words of a string literal that counts as a message. Shorter literals are
/// identifiers and labels.
const MIN_MESSAGE_WORDS: usize = 4;

/// Regular expressions of phrases that comments and messages should avoid. See "Style" in
/// CONTRIBUTING.md.
const IDIOMS: &[&str] = &[
    r"whoever|nobody|somebody|whatever",
    r"what (?:is|was|are|were|comes|came|it|they|has|had|a|the|stands)",
    r"(?:is|are|was) told",
    r"told (?:of|apart|at|as|by|to)",
    r"says? (?:so|what|that|which|nothing)",
    r"goes? on|gone on",
    r"(?:of|to|in) which|in words",
    r"(?:is|are|was|were) no",
    r"had again",
    r"may be had",
    r"(?:let|lets|letting) go",
    r"those (?:that|which|of|who)",
    r"that which",
    r"the one (?:that|which|who)",
    r"comes? to",
    r"stands? (?:for|in|there|here|behind|before|beside)",
    r"by itself|at once|anew|heard",
    r"of (?:its|their) own",
    r"the same (?:way|for|as|where|with|if)",
    r"as it (?:is|was|stands|comes)",
    r"has (?:to be|its|been heard)",
    r"looks? (?:at|whether)",
    r"taken for|made anew",
    r"left (?:alone|out)|written down",
];

/// Finder of idioms in comments and messages.
pub(super) struct IdiomFinder(Regex);

impl IdiomFinder {
    pub(super) fn new() -> Result<Self> {
        let pattern = format!(r"\b(?:{})\b", IDIOMS.join("|"));
        let regex = RegexBuilder::new(&pattern).case_insensitive(true).build()?;
        Ok(Self(regex))
    }

    /// Returns the number of idioms in comment lines.
    pub(super) fn count_in_comments(&self, comments: &[Prose]) -> usize {
        let counts = comments.iter().map(|it| self.0.find_iter(&it.text).count());
        counts.sum()
    }

    /// Returns the number of messages, and the number of messages with an idiom.
    pub(super) fn count_in_messages(&self, strings: &[Prose]) -> (usize, usize) {
        let words = |it: &&Prose| it.text.split_whitespace().count();
        let messages = strings.iter().filter(|it| words(it) >= MIN_MESSAGE_WORDS);
        let with_idiom = messages.clone().filter(|it| self.0.is_match(&it.text));
        (messages.count(), with_idiom.count())
    }

    /// Returns the lines with an idiom, for `lint --list`.
    pub(super) fn find_lines<'a>(&self, prose: &'a [Prose]) -> impl Iterator<Item = &'a Prose> {
        prose.iter().filter(|prose| self.0.is_match(&prose.text))
    }
}

/// Outdated identifiers, each with the name that replaces it.
const REPLACED_NAMES: &[(&str, &str)] = &[
    ("alone", "url_elicitation"),
    ("asks", "server_requests"),
    ("circles", "cycles"),
    ("desk", "pending_approvals"),
    ("exchange", "attempt"),
    ("fingerprints", "tool_pinning"),
    ("heard", "received"),
    ("hold", "lease"),
    ("kept", "persisted"),
    ("let_go", "release"),
    ("manieth", "generation"),
    ("paper", "output"),
    ("patience", "write_timeout"),
    ("promise", "output_schema"),
    ("reel", "recording"),
    ("scribe", "transcript_builder"),
    ("scrub", "redact"),
    ("scrubber", "redactor"),
    ("strike_out", "redact"),
    ("struck_out", "redacted"),
    ("taken_up", "resumed"),
    ("tape", "recording"),
    ("tell", "emit"),
    ("telling", "event_sequencer"),
    ("told", "emitted"),
    ("untold", "pending_events"),
    ("wish", "run_parameters"),
    ("within", "request_context"),
    ("worth", "score"),
];

/// Outdated prefixes of constants. The prefix `MAX_` replaces them.
const REPLACED_PREFIXES: &[&str] = &["MOST_", "LONGEST_"];

/// Returns the replaced identifiers that a file uses, each with its line and its replacement.
pub(super) fn find_replaced_names(tokens: TokenStream) -> Vec<Prose> {
    let names = flatten_tokens(tokens).into_iter().filter_map(|token| {
        let name = token.to_string();
        let replacement = find_replacement(&name)?;
        matches!(token, TokenTree::Ident(_)).then(|| Prose {
            line: token.span().start().line,
            text: format!("`{name}`: use `{replacement}`"),
        })
    });
    names.collect()
}

/// Returns the name that replaces an outdated identifier, in any notation such as `let_go` or
/// `LetGo`.
fn find_replacement(name: &str) -> Option<&'static str> {
    if REPLACED_PREFIXES.iter().any(|it| name.starts_with(it)) {
        return Some("MAX_");
    }
    let is_same = |old: &str| name.replace('_', "").to_lowercase() == old.replace('_', "");
    let found = REPLACED_NAMES.iter().find(|(old, _)| is_same(old));
    // Names in upper case are constants, which may have these names.
    let found = found.filter(|_| name.contains(char::is_lowercase))?;
    Some(found.1)
}

/// Returns the numbers of the lines that are too wide. Skips inline tests. Also skips tables,
/// links, code blocks of Markdown and lines with a long word, unless they are Rust comments.
pub(super) fn find_wide_lines(file: &str, text: &str) -> Vec<usize> {
    let is_markdown = files::is_markdown(file);
    let mut in_code = false;
    let mut wide = Vec::new();
    // An inline test module is the last item of its file.
    let end = text.find("#[cfg(test)]\nmod tests {");
    let text = &text[..end.unwrap_or(text.len())];
    for (at, line) in text.lines().enumerate() {
        in_code ^= line.trim().starts_with("```");
        let is_comment = !is_markdown && line.trim().starts_with("//");
        let is_table = line.trim().starts_with('|');
        let is_link = is_markdown && line.trim().contains("](http");
        let has_long_word = line
            .split_whitespace()
            .any(|word| word.chars().count() > 70);
        let unbreakable = is_table || is_link || has_long_word || (is_markdown && in_code);
        if line.chars().count() > MAX_WIDTH && (is_comment || !unbreakable) {
            wide.push(at + 1);
        }
    }
    wide
}
