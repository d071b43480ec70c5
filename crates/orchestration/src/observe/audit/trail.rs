//! Conversion of the events of one run to audit records.

use std::sync::Arc;

use switchboard_domain::{Principal, redact::Redactor};

use super::{AuditKind, AuditRecord, CostFunction, RunEventReducer};
use crate::{RunEvent, RunEventKind};

/// Settings of an audit trail: the session and user of the run, the redaction, and the optional
/// content of the records.
#[derive(Clone, Default, derive_more::Debug)]
pub struct AuditOptions {
    /// Session id of the run, if the run belongs to a session.
    pub session_id: Option<String>,
    /// Principal (user and tenant) on whose behalf the run executes.
    pub principal: Option<Principal>,
    /// Redactor for tool inputs, tool results and reasons of denials.
    pub redactor: Redactor,
    /// Whether the audit records contain the results of tools. Off by default.
    pub results: bool,
    /// Function that computes the cost of a model call. `None` leaves the costs out of the records.
    #[debug(skip)]
    pub cost: Option<CostFunction>,
}

/// Converter from the events of one run to audit records, in order.
///
/// A run that is resumed in another process gets a new trail there. Its records have the tool name
/// `unknown` for earlier calls.
#[derive(Debug)]
pub struct AuditTrail {
    options: AuditOptions,
    fold: RunEventReducer,
}

impl AuditTrail {
    /// Creates an audit trail for a run that has not started.
    pub fn new(options: AuditOptions) -> Self {
        Self {
            options,
            fold: RunEventReducer::default(),
        }
    }

    /// Converts one run event to the audit records of the actions that the event reports.
    pub fn create_records(&mut self, event: &RunEvent) -> Vec<AuditRecord> {
        let facts = self.fold.reduce_event(event, self.options.cost.as_ref());
        let records = facts.into_iter().map(|kind| AuditRecord {
            time: event.time,
            run_id: event.run_id.to_string(),
            seq: event.seq,
            session_id: self.options.session_id.clone(),
            principal: self.options.principal.clone(),
            kind: self.redact_record(kind, &event.kind),
        });
        records.collect()
    }

    fn redact_record(&self, mut kind: AuditKind, event: &RunEventKind) -> AuditKind {
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
