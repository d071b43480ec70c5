//! Which tool calls may run, which need a person's word, and which answers are remembered.
//!
//! [`Approvals`] is what is configured: a [policy](ApprovalPolicy) for every tool and [`Rules`] for
//! some. [`Decisions`] is what people answered so far. [`Approvals::verdict`] holds a call against both:
//!
//! 1. A rule that denies, denies.
//! 2. A remembered no is a no, also for a tool that was redefined since.
//! 3. A rule that allows, allows.
//! 4. Where a rule or the policy asks, a remembered yes answers, if the tool's definition is the one that
//!    was said yes to.
//! 5. Without a rule, the policy decides.
//! 6. Where the model's calls need approval, what a rule or the policy allows is asked for, unless the tool is
//!    read-only or a person approved all calls in advance.
//!
//! The annotations of a tool whose definition changed do not count until a person allows or accepts the new
//! definition: the verdict is the stricter one of two, with these annotations and without any. So a tool does
//! not get around a question by declaring itself read-only later.
//!
//! Rules may come in several [layers](Approvals::layers), such as a person's own and a project's: none of
//! them loosens what another one says.
//!
//! So a remembered yes answers a question and lifts no prohibition, and nobody gets out of a no.
//!
//! ```
//! use jiff::Timestamp;
//! use switchboard_domain::{Principal, ToolDefinition};
//! use switchboard_orchestration::policy::approval::{
//!     ApprovalPolicy, Approvals, Asker, Call, Decisions, Rule, Verdict,
//! };
//!
//! let mut approvals = Approvals::from(ApprovalPolicy::Ask);
//! approvals.rules.push(Rule::deny("production is out of bounds").server("prod*"));
//! approvals.rules.push(Rule::allow().tool("get_*"));
//!
//! let tool = ToolDefinition::new("get_weather", "Tells the weather.", serde_json::json!({}));
//! let me = Principal::default();
//! let asker = Asker { principal: &me, session: "s1" };
//! let verdict = approvals.verdict(&Call::of(&tool), &asker, &Decisions::default(), Timestamp::UNIX_EPOCH);
//! assert_eq!(verdict, Verdict::Run);
//! ```

mod decisions;
mod fingerprint;
mod rules;
mod shared;

use std::{cmp::Reverse, iter, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use switchboard_domain::{Principal, ToolAnnotations, ToolDefinition, ToolOrigin};

pub use decisions::{Answer, Decisions, Remembered};
pub use fingerprint::fingerprint;
pub use rules::{Rule, RuleVerdict, Rules};
pub use shared::SharedDecisions;

/// Which tool calls need a person's word, where no rule says. A tool that says it is read-only runs
/// without asking under every policy, unless its definition changed; the annotation is the server's own
/// statement, so only configure servers you trust. A tool that says it is read-only and destructive contradicts itself and counts as one that may
/// change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalPolicy {
    /// Every configured tool may run.
    #[default]
    All,
    /// Tools that do not say they are read-only are asked for. With nobody to ask they are not run.
    Ask,
    /// Tools that do not say they are read-only are not run.
    None,
}

/// What is to become of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// It may run.
    Run,
    /// Somebody has to say yes.
    Ask {
        /// The tool's definition is not what it was when it was last seen or approved.
        redefined: bool,
    },
    /// It is not run.
    Refuse {
        /// Why, for the model and the person; a clause without a full stop.
        reason: String,
    },
}

impl Verdict {
    /// Returns a number that is higher for a stricter verdict.
    fn strictness(&self) -> u8 {
        match self {
            Self::Run => 0,
            Self::Ask { .. } => 1,
            Self::Refuse { .. } => 2,
        }
    }
}

impl ApprovalPolicy {
    /// What the policy alone says of a call.
    pub fn verdict(self, annotations: ToolAnnotations) -> Verdict {
        match self {
            _ if only_reads(annotations) => Verdict::Run,
            Self::All => Verdict::Run,
            Self::Ask => Verdict::Ask { redefined: false },
            Self::None => Verdict::Refuse {
                reason: "tools that may change something are switched off".to_owned(),
            },
        }
    }
}

/// Whether a tool says, without contradicting itself, that it changes nothing.
pub fn only_reads(annotations: ToolAnnotations) -> bool {
    annotations.read_only == Some(true) && annotations.destructive != Some(true)
}

/// What is configured about approvals.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Approvals {
    /// For tools that no rule is about.
    pub policy: ApprovalPolicy,
    /// What the policy refuses no rule allows or asks about: it was said by somebody who is there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub policy_first: bool,
    /// A person approved the calls in advance, such as by `--approve all` on the command line. It answers for a
    /// model whose calls [need approval](switchboard_domain::ModelCapabilities::requires_approval); rules and
    /// the policy hold as without it. No configuration file and no recipe sets it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub given_in_person: bool,
    /// Lists of rules of different origin, such as one for each file. Each gives the word of its first rule
    /// that matches a call, and the strictest of these words counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Rules>,
    /// The first that matches a call decides, where no layer has a rule for it.
    pub rules: Rules,
    /// Servers each of whose calls is asked for, whatever else allows it, and whatever was answered before: the word
    /// is what the call waits for. What a rule denies stays denied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked_servers: Vec<String>,
    /// How long a question waits for its answer; in seconds where it is stored. `None` waits for ever,
    /// which is for runs that are stored while they wait.
    #[serde(
        with = "crate::policy::seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub expire_after: Option<Duration>,
    /// How long an answer for "always" holds; in seconds where it is stored. `None` is for ever.
    #[serde(
        with = "crate::policy::seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub remember_for: Option<Duration>,
}

