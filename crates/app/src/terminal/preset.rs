//! Answers that were given before the questions came.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use switchboard_domain::{ApprovalDecision, ApprovalRequest, Approver};

use super::is_somebody_there;

/// An answer that was given before the question came.
#[derive(Debug, Clone)]
pub struct PresetAnswer {
    /// The tool use that it is about.
    pub id: String,
    /// The fingerprint of the tool's definition when it was given: a yes is a yes to this one.
    pub fingerprint: Option<String>,
    /// The answer.
    pub decision: ApprovalDecision,
}

/// Gives answers that are known already, each once, and leaves every other question to somebody else.
pub struct PresetApprover {
    answers: Mutex<HashMap<String, PresetAnswer>>,
    otherwise: Arc<dyn Approver>,
}

impl PresetApprover {
    /// With these answers, and somebody for every other question.
    pub fn new(
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
            // The tool is another one than when the run was stored.
            Some(preset)
                if matches!(preset.decision, ApprovalDecision::Allow { .. })
                    && preset.fingerprint != request.fingerprint =>
            {
                (!is_somebody_there()).then_some(ApprovalDecision::Later)
            }
            Some(preset) => Some(preset.decision),
        };
        match known {
            Some(answer) => answer,
            None => self.otherwise.decide(request).await,
        }
    }
}

impl fmt::Debug for PresetApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PresetApprover").finish_non_exhaustive()
    }
}
