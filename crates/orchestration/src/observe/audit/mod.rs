//! Audit records of runs: who did what, when and with which result.
//!
//! [`AuditTrail`] converts the events of a run to [`AuditRecord`]s, one JSON line each, in order.
//! The caller stores them. Records hold no text of the conversation. Tool inputs are redacted by a
//! [`Redactor`] and limited in size.

mod known;
mod names;
mod record;
mod redact;
mod secrets;
mod trail;

pub use known::KnownSecrets;
pub use record::{
    Approval, AuditKind, AuditRecord, Decider, Decision, ModelCall, ModelCallEnd, QuestionEntry,
    QuestionMoment, RunEntry, RunMoment, ToolCallEntry, ToolCallMoment,
};
pub use redact::{Redactor, SizeLimits};
pub use trail::{AuditOptions, AuditTrail};
