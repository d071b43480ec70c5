//! Approval of tool calls: the policy, the rules and the remembered decisions of people.
//!
//! [`ApprovalSettings`] is the configuration: an [`ApprovalPolicy`] for all tools and [`Rules`] for
//! some. [`RememberedDecisions`] are the remembered decisions of people.
//! [`ApprovalSettings::verdict_for_call`] combines them in this order:
//!
//! 1. A rule that denies.
//! 2. A remembered denial, also if the tool was redefined since.
//! 3. A rule that allows.
//! 4. A remembered approval, if a rule or the policy requires approval and the tool's definition is
//!    the approved one.
//! 5. The policy, for a tool without a rule.
//! 6. If the model's calls require approval, a call that a rule or the policy allows requires
//!    approval, unless the tool is read-only or a person approved all calls in advance.
//!
//! If a tool's definition changed, the verdict is the stricter one of two: with its annotations and
//! without them. A tool therefore cannot avoid approval by declaring itself read-only later. This
//! ends when a person allows or accepts the new definition.
//!
//! Rules can have several [layers](ApprovalSettings::layers), such as the user's rules and the
//! project's. The strictest layer wins.
//!
//! ```
//! use jiff::Timestamp;
//! use switchboard_domain::{Principal, ToolDefinition};
//! use switchboard_orchestration::policy::approval::{
//!     ApprovalPolicy, ApprovalRule, ApprovalSettings, ApprovalVerdict, RememberedDecisions,
//!     Requester, ToolCallToCheck,
//! };
//!
//! let mut approvals = ApprovalSettings::from(ApprovalPolicy::Ask);
//! let denial = ApprovalRule::deny_all_calls("production is out of bounds");
//! approvals.rules.push(denial.with_server("prod*"));
//! approvals.rules.push(ApprovalRule::allow_all_calls().with_tool("get_*"));
//!
//! let tool = ToolDefinition::new("get_weather", "Tells the weather.", serde_json::json!({}));
//! let me = Principal::default();
//! let requester = Requester { principal: &me, session: "s1" };
//! let (call, decisions) = (ToolCallToCheck::from_tool(&tool), RememberedDecisions::default());
//! let verdict = approvals.verdict_for_call(&call, &requester, &decisions, Timestamp::UNIX_EPOCH);
//! assert_eq!(verdict, ApprovalVerdict::Run);
//! ```

mod decisions;
mod rules;
mod shared_decisions;

use std::{cmp::Reverse, iter, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use switchboard_domain::{Principal, ToolAnnotations, ToolDefinition};

pub use decisions::{DecisionStatus, RememberedDecision, RememberedDecisions};
use rules::find_first_match;
pub use rules::{ApprovalRule, RuleVerdict, Rules};

use crate::tools::{arguments::hex_sha256, is_read_only};
pub use shared_decisions::SharedDecisions;

/// The approval policy for tools without a rule.
///
/// A tool that declares itself read-only runs without approval under every policy, unless its
/// definition changed. The annotation comes from the server, so configure only servers that you
/// trust. A tool that declares itself both read-only and destructive counts as not read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalPolicy {
    /// Every configured tool runs without approval.
    #[default]
    All,
    /// Tools that are not read-only require approval. If nobody can approve, they do not run.
    Ask,
    /// Tools that are not read-only do not run.
    None,
}

/// The verdict of an approval check. The variants are ordered from the mildest to the strictest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalVerdict {
    /// The tool call may run without approval.
    Run,
    /// The tool call requires approval.
    Ask {
        /// Whether the definition of the tool changed since a person last saw or approved it.
        redefined: bool,
    },
    /// The tool call must not run. The model gets a result with the reason.
    Refuse {
        /// Reason of the refusal for the model and the user, as a clause without a full stop.
        reason: String,
        /// Whether an earlier decision of a person was applied, not a rule or the policy.
        remembered: bool,
    },
}

impl ApprovalPolicy {
    /// Returns the verdict of the policy about a tool with these annotations, such as read-only.
    pub fn verdict_for_annotations(self, annotations: ToolAnnotations) -> ApprovalVerdict {
        match self {
            _ if is_read_only(annotations) => ApprovalVerdict::Run,
            Self::All => ApprovalVerdict::Run,
            Self::Ask => ApprovalVerdict::Ask { redefined: false },
            Self::None => ApprovalVerdict::Refuse {
                reason: "tools that can change data are disabled".to_owned(),
                remembered: false,
            },
        }
    }
}

