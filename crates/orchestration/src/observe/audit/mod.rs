//! What models and tools were asked and did, for whoever must account for it.
//!
//! [`AuditProjection`] makes [`AuditRecord`]s of a run's events: one JSON line each, in the order in
//! which things happened, never changed afterwards. Where they are kept is decided outside. No record
//! holds what the person or the model said; inputs of tools are in it without what [`Redactor`] takes
//! for a secret, and cut to a size.

mod known;
mod names;
mod projection;
mod record;
mod redact;
mod secrets;

pub use known::KnownSecrets;
pub use projection::{AuditOptions, AuditProjection, CostOf};
pub use record::{
    Approval, AuditKind, AuditRecord, Decider, Decision, ModelCall, ModelCallEnd, QuestionEntry,
    QuestionMoment, RunEntry, RunMoment, ToolCallEntry, ToolCallMoment,
};
pub use redact::{Redactor, SizeLimits};
