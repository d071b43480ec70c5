//! Keeps of runs what outlives them: their audit, and what was decided for good.

use std::sync::Arc;

use async_trait::async_trait;
use switchboard_domain::ApprovalScope;
use switchboard_orchestration::{RunEvent, RunEventKind};
use switchboard_server::Observer;

use crate::{decisions::KeptDecisions, observe::Recorder};

/// Watches one run.
pub(super) struct Watch {
    recorder: Recorder,
    decisions: Arc<KeptDecisions>,
}

impl Watch {
    pub(super) fn new(recorder: Recorder, decisions: Arc<KeptDecisions>) -> Self {
        Self {
            recorder,
            decisions,
        }
    }
}

#[async_trait]
impl Observer for Watch {
    async fn observe(&mut self, event: &RunEvent) {
        self.recorder.observe(event).await;
        let may_be_for_good = match &event.kind {
            RunEventKind::ToolApproved {
                scope, remembered, ..
            } => *scope == ApprovalScope::Always && !remembered,
            // It does not say for how long.
            RunEventKind::ToolDenied { .. } => true,
            _ => false,
        };
        if may_be_for_good {
            let decisions = Arc::clone(&self.decisions);
            // A small file, and only if something was decided that is not in it.
            let kept = tokio::task::spawn_blocking(move || decisions.keep()).await;
            if let Ok(Err(error)) = kept {
                tracing::error!(%error, "what was decided is not kept");
            }
        }
    }
}
