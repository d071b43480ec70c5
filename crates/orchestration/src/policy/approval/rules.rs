//! Rules that allow tool calls, deny them or require approval.

use serde::{Deserialize, Deserializer, Serialize};

use super::ToolCallToCheck;
use crate::tools::{is_read_only, name_pattern::NamePattern};

/// Approval rules in order. The first rule that matches a call decides.
pub type Rules = Vec<ApprovalRule>;

pub(super) fn find_first_match<'r>(
    rules: &'r Rules,
    call: &ToolCallToCheck<'_>,
) -> Option<&'r ApprovalRule> {
    rules.iter().find(|rule| rule.matches_call(call))
}

/// A rule for tool calls. A call must match all conditions that are set. A rule without conditions
/// matches every call.
///
/// Missing annotations have MCP's defaults: the tool is not read-only, is destructive, is not
/// idempotent and reaches the open world. Annotations come from the tool's server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a map of settings")]
pub struct ApprovalRule {
    /// Pattern of the server's configured name. Tools without a server, such as Rust functions, do
    /// not match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<NamePattern>,
    /// Name patterns. One of them must match the tool's name on its server, or the name that the
    /// model sees. A configuration contains one pattern or a list.
    ///
    /// If the rule allows calls, its patterns do not apply to a name on the server that contains
    /// `__`. The model sees names such as `server__tool`, so a server could otherwise imitate the
    /// tool of another server.
    #[serde(
        default,
        deserialize_with = "deserialize_one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tool: Vec<NamePattern>,
    /// Whether the rule applies to read-only tools (`true`) or to other tools (`false`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Whether the rule applies to destructive tools (`true`) or to other tools (`false`). A
    /// read-only tool is not destructive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Whether the rule applies to idempotent tools (`true`) or to other tools (`false`). A
    /// read-only tool is idempotent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Whether the rule applies to tools that reach the open world (`true`) or to other tools
    /// (`false`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
    /// Whether the rule applies to tools whose definition changed since it was last seen or
    /// approved (`true`) or to other tools (`false`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redefined: Option<bool>,
    /// The verdict about calls that match the rule.
    pub verdict: RuleVerdict,
    /// Reason of a denial by this rule, for the model and the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The verdict of a rule. The variants are ordered from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleVerdict {
    /// A matching call runs without approval, even if the [`ApprovalPolicy`](super::ApprovalPolicy)
    /// requires approval. A stricter rule of another rule list in
    /// [`ApprovalSettings::layers`](super::ApprovalSettings::layers) takes precedence.
    Allow,
    /// A matching call requires approval, even if the tool is read-only. An earlier approval of the
    /// tool can be sufficient.
    Ask,
    /// A matching call does not run, even if a person allowed the tool earlier. The model reads
    /// [`ApprovalRule::reason`].
    Deny,
}

impl ApprovalRule {
    /// Returns a rule without conditions, which allows every call.
    pub fn allow_all_calls() -> Self {
        Self::new(RuleVerdict::Allow)
    }

    /// Returns a rule without conditions, which requires approval of every call.
    pub fn ask_for_all_calls() -> Self {
        Self::new(RuleVerdict::Ask)
    }

    /// Returns a rule without conditions, which denies every call.
    pub fn deny_all_calls(reason: impl Into<String>) -> Self {
        Self {
            reason: Some(reason.into()),
            ..Self::new(RuleVerdict::Deny)
        }
    }

    /// Restricts the rule to servers whose name matches the pattern.
    #[must_use]
    pub fn with_server(mut self, pattern: impl Into<NamePattern>) -> Self {
        self.server = Some(pattern.into());
        self
    }

    /// Adds a pattern of tool names, so that the rule applies only to matching tools.
    #[must_use]
    pub fn with_tool(mut self, pattern: impl Into<NamePattern>) -> Self {
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

    /// Returns whether the call meets all conditions of the rule.
    pub fn matches_call(&self, call: &ToolCallToCheck<'_>) -> bool {
        let annotations = call.annotations;
        let read_only = is_read_only(annotations);
        let matches = |condition: Option<bool>, value: bool| condition.is_none_or(|it| it == value);
        self.matches_server(call)
            && self.matches_tool_name(call)
            && matches(self.read_only, read_only)
            && matches(
                self.destructive,
                !read_only && annotations.destructive != Some(false),
            )
            && matches(
                self.idempotent,
                read_only || annotations.idempotent == Some(true),
            )
            && matches(self.open_world, annotations.open_world != Some(false))
            && matches(self.redefined, call.redefined)
    }

    fn matches_server(&self, call: &ToolCallToCheck<'_>) -> bool {
        let server = call.tool.server_name();
        self.server
            .as_ref()
            .is_none_or(|pattern| server.is_some_and(|server| pattern.matches(server)))
    }

    fn matches_tool_name(&self, call: &ToolCallToCheck<'_>) -> bool {
        let name_on_server = call.tool.original_name();
        let may_match = self.verdict != RuleVerdict::Allow || !name_on_server.contains("__");
        let matches_pattern = |pattern: &NamePattern| {
            pattern.matches(&call.tool.name) || may_match && pattern.matches(name_on_server)
        };
        self.tool.is_empty() || self.tool.iter().any(matches_pattern)
    }

    /// Returns the text for the model about a call that this rule denies.
    pub(super) fn format_denial(&self, call: &ToolCallToCheck<'_>) -> String {
        match &self.reason {
            Some(reason) => format!("a rule denies it: {}", reason.trim_end_matches('.')),
            None => format!("a rule denies `{}`", call.tool.name),
        }
    }
}

fn deserialize_one_or_many<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<NamePattern>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrManyPatterns {
        One(NamePattern),
        Many(Vec<NamePattern>),
    }
    Ok(match OneOrManyPatterns::deserialize(deserializer)? {
        OneOrManyPatterns::One(pattern) => vec![pattern],
        OneOrManyPatterns::Many(patterns) => patterns,
    })
}
