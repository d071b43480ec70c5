//! Mapping of tool names to names that a provider API accepts.
//!
//! A host may have tools with any name (`crm/find.one`), and provider APIs accept different
//! characters and lengths. [`ToolNames`] maps every name of one request.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
};

use sha2::{Digest as _, Sha256};
use switchboard_domain::{ChatRequest, Part, ToolChoice};

/// Numbers of hexadecimal digits that the hash in an alias may have, such as 8 in `a_b_c14cddc0`,
/// the alias of the tool name `a/b`. A longer hash is used only if the alias with the shorter hash
/// is the name of another tool.
const HASH_DIGITS: [usize; 4] = [8, 16, 32, 64];
/// Beginning of the alias of a tool name such as `工具`, in which the provider accepts no character
/// except `_`. The hash follows.
const DEFAULT_NAME: &str = "tool";

/// Rule for the tool names that a provider API accepts: ASCII letters, digits, `_` and `-`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameRule {
    /// Maximum number of characters in a tool name. It is at least 16, so that aliases stay
    /// distinct.
    max_len: usize,
    /// Whether a tool name must begin with a letter or `_`.
    begins_with_letter: bool,
}

impl NameRule {
    /// Rule of Anthropic Messages: `^[a-zA-Z0-9_-]{1,128}$` (the SDK's `ToolParam.name`).
    pub const ANTHROPIC: Self = Self {
        max_len: 128,
        begins_with_letter: false,
    };
    /// Rule of OpenAI's APIs and of compatible servers: `^[a-zA-Z0-9_-]{1,64}$`.
    pub const OPENAI: Self = Self {
        max_len: 64,
        begins_with_letter: false,
    };
    /// Rule of Gemini: "must start with a letter or an underscore; a-z, A-Z, 0-9, underscores,
    /// dots, colons and dashes, with a maximum length of 64" (`FunctionDeclaration.name` of the
    /// SDKs). Dots and colons are not used: some versions of the API do not document them.
    pub const GEMINI: Self = Self {
        max_len: 64,
        begins_with_letter: true,
    };

    /// Returns whether the provider API accepts this name.
    pub fn allows_name(&self, name: &str) -> bool {
        (1..=self.max_len).contains(&name.len())
            && name.chars().all(is_name_char)
            && self.allows_first_char(name)
    }

    fn allows_first_char(&self, name: &str) -> bool {
        !self.begins_with_letter || name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }

    /// Returns an alias for a tool name: the name with `_` for each illegal character, shortened if
    /// necessary, then `_` and the first `digits` hexadecimal digits of its SHA-256.
    fn build_alias(&self, name: &str, digits: usize) -> String {
        let legal = name.chars().map(|c| if is_name_char(c) { c } else { '_' });
        let mut alias: String = legal.collect();
        if alias.chars().all(|c| c == '_') {
            DEFAULT_NAME.clone_into(&mut alias);
        }
        if !self.allows_first_char(&alias) {
            alias.insert(0, '_');
        }
        // Aliases are ASCII text, so that `truncate` cannot split a character.
        let hash = sha256_hex(name);
        let hash = &hash[..digits.min(self.max_len.saturating_sub(2)).min(hash.len())];
        alias.truncate(self.max_len.saturating_sub(hash.len() + 1));
        alias.push('_');
        alias.push_str(hash);
        alias
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Mapping between the tool names of one request and the names that are sent to the provider.
///
/// - A name that the rule allows stays.
/// - Another name gets an alias: the name with `_` for each illegal character, then `_` and the
///   first eight hexadecimal digits of its SHA-256. The alias depends only on the name, so that it
///   is the same in every run.
/// - Two names never have the same alias: if another name of the request equals the alias, more
///   digits are used.
///
/// Names in the history and in [`ToolChoice::Only`] are mapped too, so that a tool has one name in
/// the whole request.
///
/// ```
/// use serde_json::json;
/// use switchboard_domain::{ChatRequest, Message, ToolDefinition};
/// use switchboard_providers_common::tool_names::{NameRule, ToolNames};
///
/// let tool = |name| ToolDefinition::new(name, "", json!({"type": "object"}));
/// let tools = [tool("a/b"), tool("a_b")];
/// let request = ChatRequest::new([Message::user("Hello?")]).with_tools(tools);
/// let names = ToolNames::from_request(&request, NameRule::OPENAI);
/// assert_eq!(names.wire_name("a_b"), "a_b");
/// assert_eq!(names.wire_name("a/b"), "a_b_c14cddc0");
/// assert_eq!(names.declared_name("a_b_c14cddc0"), "a/b");
/// ```
#[derive(Debug, Clone)]
pub struct ToolNames {
    rule: NameRule,
    wire: HashMap<String, String>,
    declared: HashMap<String, String>,
}

impl ToolNames {
    /// Creates the mapping for all tool names in a request, under a provider's naming rule.
    pub fn from_request(request: &ChatRequest, rule: NameRule) -> Self {
        let is_changed = |name: &&str| !rule.allows_name(name);
        let changed: BTreeSet<&str> = request_tool_names(request).filter(is_changed).collect();
        let mut taken = HashSet::new();
        if !changed.is_empty() {
            taken.extend(request_tool_names(request).map(str::to_owned));
        }
        let mut wire = HashMap::new();
        let mut declared = HashMap::new();
        for name in changed {
            let mut aliases = HASH_DIGITS
                .iter()
                .map(|digits| rule.build_alias(name, *digits));
            // The `else` branch is not expected: the last candidate contains nearly the whole
            // SHA-256 of the name, so no other name of the request equals it.
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

    /// Returns the name under which a declared tool is sent to the provider. A name that is not in
    /// the request is converted by the same rule, but its alias may equal that of another tool.
    pub fn wire_name<'a>(&self, declared: &'a str) -> Cow<'a, str> {
        match self.wire.get(declared) {
            Some(alias) => Cow::Owned(alias.clone()),
            None if self.rule.allows_name(declared) => Cow::Borrowed(declared),
            None => Cow::Owned(self.rule.build_alias(declared, HASH_DIGITS[0])),
        }
    }

    /// Returns the declared name of the tool that was sent as `wire`. An unknown name, which the
    /// model invented, is returned unchanged.
    pub fn declared_name<'a>(&'a self, wire: &'a str) -> &'a str {
        self.declared.get(wire).map_or(wire, String::as_str)
    }

    /// Returns whether any name of the request has an alias.
    pub fn has_aliases(&self) -> bool {
        !self.wire.is_empty()
    }
}

/// Returns every tool name in a request: in the definitions, the tool choice and the history.
fn request_tool_names(request: &ChatRequest) -> impl Iterator<Item = &str> {
    let declared = request.tools.iter().map(|tool| tool.name.as_str());
    let chosen = match &request.tool_choice {
        ToolChoice::Only(names) => names.as_slice(),
        _ => &[],
    };
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let used = parts.filter_map(|part| match part {
        Part::ToolUse(tool_use) => Some(tool_use.name.as_str()),
        Part::ToolResult(result) => Some(result.name.as_str()),
        _ => None,
    });
    declared
        .chain(chosen.iter().map(String::as_str))
        .chain(used)
}

fn sha256_hex(name: &str) -> String {
    Sha256::digest(name)
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

#[cfg(test)]
#[path = "tool_names_tests.rs"]
mod tests;
