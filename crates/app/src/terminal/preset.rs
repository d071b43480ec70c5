//! Approval decisions that were made before the run requests them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use switchboard_domain::{ApprovalDecision, ApprovalRequest, Approver};

use super::is_interactive;

/// An early decision.
#[derive(Debug, Clone)]
pub(crate) struct PresetAnswer {
    /// The id of the tool use.
    pub(crate) id: String,
    /// The fingerprint of the tool definition at the time of the decision.
    pub(crate) fingerprint: Option<String>,
    pub(crate) decision: ApprovalDecision,
}

/// Returns early decisions, each once, and delegates other requests.
pub(crate) struct PresetApprover {
    answers: Mutex<HashMap<String, PresetAnswer>>,
    otherwise: Arc<dyn Approver>,
}

impl PresetApprover {
    /// Creates an approver with early decisions and a delegate.
    pub(crate) fn new(
        answers: impl IntoIterator<Item = PresetAnswer>,
        otherwise: Arc<dyn Approver>,
    ) -> Self {
        Self {
            answers: Mutex::new(answers.into_iter().map(|it| (it.id.clone(), it)).collect()),
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
        let known = match known {
            None => None,
            // The tool has changed since the run was stored.
            Some(preset)
                if matches!(preset.decision, ApprovalDecision::Allow { .. })
                    && preset.fingerprint != request.fingerprint =>
            {
                (!is_interactive()).then_some(ApprovalDecision::Later)
            }
            Some(preset) => Some(preset.decision),
        };
        match known {
            Some(answer) => answer,
            None => self.otherwise.decide(request).await,
        }
    }
}