impl From<ApprovalPolicy> for Approvals {
    fn from(policy: ApprovalPolicy) -> Self {
        Self {
            policy,
            ..Self::default()
        }
    }
}

impl Approvals {
    /// What is to become of a call; see the [module](self) for the order.
    pub fn verdict(
        &self,
        call: &Call<'_>,
        asker: &Asker<'_>,
        decisions: &Decisions,
        now: Timestamp,
    ) -> Verdict {
        let is_asked = self.is_always_asked(call.tool);
        let answer = decisions.answer(asker, call, now).filter(|_| !is_asked);
        let redefined = call.redefined || answer == Some(Answer::Redefined);
        let call = &call.redefined(redefined);
        let without_annotations = redefined.then(|| call.without_annotations());
        let calls = || iter::once(call).chain(&without_annotations);
        let denial = calls().find_map(|call| {
            let rule = self.rule(call)?;
            (rule.verdict == RuleVerdict::Deny).then(|| rule.denial(call))
        });
        if let Some(reason) = denial {
            return Verdict::Refuse { reason };
        }
        if let Some(Answer::Deny { reason }) = &answer {
            return Verdict::Refuse {
                reason: declined(reason.as_deref()),
            };
        }
        let verdicts = calls().map(|call| self.unanswered(call));
        let verdict = verdicts.max_by_key(Verdict::strictness);
        match (verdict.unwrap_or(Verdict::Run), answer) {
            // The person allowed exactly this definition, whatever the host reported of older ones.
            (Verdict::Ask { .. }, Some(Answer::Allow)) => Verdict::Run,
            (Verdict::Ask { .. }, _) => Verdict::Ask { redefined },
            (verdict, _) => verdict,
        }
    }

    /// Returns what rules and policy decide, without the answers of people.
    fn unanswered(&self, call: &Call<'_>) -> Verdict {
        let of_policy = self.policy.verdict(call.annotations);
        let verdict = match self.rule(call).map(|rule| rule.verdict) {
            _ if self.policy_first && matches!(of_policy, Verdict::Refuse { .. }) => of_policy,
            _ if self.is_always_asked(call.tool) => Verdict::Ask { redefined: false },
            Some(RuleVerdict::Allow) => Verdict::Run,
            Some(_) => Verdict::Ask { redefined: false },
            None => of_policy,
        };
        let is_unapproved = call.requires_approval && !self.given_in_person;
        if verdict == Verdict::Run && is_unapproved && !only_reads(call.annotations) {
            return Verdict::Ask { redefined: false };
        }
        verdict
    }

    /// The rule that decides about a call.
    fn rule(&self, call: &Call<'_>) -> Option<&Rule> {
        let of_layers = self
            .layers
            .iter()
            .filter_map(|rules| rules.first_match(call));
        of_layers
            // Of several that are equally strict the first, whose reason is told.
            .min_by_key(|rule| Reverse(rule.verdict))
            .or_else(|| self.rules.first_match(call))
    }

    /// Whether each call of a tool is asked for, so that no answer about it is remembered.
    pub fn is_always_asked(&self, tool: &ToolDefinition) -> bool {
        let server = tool.origin.as_ref().map(|origin| &origin.server);
        server.is_some_and(|server| self.asked_servers.contains(server))
    }

    /// Until when a question that is asked now can be answered.
    pub fn expires_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.expire_after.map(|after| later(now, after))
    }

    /// Until when an answer that is given now is remembered, at most.
    pub fn remembered_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.remember_for.map(|span| later(now, span))
    }
}

/// The tool that is to be called.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    tool: &'a ToolDefinition,
    /// The annotations that rules and policy read.
    annotations: ToolAnnotations,
    redefined: bool,
    requires_approval: bool,
}

impl<'a> Call<'a> {
    /// A call of this tool.
    pub fn of(tool: &'a ToolDefinition) -> Self {
        Self {
            tool,
            annotations: tool.annotations,
            redefined: false,
            requires_approval: false,
        }
    }

    /// Sets whether the model's calls need a person's approval unless the tool is read-only
    /// ([`ModelCapabilities::requires_approval`](switchboard_domain::ModelCapabilities::requires_approval)).
    #[must_use]
    pub fn requires_approval(mut self, requires_approval: bool) -> Self {
        self.requires_approval = requires_approval;
        self
    }

    /// Sets whether the tool's definition changed since it was last seen, approved or asked about.
    #[must_use]
    pub fn redefined(mut self, redefined: bool) -> Self {
        self.redefined = redefined;
        self
    }

    /// Returns the call as one of a tool that declares no annotations.
    fn without_annotations(mut self) -> Self {
        self.annotations = ToolAnnotations::default();
        self
    }

    fn origin(&self) -> Option<&ToolOrigin> {
        self.tool.origin.as_ref()
    }
}

/// For whom it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker<'a> {
    /// The person.
    pub principal: &'a Principal,
    /// The session's id, or the run's where there is no session.
    pub session: &'a str,
}

/// The end of a span; the end of time if the sum is beyond it.
fn later(now: Timestamp, span: Duration) -> Timestamp {
    SignedDuration::try_from(span)
        .ok()
        .and_then(|span| now.checked_add(span).ok())
        .unwrap_or(Timestamp::MAX)
}

/// What the model is told of a no.
fn declined(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("the person declined it: {reason}"),
        None => "the person declined it".to_owned(),
    }
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
