//! Answers that were given before the questions came.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use switchboard_domain::{ApprovalDecision, ApprovalRequest, Approver};

/// Gives answers that are known already, each once, and leaves every other question to somebody else.
pub struct PresetApprover {
    answers: Mutex<HashMap<String, ApprovalDecision>>,
    otherwise: Arc<dyn Approver>,
}

impl PresetApprover {
    /// Answers by the ids of the tool uses.
    pub fn new(
        answers: impl IntoIterator<Item = (String, ApprovalDecision)>,
        otherwise: Arc<dyn Approver>,
    ) -> Self {
        Self {
            answers: Mutex::new(answers.into_iter().collect()),
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