/// Settings that decide which tool calls require approval.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalSettings {
    /// The policy for tools that no rule matches.
    pub policy: ApprovalPolicy,
    /// Whether a refusal by `policy` takes precedence over rules that allow a call. Set if the user
    /// or a client explicitly requests [`ApprovalPolicy::None`], for example on the command line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub policy_overrides_rules: bool,
    /// Whether a person approved all calls in advance, for example with `--approve all`.
    ///
    /// This replaces only the approvals that models with
    /// [`requires_approval`](switchboard_domain::ModelCapabilities::requires_approval) need; rules
    /// and policy still apply. No configuration file and no recipe can set this field.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approved_in_advance: bool,
    /// Lists of rules from different sources, such as one list per file. The first matching rule of
    /// each list counts, and the strictest of these rules decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Rules>,
    /// Rules that apply if no rule in `layers` matches a call. The first matching rule decides.
    pub rules: Rules,
    /// Servers whose tool calls require a new approval each time, even if a rule or an earlier
    /// decision allows the tool. Rules that deny calls still apply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub always_ask_servers: Vec<String>,
    /// Time until an approval request expires, serialized in seconds. `None` waits without limit,
    /// for runs that are stored while they wait.
    #[serde(
        with = "crate::policy::duration_serde",
        skip_serializing_if = "Option::is_none"
    )]
    pub expire_after: Option<Duration>,
    /// Time for which a decision with the scope "always" is remembered, serialized in seconds.
    /// `None` is unlimited.
    #[serde(
        with = "crate::policy::duration_serde",
        skip_serializing_if = "Option::is_none"
    )]
    pub remember_for: Option<Duration>,
}

impl From<ApprovalPolicy> for ApprovalSettings {
    fn from(policy: ApprovalPolicy) -> Self {
        Self {
            policy,
            ..Self::default()
        }
    }
}

impl ApprovalSettings {
    /// Returns the verdict about a tool call. The [module documentation](self) lists the order of
    /// the checks.
    pub fn verdict_for_call(
        &self,
        call: &ToolCallToCheck<'_>,
        requester: &Requester<'_>,
        decisions: &RememberedDecisions,
        now: Timestamp,
    ) -> ApprovalVerdict {
        let is_asked = self.always_requires_approval(call.tool);
        let answer = decisions
            .decision_about_call(requester, call, now)
            .filter(|_| !is_asked);
        let redefined = call.redefined || answer == Some(DecisionStatus::Redefined);
        let call = &call.with_redefined_tool(redefined);
        let without_annotations = redefined.then(|| call.without_annotations());
        let calls = || iter::once(call).chain(&without_annotations);
        let denial = calls().find_map(|call| {
            let rule = self.find_deciding_rule(call)?;
            (rule.verdict == RuleVerdict::Deny).then(|| rule.format_denial(call))
        });
        if let Some(reason) = denial {
            return ApprovalVerdict::Refuse {
                reason,
                remembered: false,
            };
        }
        if let Some(DecisionStatus::Deny { reason }) = &answer {
            return ApprovalVerdict::Refuse {
                reason: format_denial(reason.as_deref()),
                remembered: true,
            };
        }
        let verdict = calls()
            .map(|call| self.verdict_without_decisions(call))
            .max();
        match (verdict.unwrap_or(ApprovalVerdict::Run), answer) {
            // The user allowed the tool with its current definition, so no approval is needed.
            (ApprovalVerdict::Ask { .. }, Some(DecisionStatus::Allow)) => ApprovalVerdict::Run,
            (ApprovalVerdict::Ask { .. }, _) => ApprovalVerdict::Ask { redefined },
            (verdict, _) => verdict,
        }
    }

    /// Returns the verdict of the rules and the policy alone, without remembered decisions.
    fn verdict_without_decisions(&self, call: &ToolCallToCheck<'_>) -> ApprovalVerdict {
        let policy_verdict = self.policy.verdict_for_annotations(call.annotations);
        let verdict = match self.find_deciding_rule(call).map(|rule| rule.verdict) {
            _ if self.policy_overrides_rules
                && matches!(policy_verdict, ApprovalVerdict::Refuse { .. }) =>
            {
                policy_verdict
            }
            _ if self.always_requires_approval(call.tool) => {
                ApprovalVerdict::Ask { redefined: false }
            }
            Some(RuleVerdict::Allow) => ApprovalVerdict::Run,
            Some(_) => ApprovalVerdict::Ask { redefined: false },
            None => policy_verdict,
        };
        let needs_approval = call.requires_approval && !self.approved_in_advance;
        if verdict == ApprovalVerdict::Run && needs_approval && !is_read_only(call.annotations) {
            return ApprovalVerdict::Ask { redefined: false };
        }
        verdict
    }

