use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{JsonObject, SharedObject, ToolAnnotations, ToolOrigin, ToolUse};

/// Requests decisions whether tools may run, from a person or a program.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Approver: Send + Sync {
    /// Waits for a decision. Dropping the future withdraws the request.
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision;

    /// Waits for the first decision about any of these requests and returns its index.
    ///
    /// Dropping the future withdraws all requests. The default requests only the first decision,
    /// for implementations that show one request at a time.
    async fn decide_any(&self, requests: &[ApprovalRequest]) -> (usize, ApprovalDecision) {
        match requests.first() {
            Some(first) => (0, self.decide(first).await),
            None => (0, ApprovalDecision::NobodyThere),
        }
    }

    /// Waits for an early decision about one of these calls of a run and returns its index.
    ///
    /// The calls are not requested yet, so nothing is shown. The decision is final and is stored.
    /// The default never returns, for implementations without early decisions. `calls` are ids of
    /// tool uses.
    async fn early_decision(&self, run: &str, calls: &[String]) -> (usize, ApprovalDecision) {
        let _ = (run, calls);
        std::future::pending().await
    }
}

/// A request to approve one call. [`ApprovalRequest::new`] leaves the optional fields empty.
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
    /// The annotations of the tool. Untrusted.
    #[serde(default)]
    pub annotations: ToolAnnotations,
    /// The description of the tool. Untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The repaired input that will run, if it differs from the one in `tool_use`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<SharedObject>,
    /// A fingerprint of the tool's definition. An approval is valid only for this definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Whether the definition has changed since the tool was last seen or approved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redefined: bool,
    /// The end of the request, RFC 3339 in UTC. A later decision is [`ApprovalDecision::Expired`].
    /// `None` means no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

impl ApprovalRequest {
    /// Returns a request about one call without further information.
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

    /// Returns the input that would run: an object, or the malformed text.
    pub fn input_shown(&self) -> Arc<Value> {
        let mended = self.input.as_ref();
        mended.map_or_else(|| self.tool_use.input.shown(), SharedObject::to_value)
    }
}

/// An approval decision for one tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// It may run.
    Allow {
        /// The input to use instead of the model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<JsonObject>,
        /// The validity of the decision.
        #[serde(default)]
        scope: ApprovalScope,
    },
    /// It may not run.
    Deny {
        /// Why, for the model to see.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The validity of the decision.
        #[serde(default)]
        scope: ApprovalScope,
    },
    /// No person is available. The tool does not run, and the model gets that as the result.
    NobodyThere,
    /// No decision before [`ApprovalRequest::expires_at`]. The tool does not run, and the model
    /// receives a result that states the reason.
    Expired,
    /// The decision comes later. The run stops here and can be stored. Continuing it requests the
    /// decision again.
    Later,
}

/// The validity of a decision.
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
