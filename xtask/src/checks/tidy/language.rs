//! Counts for the language rules: idioms in comments and messages, wide lines, replaced names.

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};
use regex::{Regex, RegexBuilder};

use super::source::Prose;
use crate::files;

#[cfg(test)]
#[path = "language_tests.rs"]
mod tests;

/// The widest line of code, comments and Markdown, in characters.
pub(super) const MAX_WIDTH: usize = 100;

/// Literals with fewer words are identifiers and labels, not messages.
const MIN_MESSAGE_WORDS: usize = 4;

/// Phrases that a noun, a verb or nothing replaces. See "Style" in CONTRIBUTING.md.
const IDIOMS: &[&str] = &[
    r"whoever",
    r"nobody",
    r"somebody",
    r"whatever",
    r"what (?:is|was|are|were|comes|came|it|they|has|had|a|the|stands)",
    r"(?:is|are|was) told",
    r"told (?:of|apart|at|as|by|to)",
    r"says? (?:so|what|that|which|nothing)",
    r"goes? on",
    r"gone on",
    r"of which",
    r"to which",
    r"in which",
    r"(?:is|are|was|were) no",
    r"had again",
    r"(?:let|lets|letting) go",
    r"those (?:that|which|of|who)",
    r"that which",
    r"the one (?:that|which|who)",
    r"may be had",
    r"comes? to",
    r"stands? (?:for|in|there|here|behind|before|beside)",
    r"by itself",
    r"at once",
    r"of (?:its|their) own",
    r"the same (?:way|for|as|where|with|if)",
    r"in words",
    r"as it (?:is|was|stands|comes)",
    r"has (?:to be|its|been heard)",
    r"heard",
    r"looks? (?:at|whether)",
    r"taken for",
    r"written down",
    r"made anew",
    r"anew",
    r"left alone",
    r"left out",
];

/// Finds idioms in prose.
pub(super) struct Idioms(Regex);

impl Idioms {
    pub(super) fn new() -> Result<Self> {
        let pattern = format!(r"\b(?:{})\b", IDIOMS.join("|"));
        let regex = RegexBuilder::new(&pattern).case_insensitive(true).build()?;
        Ok(Self(regex))
    }

    /// Returns the number of idioms in comment lines.
    pub(super) fn in_comments(&self, comments: &[Prose]) -> usize {
        comments
            .iter()
            .map(|comment| self.0.find_iter(&comment.text).count())
            .sum()
    }

    /// Returns the number of messages, and the number of messages with an idiom.
    pub(super) fn in_messages(&self, strings: &[Prose]) -> (usize, usize) {
        let messages = strings
            .iter()
            .filter(|string| string.text.split_whitespace().count() >= MIN_MESSAGE_WORDS);
        messages.fold((0, 0), |(all, with_idiom), message| {
            (
                all + 1,
                with_idiom + usize::from(self.0.is_match(&message.text)),
            )
        })
    }

    /// Returns the lines with an idiom, for `lint --words`.
    pub(super) fn lines<'a>(&self, prose: &'a [Prose]) -> impl Iterator<Item = &'a Prose> {
        prose.iter().filter(|prose| self.0.is_match(&prose.text))
    }
}

/// Identifiers of the first version that have a better name now.
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

/// Prefixes of constants that `MAX_` and plain nouns replace.
const REPLACED_PREFIXES: &[&str] = &["MOST_", "LONGEST_"];

/// Returns the replaced identifiers that a file uses, each with its line and its replacement.
pub(super) fn replaced_names(tokens: TokenStream) -> Vec<Prose> {
    let mut found = Vec::new();
    add_replaced_names(tokens, &mut found);
    found
}

fn add_replaced_names(tokens: TokenStream, found: &mut Vec<Prose>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => add_replaced_names(group.stream(), found),
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                if let Some(replacement) = replacement(&name) {
                    found.push(Prose {
                        line: ident.span().start().line,
                        text: format!("`{name}`: use `{replacement}`"),
                    });
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Returns the new name of a replaced identifier, whether it is written as a type or as a value.
fn replacement(name: &str) -> Option<&'static str> {
    if REPLACED_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix))
    {
        return Some("MAX_");
    }
    let name = snake_case(name);
    let found = REPLACED_NAMES.iter().find(|(old, _)| *old == name)?;
    Some(found.1)
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len());
    for (at, character) in name.chars().enumerate() {
        if character.is_uppercase() && at > 0 && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
    }
    snake
}

/// Returns the lines that are too wide. Skips tables, code blocks of Markdown, lines with a long
/// word, and inline tests.
pub(super) fn wide_lines(file: &str, text: &str) -> Vec<usize> {
    let is_markdown = files::is_markdown(file);
    let mut in_code = false;
    let mut wide = Vec::new();
    // An inline test module ends with its file.
    let end = text.find("#[cfg(test)]\nmod tests {");
    let text = &text[..end.unwrap_or(text.len())];
    for (at, line) in text.lines().enumerate() {
        in_code ^= line.trim().starts_with("```");
        let is_table = line.trim_start_matches(['/', '!', ' ']).starts_with('|');
        let is_link = is_markdown && line.trim().contains("](http");
        let has_long_word = line
            .split_whitespace()
            .any(|word| word.chars().count() > 70);
        let unbreakable = is_table || is_link || has_long_word || (is_markdown && in_code);
        if line.chars().count() > MAX_WIDTH && !unbreakable {
            wide.push(at + 1);
        }
    }
    wide
}