    /// Returns the rule that decides about a tool call, or `None` if no rule matches the call.
    fn find_deciding_rule(&self, call: &ToolCallToCheck<'_>) -> Option<&ApprovalRule> {
        let matching_rules = self
            .layers
            .iter()
            .filter_map(|rules| find_first_match(rules, call));
        matching_rules
            // Selects the strictest rule, and the first one of several equally strict rules.
            .min_by_key(|rule| Reverse(rule.verdict))
            .or_else(|| find_first_match(&self.rules, call))
    }

    /// Returns whether every call of this tool requires a new approval, despite earlier decisions.
    pub fn always_requires_approval(&self, tool: &ToolDefinition) -> bool {
        let server = tool.origin.as_ref().map(|origin| &origin.server);
        server.is_some_and(|server| self.always_ask_servers.contains(server))
    }

    /// Returns the time at which an approval request that is made at `now` expires, or `None` if it
    /// never expires.
    pub fn request_expiry(&self, now: Timestamp) -> Option<Timestamp> {
        self.expire_after.map(|after| add_duration(now, after))
    }

    /// Returns the time at which a decision that is made at `now` is forgotten, or `None` if it is
    /// remembered without limit.
    pub fn decision_expiry(&self, now: Timestamp) -> Option<Timestamp> {
        self.remember_for.map(|span| add_duration(now, span))
    }
}

/// A tool call in an approval check: the tool, whether the tool's definition changed, and whether
/// the model's calls need approval.
#[derive(Debug, Clone, Copy)]
pub struct ToolCallToCheck<'a> {
    tool: &'a ToolDefinition,
    /// Annotations that the rules and the policy use: the annotations that the tool declares, or
    /// MCP's defaults for a tool whose definition changed.
    annotations: ToolAnnotations,
    redefined: bool,
    requires_approval: bool,
}

impl<'a> ToolCallToCheck<'a> {
    /// Creates a call of `tool` for an approval check. By default, the tool's definition is
    /// unchanged and the model's calls require no approval.
    pub fn from_tool(tool: &'a ToolDefinition) -> Self {
        Self {
            tool,
            annotations: tool.annotations,
            redefined: false,
            requires_approval: false,
        }
    }

    /// Sets whether the model's calls of tools that are not read-only require approval. See
    /// [`requires_approval`](switchboard_domain::ModelCapabilities::requires_approval).
    #[must_use]
    pub fn with_required_approval(mut self, requires_approval: bool) -> Self {
        self.requires_approval = requires_approval;
        self
    }

    /// Sets whether the definition of the tool changed since a person last saw or approved it.
    #[must_use]
    pub fn with_redefined_tool(mut self, redefined: bool) -> Self {
        self.redefined = redefined;
        self
    }

    /// Returns the same call without the annotations that the tool declares, so that MCP's defaults
    /// apply: not read-only, and destructive.
    fn without_annotations(mut self) -> Self {
        self.annotations = ToolAnnotations::default();
        self
    }
}

/// The principal and the session of the run that requests a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requester<'a> {
    /// Principal (user and tenant) of the run.
    pub principal: &'a Principal,
    /// Id of the session, or of the run if the run has no session.
    pub session: &'a str,
}

/// Returns the SHA-256 of a tool's [canonical text](ToolDefinition::canonical_text) in hexadecimal.
///
/// The MCP host uses the same digests
/// ([`ToolHostChange::ToolRedefined`](switchboard_domain::ToolHostChange::ToolRedefined)).
pub fn tool_fingerprint(tool: &ToolDefinition) -> String {
    hex_sha256(&tool.canonical_text())
}

/// Returns `now` plus `span`, at most [`Timestamp::MAX`].
fn add_duration(now: Timestamp, span: Duration) -> Timestamp {
    SignedDuration::try_from(span)
        .ok()
        .and_then(|span| now.checked_add(span).ok())
        .unwrap_or(Timestamp::MAX)
}

/// Returns the text for the model about a tool call that a person denied.
pub(crate) fn format_denial(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("the user declined it: {reason}"),
        None => "the user declined it".to_owned(),
    }
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
