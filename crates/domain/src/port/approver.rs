use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{JsonObject, SharedObject, ToolAnnotations, ToolOrigin, ToolUse};

/// Asks a person, or whoever decides in a person's stead, whether a tool may run.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Approver: Send + Sync {
    /// Waits for the decision. Dropping the future withdraws the question.
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision;

    /// Waits for the first decision about any of these, which wait together: its place among them, and what was
    /// decided. Dropping the future withdraws the questions. Whoever shows one question at a time leaves this as
    /// it is: the first is asked.
    async fn decide_any(&self, requests: &[ApprovalRequest]) -> (usize, ApprovalDecision) {
        match requests.first() {
            Some(first) => (0, self.decide(first).await),
            None => (0, ApprovalDecision::NobodyThere),
        }
    }

    /// Waits until somebody has given a word about one of these calls of a run without being asked: they wait, and it
    /// is not their turn yet. Its place among them, and the word, which counts and is stored at once. Nothing is shown
    /// by this, and where nobody gives words so, it never ends. `calls` are ids of tool uses.
    async fn word_ahead(&self, run: &str, calls: &[String]) -> (usize, ApprovalDecision) {
        let _ = (run, calls);
        std::future::pending().await
    }
}

/// What is to be approved. Made with [`ApprovalRequest::new`]; what is not known stays as it is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The run that waits.
    pub run_id: String,
    /// The call with its input.
    pub tool_use: ToolUse,
    /// Where the tool lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ToolOrigin>,
    /// What the tool says about itself; untrusted.
    #[serde(default)]
    pub annotations: ToolAnnotations,
    /// What the tool says it does; untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The input that will run, where it is not the one in `tool_use`: the model's was repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<SharedObject>,
    /// A fingerprint of the tool's definition, to be compared only: a yes is a yes to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The definition is not what it was when the tool was last seen or approved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redefined: bool,
    /// Until when an answer counts, RFC 3339 in UTC; `None` for ever. An answer after that is
    /// [`ApprovalDecision::Expired`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

impl ApprovalRequest {
    /// A request about one call of which nothing else is known.
    pub fn new(run_id: impl Into<String>, tool_use: ToolUse) -> Self {
        Self {
            run_id: run_id.into(),
            tool_use,
            origin: None,
            annotations: ToolAnnotations::default(),
            description: None,
            input: None,
            fingerprint: None,
            redefined: false,
            expires_at: None,
        }
    }

    /// The input that would run: the object, or the text that is none.
    pub fn input_shown(&self) -> Arc<Value> {
        let mended = self.input.as_ref();
        mended.map_or_else(|| self.tool_use.input.shown(), SharedObject::to_value)
    }

    /// The same about this tool use.
    #[must_use]
    pub fn about(&self, tool_use: ToolUse) -> Self {
        let Self {
            run_id,
            tool_use: _,
            origin,
            annotations,
            description,
            input,
            fingerprint,
            redefined,
            expires_at,
        } = self;
        Self {
            run_id: run_id.clone(),
            tool_use,
            origin: origin.clone(),
            annotations: *annotations,
            description: description.clone(),
            input: input.clone(),
            fingerprint: fingerprint.clone(),
            redefined: *redefined,
            expires_at: expires_at.clone(),
        }
    }
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// It may run.
    Allow {
        /// The input to use instead of the model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<JsonObject>,
        /// For how long the answer holds.
        #[serde(default)]
        scope: ApprovalScope,
    },
    /// It may not run.
    Deny {
        /// Why, for the model to see.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// For how long the answer holds.
        #[serde(default)]
        scope: ApprovalScope,
    },
    /// Nobody is there to ask. The tool is not run, and the model is told so.
    NobodyThere,
    /// Nobody answered before [`ApprovalRequest::expires_at`]. The tool is not run, and the model is
    /// told so.
    Expired,
    /// Nobody can answer now, and somebody will later: the question stays open. The run stops here and
    /// can be stored; whoever continues it is asked again.
    Later,
}

/// For how long an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    #[default]
    Once,
    /// Calls of this tool in this session.
    Session,
    /// Calls of this tool from now on.
    Always,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolInput;
    use serde_json::json;

    #[test]
    fn what_was_stored_before_there_were_scopes_and_expiry_can_be_read() {
        let request: ApprovalRequest = serde_json::from_value(json!({
            "run_id": "r",
            "tool_use": {"id": "1", "name": "t", "input": {"object": {}}},
        }))
        .unwrap();
        let tool_use = ToolUse::new("1", "t", ToolInput::parse("{}"));
        assert_eq!(request, ApprovalRequest::new("r", tool_use));

        let denial: ApprovalDecision =
            serde_json::from_value(json!({"decision": "deny", "reason": "no"})).unwrap();
        assert_eq!(
            denial,
            ApprovalDecision::Deny {
                reason: Some("no".into()),
                scope: ApprovalScope::Once,
            }
        );
    }
}
