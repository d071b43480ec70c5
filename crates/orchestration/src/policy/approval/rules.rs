//! Rules for single tools.

use serde::{Deserialize, Deserializer, Serialize};

use super::{Call, only_reads};
use crate::tools::pattern::Pattern;

/// Rules in the order in which they are tried: the first that matches a call decides. So the narrow ones
/// go first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rules(pub Vec<Rule>);

impl Rules {
    /// Appends a rule.
    pub fn push(&mut self, rule: Rule) {
        self.0.push(rule);
    }

    /// The rule that decides about a call.
    pub fn first_match(&self, call: &Call<'_>) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.matches(call))
    }
}

impl FromIterator<Rule> for Rules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Self(rules.into_iter().collect())
    }
}

/// What is to be done with calls of some tools. All that is set has to match; a rule with nothing set
/// matches every call.
///
/// What a tool does not say about itself is read as MCP's defaults have it, which is the cautious way:
/// it may change something, may destroy what it changes, may not be repeated and reaches the open
/// world. What a tool says is its server's own word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The name of the server in the configuration. Tools without a server (functions of the program)
    /// match no rule that names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Pattern>,
    /// Any of these is the tool's own name or the one the model knows it by. One pattern or a list.
    ///
    /// For a rule that allows, an own name with `__` in it does not count: a server could call a tool
    /// like the tool of another server.
    #[serde(
        default,
        deserialize_with = "one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tool: Vec<Pattern>,
    /// It changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// What it changes may be lost; no tool that only reads is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Calling it again with the same input changes nothing more; every tool that only reads is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// It reaches beyond a closed world of data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
    /// Its definition changed since it was last seen or approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redefined: Option<bool>,
    /// What is done with the call.
    pub verdict: RuleVerdict,
    /// Why it is denied, for the model and the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a rule says, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleVerdict {
    /// It runs.
    Allow,
    /// Somebody is asked, also about a tool that only reads.
    Ask,
    /// It does not run.
    Deny,
}

impl Rule {
    /// Every call runs, until narrowed.
    pub fn allow() -> Self {
        Self::new(RuleVerdict::Allow)
    }

    /// Every call is asked for, until narrowed.
    pub fn ask() -> Self {
        Self::new(RuleVerdict::Ask)
    }

    /// No call runs, until narrowed.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self {
            reason: Some(reason.into()),
            ..Self::new(RuleVerdict::Deny)
        }
    }

    /// Narrows it to a server.
    #[must_use]
    pub fn server(mut self, pattern: impl Into<Pattern>) -> Self {
        self.server = Some(pattern.into());
        self
    }

    /// Narrows it to tools; called again, to these or those.
    #[must_use]
    pub fn tool(mut self, pattern: impl Into<Pattern>) -> Self {
        self.tool.push(pattern.into());
        self
    }

    fn new(verdict: RuleVerdict) -> Self {
        Self {
            server: None,
            tool: Vec::new(),
            read_only: None,
            destructive: None,
            idempotent: None,
            open_world: None,
            redefined: None,
            verdict,
            reason: None,
        }
    }

    /// Whether it is about this call.
    pub fn matches(&self, call: &Call<'_>) -> bool {
        let says = call.annotations;
        let reads = only_reads(says);
        let wants = |wanted: Option<bool>, is: bool| wanted.is_none_or(|wanted| wanted == is);
        self.matches_server(call)
            && self.matches_name(call)
            && wants(self.read_only, reads)
            && wants(self.destructive, !reads && says.destructive != Some(false))
            && wants(self.idempotent, reads || says.idempotent == Some(true))
            && wants(self.open_world, says.open_world != Some(false))
            && wants(self.redefined, call.redefined)
    }

    fn matches_server(&self, call: &Call<'_>) -> bool {
        let Some(pattern) = &self.server else {
            return true;
        };
        call.origin()
            .is_some_and(|origin| pattern.matches(&origin.server))
    }

    fn matches_name(&self, call: &Call<'_>) -> bool {
        let own = call
            .origin()
            .map(|origin| origin.tool.as_str())
            .filter(|own| self.verdict != RuleVerdict::Allow || !own.contains("__"));
        let is_meant = |pattern: &Pattern| {
            pattern.matches(&call.tool.name) || own.is_some_and(|own| pattern.matches(own))
        };
        self.tool.is_empty() || self.tool.iter().any(is_meant)
    }

    /// What the model is told of a denied call.
    pub(super) fn denial(&self, call: &Call<'_>) -> String {
        match &self.reason {
            Some(reason) => format!("a rule denies it: {}", reason.trim_end_matches('.')),
            None => format!("a rule denies `{}`", call.tool.name),
        }
    }
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pattern>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(Pattern),
        Many(Vec<Pattern>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(pattern) => vec![pattern],
        OneOrMany::Many(patterns) => patterns,
    })
}
