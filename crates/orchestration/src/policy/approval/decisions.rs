//! Remembered approval decisions of people about tools.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use switchboard_domain::{ApprovalDecision, ApprovalScope, Principal, ToolDefinition, ToolOrigin};

use super::{Requester, ToolCallToCheck, tool_fingerprint};

/// Maximum number of remembered decisions per person that apply only to one session. Without a
/// maximum, they could accumulate, because the program may not notice the end of a session.
pub(super) const MAX_SESSION_DECISIONS: usize = 1_000;

/// Remembered approval decisions of all persons. They contain no tool inputs and can be stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RememberedDecisions {
    entries: Vec<RememberedDecision>,
}

/// An approval decision of a person that applies to later calls of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RememberedDecision {
    /// The person who decided. The decision applies only to calls of this person.
    pub principal: Principal,
    /// Session that the decision applies to. `None` applies to all sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Name of the tool as the model sees it.
    pub name: String,
    /// Server of the tool, and the tool's name on this server. `None` for a tool without a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ToolOrigin>,
    /// The [`tool_fingerprint`] of the tool definition that the person allowed or denied.
    pub fingerprint: String,
    /// Whether the person allowed the tool (`true`) or denied it (`false`).
    pub allowed: bool,
    /// Reason that the person gave for a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time at which the decision expires. `None` if it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// The effect of the remembered decisions of a person on a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionStatus {
    /// The person allowed the tool with its current definition.
    Allow,
    /// The person denied the tool, with this or an earlier definition.
    Deny {
        /// Reason that the person gave for the denial.
        reason: Option<String>,
    },
    /// The person allowed the tool, but its definition has changed since.
    Redefined,
}

impl RememberedDecisions {
    /// Remembers a person's decision about a tool for later calls. Replaces the person's earlier
    /// decisions about this tool that have the same scope, or the session of `requester`. Returns
    /// whether the decision is remembered; a decision about one call only is not.
    ///
    /// A decision for [`ApprovalScope::Always`] expires at `expires_at`; see
    /// [`ApprovalSettings::decision_expiry`](super::ApprovalSettings::decision_expiry). A decision
    /// for a session also ends with the session
    /// ([`RememberedDecisions::forget_session_decisions`]). At most 1,000 session decisions per
    /// person are remembered; older ones are removed.
    pub fn remember_decision(
        &mut self,
        requester: &Requester<'_>,
        tool: &ToolDefinition,
        decision: &ApprovalDecision,
        expires_at: Option<Timestamp>,
    ) -> bool {
        let (allowed, reason, scope) = match decision {
            ApprovalDecision::Allow { scope, .. } => (true, None, *scope),
            ApprovalDecision::Deny { reason, scope } => (false, reason.clone(), *scope),
            ApprovalDecision::NobodyThere | ApprovalDecision::Expired | ApprovalDecision::Later => {
                return false;
            }
        };
        let session = match scope {
            ApprovalScope::Once => return false,
            ApprovalScope::Session => Some(requester.session.to_owned()),
            ApprovalScope::Always => None,
        };
        self.remove_matching_decisions(|entry| {
            let is_in_session = entry.session.as_deref() == Some(requester.session);
            entry.is_about_tool(tool)
                && entry.principal == *requester.principal
                && (entry.session == session || is_in_session)
        });
        self.entries.push(RememberedDecision {
            principal: requester.principal.clone(),
            session,
            name: tool.name.clone(),
            origin: tool.origin.clone(),
            fingerprint: tool_fingerprint(tool),
            allowed,
            reason,
            expires_at,
        });
        self.remove_excess_decisions(requester.principal);
        true
    }

    fn remove_excess_decisions(&mut self, principal: &Principal) {
        let is_of_session =
            |entry: &RememberedDecision| entry.session.is_some() && entry.principal == *principal;
        let count = self.entries.iter().filter(|it| is_of_session(it)).count();
        let mut too_many = count.saturating_sub(MAX_SESSION_DECISIONS);
        self.remove_matching_decisions(|entry| {
            let is_removed = too_many > 0 && is_of_session(entry);
            too_many -= usize::from(is_removed);
            is_removed
        });
    }

    /// Returns the effect of the person's remembered decisions on a tool call. Returns `None` if no
    /// valid decision is about the called tool. A denial takes precedence over an approval.
    pub fn decision_about_call(
        &self,
        requester: &Requester<'_>,
        call: &ToolCallToCheck<'_>,
        now: Timestamp,
    ) -> Option<DecisionStatus> {
        let applies = |entry: &&RememberedDecision| {
            let session = entry.session.as_deref();
            entry.is_about_tool(call.tool)
                && entry.principal == *requester.principal
                && session.is_none_or(|session| session == requester.session)
                && entry.expires_at.is_none_or(|end| now < end)
        };
        let mut fingerprint_now = None;
        let mut answer = None;
        for entry in self.entries.iter().filter(applies) {
            if !entry.allowed {
                return Some(DecisionStatus::Deny {
                    reason: entry.reason.clone(),
                });
            }
            let shown = fingerprint_now.get_or_insert_with(|| tool_fingerprint(call.tool));
            if entry.fingerprint == *shown {
                answer = Some(DecisionStatus::Allow);
            } else if answer.is_none() {
                answer = Some(DecisionStatus::Redefined);
            }
        }
        answer
    }

    /// Returns all remembered decisions, oldest first.
    pub fn remembered_decisions(&self) -> &[RememberedDecision] {
        &self.entries
    }

    /// Removes a person's decisions about the tool with this name. Returns the number of removed
    /// decisions.
    pub fn revoke_tool_decisions(&mut self, principal: &Principal, name: &str) -> usize {
        self.remove_matching_decisions(|entry| entry.principal == *principal && entry.name == name)
    }

    /// Removes one remembered decision. Returns whether it existed.
    pub fn remove_decision(&mut self, answer: &RememberedDecision) -> bool {
        self.remove_matching_decisions(|entry| entry == answer) > 0
    }

    /// Removes a person's decisions for an ended session. Returns the number of removed decisions.
    pub fn forget_session_decisions(&mut self, principal: &Principal, session: &str) -> usize {
        self.remove_matching_decisions(|entry| {
            entry.principal == *principal && entry.session.as_deref() == Some(session)
        })
    }

    /// Removes expired decisions and returns their number.
    ///
    /// Expired decisions are never applied, even before they are removed.
    pub fn remove_expired_decisions(&mut self, now: Timestamp) -> usize {
        self.remove_matching_decisions(|entry| entry.expires_at.is_some_and(|end| now >= end))
    }

    fn remove_matching_decisions(
        &mut self,
        mut is_over: impl FnMut(&RememberedDecision) -> bool,
    ) -> usize {
        let before = self.entries.len();
        self.entries.retain(|entry| !is_over(entry));
        before - self.entries.len()
    }
}

impl RememberedDecision {
    /// Returns whether the decision is about this tool. The server and the tool's name there are
    /// compared too, because another server can offer a tool with the same name.
    fn is_about_tool(&self, tool: &ToolDefinition) -> bool {
        self.name == tool.name && self.origin == tool.origin
    }
}
