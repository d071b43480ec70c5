//! Names of tools as a wire takes them, and back.
//!
//! The domain's tool names are `[A-Za-z0-9_-]{1,64}`, but a host may hand over any (`crm/find.one`),
//! and wires differ in what they take. [`ToolNames`] is built from one request and gives every name in
//! it a form that the wire accepts.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
};

use sha2::{Digest as _, Sha256};
use switchboard_domain::{ChatRequest, Part, ToolChoice};

/// Hexadecimal digits of the hash in a changed name. More are taken only when a name that somebody
/// chose on purpose stands in the way.
const HASH_DIGITS: [usize; 4] = [8, 16, 32, 64];
/// What is left of a name in which no character is legal.
const NAMELESS: &str = "tool";

/// Which tool names a wire takes: ASCII letters and digits, and what else is said here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameRule {
    /// Characters at most. At least 16, so that a changed name can still be told from others.
    pub max_len: usize,
    /// Legal characters beside ASCII letters and digits; all ASCII.
    pub punctuation: &'static str,
    /// What a name may begin with.
    pub first: FirstChar,
}

/// What a name may begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstChar {
    /// Any legal character.
    Any,
    /// An ASCII letter or `_`.
    LetterOrUnderscore,
}

impl NameRule {
    /// Anthropic Messages: `^[a-zA-Z0-9_-]{1,128}$` (the SDK's `ToolParam.name`).
    pub const ANTHROPIC: Self = Self {
        max_len: 128,
        punctuation: "_-",
        first: FirstChar::Any,
    };
    /// OpenAI Chat Completions and Responses, and what is compatible: `^[a-zA-Z0-9_-]{1,64}$`.
    pub const OPENAI: Self = Self {
        max_len: 64,
        punctuation: "_-",
        first: FirstChar::Any,
    };
    /// Gemini: "must start with a letter or an underscore; a-z, A-Z, 0-9, underscores, dots, colons
    /// and dashes, with a maximum length of 64" (`FunctionDeclaration.name` of the SDKs). Dots and
    /// colons are left out: some versions of the API do not document them.
    pub const GEMINI: Self = Self {
        max_len: 64,
        punctuation: "_-",
        first: FirstChar::LetterOrUnderscore,
    };

    /// Whether the wire takes this name.
    pub fn allows(&self, name: &str) -> bool {
        // What is legal is ASCII.
        let punctuation = self.punctuation.as_bytes();
        (1..=self.max_len).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || punctuation.contains(&byte))
            && name.chars().next().is_some_and(|c| self.may_begin(c))
    }

    fn is_legal(&self, c: char) -> bool {
        c.is_ascii_alphanumeric() || (c.is_ascii() && self.punctuation.contains(c))
    }

    fn may_begin(&self, c: char) -> bool {
        match self.first {
            FirstChar::Any => true,
            FirstChar::LetterOrUnderscore => c.is_ascii_alphabetic() || c == '_',
        }
    }

    /// A legal name for one that is not: what can be read of it, and `digits` digits of its hash.
    fn alias(&self, name: &str, digits: usize) -> String {
        let filler = if self.is_legal('_') { '_' } else { 'x' };
        let mut alias: String = name
            .chars()
            .map(|c| if self.is_legal(c) { c } else { filler })
            .collect();
        if alias.chars().all(|c| c == filler) {
            NAMELESS.clone_into(&mut alias);
        }
        if !alias.chars().next().is_some_and(|c| self.may_begin(c)) {
            alias.insert(0, filler);
        }
        // All of it is ASCII by now, so it may be cut anywhere.
        let hash = hash(name);
        let hash = &hash[..digits.min(self.max_len.saturating_sub(2)).min(hash.len())];
        alias.truncate(self.max_len.saturating_sub(hash.len() + 1));
        alias.push(filler);
        alias.push_str(hash);
        alias
    }
}

