//! Audit records of runs: who did what, when and with which result.
//!
//! [`AuditTrail`] converts the events of a run to [`AuditRecord`]s, one JSON line each, in order.
//! The caller stores them. Records hold no text of the conversation. Tool inputs are redacted by a
//! [`Redactor`](switchboard_domain::redact::Redactor) and limited in size.

mod event_reducer;
mod record;
mod trail;

pub use event_reducer::CostFunction;
pub(super) use event_reducer::RunEventReducer;
pub(crate) use event_reducer::serialized_name;
pub use record::{
    ApprovalStage, AuditKind, AuditRecord, AuditedApproval, AuditedModelCall, AuditedQuestion,
    AuditedRun, AuditedToolCall, DecisionSource, ModelCallResult, QuestionStage, RunStage,
    ToolCallStage,
};
pub use trail::{AuditOptions, AuditTrail};
