use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{JsonObject, SharedObject, ToolAnnotations, ToolOrigin, ToolUse};

/// Requests decisions on whether tool calls may run, from a person or a program.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Approver: Send + Sync {
    /// Waits for the decision about one tool call. Dropping the future withdraws the request.
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision;

    /// Waits for the first decision about any of these requests. Returns the decision and the index
    /// of its request in `requests`.
    ///
    /// Dropping the future withdraws all requests. The default implementation calls
    /// [`Approver::decide`] for the first request only, for approvers that show one request at a
    /// time. It returns [`ApprovalDecision::NobodyThere`] if `requests` is empty.
    async fn await_decision(&self, requests: &[ApprovalRequest]) -> (usize, ApprovalDecision) {
        match requests.first() {
            Some(first) => (0, self.decide(first).await),
            None => (0, ApprovalDecision::NobodyThere),
        }
    }

    /// Waits for an early decision, which a person makes before the run requests an approval. `run`
    /// is the id of the run, and `calls` are the ids of the tool uses that the decision may be
    /// about. Returns the decision and the index of its tool use in `calls`.
    ///
    /// No prompt is shown, because no approval of these calls was requested. The decision is final
    /// and is stored. The default implementation never returns, for approvers without early
    /// decisions.
    async fn await_early_decision(&self, run: &str, calls: &[String]) -> (usize, ApprovalDecision) {
        let _ = (run, calls);
        std::future::pending().await
    }
}

/// A request to approve one tool call. [`ApprovalRequest::new`] leaves the optional fields empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// Id of the run that waits for the decision.
    pub run_id: String,
    /// The tool call that needs a decision, with its input.
    pub tool_use: ToolUse,
    /// The server of the tool, and the tool's name there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ToolOrigin>,
    /// The annotations of the tool. They are untrusted, because the server supplies them.
    #[serde(default)]
    pub annotations: ToolAnnotations,
    /// The description of the tool. It is untrusted, because the server supplies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The input that the tool will receive if the call is approved, after the repair of faults in
    /// the model's input. `None` if the tool will receive the input in `tool_use`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<SharedObject>,
    /// The SHA-256 of the tool's definition in hexadecimal. A remembered approval is valid only for
    /// the definition with this hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Whether the definition has changed since the tool was last seen or approved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redefined: bool,
    /// Time at which the request expires (RFC 3339, UTC). A later decision is
    /// [`ApprovalDecision::Expired`]. `None` means no expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

impl ApprovalRequest {
    /// Returns an approval request for one tool call, without the optional fields.
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

    /// Returns the input that the approval prompt shows: the repaired input if it exists, otherwise
    /// the original object or the text of malformed input.
    pub fn displayed_input(&self) -> Arc<Value> {
        let mended = self.input.as_ref();
        mended.map_or_else(
            || self.tool_use.input.to_display_value(),
            SharedObject::to_value,
        )
    }
}

/// An approval decision for one tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// The call may run.
    Allow {
        /// The edited input, which replaces the input of the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<JsonObject>,
        /// The calls that the decision applies to.
        #[serde(default)]
        scope: ApprovalScope,
    },
    /// The call must not run. The model receives a tool result that states the denial.
    Deny {
        /// The reason of the denial, which the model reads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The calls that the decision applies to.
        #[serde(default)]
        scope: ApprovalScope,
    },
    /// No person is available. The tool does not run, and the tool result states the reason.
    NobodyThere,
    /// The request expired at [`ApprovalRequest::expires_at`] without a decision. The tool does not
    /// run, and the tool result states the reason.
    Expired,
    /// The approver decides at a later time. A stored run stops, and requests the decision again
    /// when it is resumed. A run that is not stored treats this as [`Self::NobodyThere`].
    Later,
}

/// The calls that an approval decision applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// The decision applies to this call only.
    #[default]
    Once,
    /// The decision applies to all calls of this tool in this session.
    Session,
    /// The decision applies to all calls of this tool, in all sessions of the same principal
    /// (tenant and user).
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
        let tool_use = ToolUse::new("1", "t", ToolInput::parse_input("{}"));
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
