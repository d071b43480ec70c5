//! Approval decisions that were made before the run requests them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use switchboard_domain::{ApprovalDecision, ApprovalRequest, Approver};

use super::is_interactive;

/// An early decision about a tool use.
#[derive(Debug, Clone)]
pub(crate) struct PresetDecision {
    /// The fingerprint of the tool definition at the time of the decision.
    pub(crate) fingerprint: Option<String>,
    pub(crate) decision: ApprovalDecision,
}

/// Approver that returns each early decision once and delegates other requests.
pub(crate) struct PresetApprover {
    answers: Mutex<HashMap<String, PresetDecision>>,
    otherwise: Arc<dyn Approver>,
}

impl PresetApprover {
    /// Creates an approver with early decisions by the id of the tool use, and a delegate.
    pub(crate) fn new(
        answers: HashMap<String, PresetDecision>,
        otherwise: Arc<dyn Approver>,
    ) -> Self {
        Self {
            answers: Mutex::new(answers),
            otherwise,
        }
    }
}

#[async_trait]
impl Approver for PresetApprover {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        let known = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.remove(&request.tool_use.id)
        };
        match known {
            // The tool has changed since the run was stored.
            Some(preset)
                if matches!(preset.decision, ApprovalDecision::Allow { .. })
                    && preset.fingerprint != request.fingerprint =>
            {
                if is_interactive() {
                    self.otherwise.decide(request).await
                } else {
                    ApprovalDecision::Later
                }
            }
            Some(preset) => preset.decision,
            None => self.otherwise.decide(request).await,
        }
    }
}
