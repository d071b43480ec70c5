//! The audit records of one run.

use std::{fmt, sync::Arc};

use switchboard_domain::{Principal, redact::Redactor};

use super::{AuditKind, AuditRecord, CostFunction, RunFold};
use crate::{RunEvent, RunEventKind};

/// The contents of audit records beyond the events.
#[derive(Clone, Default)]
pub struct AuditOptions {
    /// Session of the run.
    pub session_id: Option<String>,
    /// Principal of the run.
    pub principal: Option<Principal>,
    /// Redacts inputs, results and reasons.
    pub redactor: Redactor,
    /// Records the results of tools as well. Off by default.
    pub results: bool,
    /// Computes the costs of model calls.
    pub cost: Option<CostFunction>,
}

impl fmt::Debug for AuditOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditOptions")
            .field("session_id", &self.session_id)
            .field("principal", &self.principal)
            .field("redactor", &self.redactor)
            .field("results", &self.results)
            .finish_non_exhaustive()
    }
}

/// Converts the events of one run to audit records, in order.
///
/// A run that is resumed in another process has another trail there. Its records name the tools of
/// earlier calls `unknown`.
#[derive(Debug)]
pub struct AuditTrail {
    options: AuditOptions,
    fold: RunFold,
}

impl AuditTrail {
    /// Creates the trail of one run that has not started.
    pub fn new(options: AuditOptions) -> Self {
        Self {
            options,
            fold: RunFold::default(),
        }
    }

    /// Returns the records of an event: none, one or several.
    pub fn observe(&mut self, event: &RunEvent) -> Vec<AuditRecord> {
        let facts = self.fold.observe(event, self.options.cost.as_ref());
        let records = facts.into_iter().map(|kind| AuditRecord {
            time: event.time,
            run_id: event.run_id.to_string(),
            seq: event.seq,
            session_id: self.options.session_id.clone(),
            principal: self.options.principal.clone(),
            kind: self.redacted(kind, &event.kind),
        });
        records.collect()
    }

    fn redacted(&self, mut kind: AuditKind, event: &RunEventKind) -> AuditKind {
        let redactor = &self.options.redactor;
        let redact = |text: &mut String| *text = redactor.redact_text(text);
        match &mut kind {
            AuditKind::Run(_) => {}
            AuditKind::ModelCall(call) => call.request_id.iter_mut().for_each(redact),
            AuditKind::ToolCall(call) => {
                redact(&mut call.tool);
                call.input = Arc::new(redactor.redact_value(&call.input));
                call.result = match event {
                    RunEventKind::ToolFinished {
                        content,
                        structured,
                        ..
                    } if self.options.results => Some(match structured {
                        Some(structured) => redactor.redact_value(structured),
                        None => redactor.redact_content(content),
                    }),
                    _ => None,
                };
            }
            AuditKind::Approval(approval) => {
                redact(&mut approval.tool);
                approval.reason.iter_mut().for_each(redact);
            }
            AuditKind::Question(question) => question.server.iter_mut().for_each(redact),
        }
        kind
    }
}

#[cfg(test)]
#[path = "trail_tests.rs"]
mod tests;
