//! Answers that are remembered.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use switchboard_domain::{ApprovalDecision, ApprovalScope, Principal, ToolDefinition, ToolOrigin};

use super::{Asker, Call, fingerprint};

/// Answers for sessions that are remembered of one person at most: sessions may end where nobody tells of it.
pub(super) const MOST_OF_SESSIONS: usize = 1_000;

/// What people answered, for more than one call. It can be stored and taken up by another process; it
/// holds no inputs of tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Decisions {
    entries: Vec<Remembered>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Remembered {
    /// Whose answer it is. It holds for nobody else.
    pub principal: Principal,
    /// The session it was given in and is good for; `None` for every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The tool's name as the model knows it.
    pub name: String,
    /// Where the tool lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ToolOrigin>,
    /// The [`fingerprint`] of the definition that was shown.
    pub fingerprint: String,
    /// It was a yes.
    pub allowed: bool,
    /// Why it was a no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// From when on it is forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// What is remembered of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It may run.
    Allow,
    /// It may not.
    Deny {
        /// Why.
        reason: Option<String>,
    },
    /// It might, but its definition is another one now.
    Redefined,
}

impl Decisions {
    /// Remembers an answer about a tool as its scope says, in the place of earlier ones of the same or a
    /// smaller scope. Returns whether there was anything to remember: an answer for one call is not.
    ///
    /// From `expires_at` on an answer for [`ApprovalScope::Always`] is forgotten; see
    /// [`Approvals::remembered_until`](super::Approvals::remembered_until). One for a session ends with
    /// it ([`Decisions::forget_session`]), and with `expires_at` if that is sooner. Of those for sessions a person has
    /// 1,000 at most; of more, the oldest are forgotten, and asked about anew.
    pub fn remember(
        &mut self,
        asker: &Asker<'_>,
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
            ApprovalScope::Session => Some(asker.session.to_owned()),
            ApprovalScope::Always => None,
        };
        self.forget(|entry| {
            let here = entry.session.as_deref() == Some(asker.session);
            entry.is_about(tool)
                && entry.principal == *asker.principal
                && (entry.session == session || here)
        });
        self.entries.push(Remembered {
            principal: asker.principal.clone(),
            session,
            name: tool.name.clone(),
            origin: tool.origin.clone(),
            fingerprint: fingerprint(tool),
            allowed,
            reason,
            expires_at,
        });
        self.bound(asker.principal);
        true
    }

    fn bound(&mut self, principal: &Principal) {
        let is_of_session =
            |entry: &Remembered| entry.session.is_some() && entry.principal == *principal;
        let count = self.entries.iter().filter(|it| is_of_session(it)).count();
        let mut too_many = count.saturating_sub(MOST_OF_SESSIONS);
        self.forget(|entry| {
            let goes = too_many > 0 && is_of_session(entry);
            too_many -= usize::from(goes);
            goes
        });
    }

    /// What is remembered of a call's tool. Of several answers a no goes before a yes.
    pub fn answer(&self, asker: &Asker<'_>, call: &Call<'_>, now: Timestamp) -> Option<Answer> {
        let holds = |entry: &&Remembered| {
            let session = entry.session.as_deref();
            entry.is_about(call.tool)
                && entry.principal == *asker.principal
                && session.is_none_or(|session| session == asker.session)
                && entry.expires_at.is_none_or(|end| now < end)
        };
        let mut fingerprint_now = None;
        let mut answer = None;
        for entry in self.entries.iter().filter(holds) {
            if !entry.allowed {
                return Some(Answer::Deny {
                    reason: entry.reason.clone(),
                });
            }
            let shown = fingerprint_now.get_or_insert_with(|| fingerprint(call.tool));
            if entry.fingerprint == *shown {
                answer = Some(Answer::Allow);
            } else if answer.is_none() {
                answer = Some(Answer::Redefined);
            }
        }
        answer
    }

    /// All of them, oldest first.
    pub fn entries(&self) -> &[Remembered] {
        &self.entries
    }

    /// Forgets what a person said of a tool, by the name the model knows it by; returns how many
    /// answers that were.
    pub fn revoke(&mut self, principal: &Principal, name: &str) -> usize {
        self.forget(|entry| entry.principal == *principal && entry.name == name)
    }

    /// Forgets one answer, and no other one about its tool; returns whether it was there.
    pub fn take_back(&mut self, answer: &Remembered) -> bool {
        self.forget(|entry| entry == answer) > 0
    }

    /// Forgets what was said for a session that is over; returns how many answers that were.
    pub fn forget_session(&mut self, principal: &Principal, session: &str) -> usize {
        self.forget(|entry| {
            entry.principal == *principal && entry.session.as_deref() == Some(session)
        })
    }

    /// Drops what has expired; returns how many answers that were. Nothing expired is ever used, pruned
    /// or not.
    pub fn prune(&mut self, now: Timestamp) -> usize {
        self.forget(|entry| entry.expires_at.is_some_and(|end| now >= end))
    }

    fn forget(&mut self, mut is_over: impl FnMut(&Remembered) -> bool) -> usize {
        let before = self.entries.len();
        self.entries.retain(|entry| !is_over(entry));
        before - self.entries.len()
    }
}

impl Remembered {
    /// Two servers, or a server and a function of the program, may take turns in using one name.
    fn is_about(&self, tool: &ToolDefinition) -> bool {
        self.name == tool.name && self.origin == tool.origin
    }
}
