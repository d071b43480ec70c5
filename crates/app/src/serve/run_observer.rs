//! Records the runs of the HTTP server in the audit and saves remembered decisions.

use std::sync::Arc;

use async_trait::async_trait;
use switchboard_domain::ApprovalScope;
use switchboard_orchestration::{RunEvent, RunEventKind};
use switchboard_server::RunEventObserver;

use crate::{observe::AuditRecorder, storage::approval_decisions::SavedDecisions};

/// Observer of one run: writes its events to the audit and saves new approval decisions.
pub(super) struct RunObserver {
    pub(super) recorder: AuditRecorder,
    pub(super) decisions: Arc<SavedDecisions>,
}

#[async_trait]
impl RunEventObserver for RunObserver {
    async fn observe_event(&mut self, event: &RunEvent) {
        self.recorder.record_event(event).await;
        let may_be_remembered = match &event.kind {
            RunEventKind::ToolApproved {
                scope, remembered, ..
            } => *scope == ApprovalScope::Always && !remembered,
            // The event does not contain the scope of a new denial. The scope may be `Always`, so
            // the decisions are saved.
            RunEventKind::ToolDenied { remembered, .. } => !remembered,
            _ => false,
        };
        if may_be_remembered {
            let decisions = Arc::clone(&self.decisions);
            let saved = tokio::task::spawn_blocking(move || decisions.save_decisions()).await;
            if let Ok(Err(error)) = saved {
                tracing::error!(%error, "failed to save approval decisions");
            }
        }
    }
}