/// The names of one request's tools on a wire, and back.
///
/// - A name that the rule allows stays as it is.
/// - Any other becomes what can be read of it, `_`, and eight hexadecimal digits of its SHA-256. That
///   depends on the name alone, so it is the same in every run and whatever other tools there are.
/// - Two names never share one form: if another name of the request is in the way (somebody chose
///   it on purpose), more digits are taken.
///
/// Names of the history and of [`ToolChoice::Only`] are treated like those of the declared tools, so
/// that the wire shows one name for one tool everywhere.
///
/// ```
/// use serde_json::json;
/// use switchboard_domain::{ChatRequest, Message, ToolDefinition};
/// use switchboard_providers_common::tool_names::{NameRule, ToolNames};
///
/// let tool = |name| ToolDefinition::new(name, "", json!({"type": "object"}));
/// let request = ChatRequest::new([Message::user("Hello?")]).with_tools([tool("a/b"), tool("a_b")]);
/// let names = ToolNames::of(&request, NameRule::OPENAI);
/// assert_eq!(names.wire("a_b"), "a_b");
/// assert_eq!(names.wire("a/b"), "a_b_c14cddc0");
/// assert_eq!(names.declared("a_b_c14cddc0"), "a/b");
/// ```
#[derive(Debug, Clone)]
pub struct ToolNames {
    rule: NameRule,
    wire: HashMap<String, String>,
    declared: HashMap<String, String>,
}

impl ToolNames {
    /// The names of a request under a wire's rule.
    pub fn of(request: &ChatRequest, rule: NameRule) -> Self {
        if names(request).all(|name| rule.allows(name)) {
            return Self {
                rule,
                wire: HashMap::new(),
                declared: HashMap::new(),
            };
        }
        let (kept, changed): (BTreeSet<&str>, BTreeSet<&str>) =
            names(request).partition(|name| rule.allows(name));
        let mut taken: HashSet<String> = kept.into_iter().map(str::to_owned).collect();
        let mut wire = HashMap::with_capacity(changed.len());
        let mut declared = HashMap::with_capacity(changed.len());
        for name in changed {
            let mut aliases = HASH_DIGITS.iter().map(|digits| rule.alias(name, *digits));
            // All digits of a SHA-256 are in nobody's way.
            let Some(alias) = aliases.find(|alias| taken.insert(alias.clone())) else {
                continue;
            };
            declared.insert(alias.clone(), name.to_owned());
            wire.insert(name.to_owned(), alias);
        }
        Self {
            rule,
            wire,
            declared,
        }
    }

    /// The name on the wire. Always one that the rule allows, also for a name that is not in the
    /// request.
    pub fn wire<'a>(&'a self, declared: &'a str) -> Cow<'a, str> {
        match self.wire.get(declared) {
            Some(alias) => Cow::Borrowed(alias),
            None if self.rule.allows(declared) => Cow::Borrowed(declared),
            None => Cow::Owned(self.rule.alias(declared, HASH_DIGITS[0])),
        }
    }

    /// The declared name of a name that came over the wire. One that was not given out (the model
    /// made it up) is itself.
    pub fn declared<'a>(&'a self, wire: &'a str) -> &'a str {
        self.declared.get(wire).map_or(wire, String::as_str)
    }

    /// Whether any name of the request is another one on the wire.
    pub fn any_changed(&self) -> bool {
        !self.wire.is_empty()
    }
}

/// Every tool name in a request, as often as it is there.
fn names(request: &ChatRequest) -> impl Iterator<Item = &str> {
    let declared = request.tools.iter().map(|tool| tool.name.as_str());
    let chosen = match &request.tool_choice {
        ToolChoice::Only(names) => names.as_slice(),
        _ => &[],
    };
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let told = parts.filter_map(|part| match part {
        Part::ToolUse(tool_use) => Some(tool_use.name.as_str()),
        Part::ToolResult(result) => Some(result.name.as_str()),
        _ => None,
    });
    declared
        .chain(chosen.iter().map(String::as_str))
        .chain(told)
}

fn hash(name: &str) -> String {
    Sha256::digest(name)
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

#[cfg(test)]
#[path = "tool_names_tests.rs"]
mod tests;
