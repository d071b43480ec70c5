//! The loop of model calls and tool calls that answers a question.
//!
//! [`Run`] is the loop as a serializable state machine that never awaits. It returns the next
//! action ([`RunStep`]), accepts the result of the action, and enforces the rules: every tool use
//! gets exactly one result, malformed input is never executed, and no limit is exceeded. [`Agent`]
//! drives a run with implementations of the domain's traits (a model, a tool host, an approver). It
//! emits one numbered stream of [`RunEvent`]s, which all user interfaces and APIs consume. Durable
//! runs ([`persistence`]) store each event before it is emitted, and another process can resume
//! them.
//!
//! ```no_run
//! # async fn example(model: std::sync::Arc<dyn switchboard_domain::ChatModel>,
//! #     tools: std::sync::Arc<dyn switchboard_domain::ToolHost>) {
//! use futures_util::StreamExt;
//! use switchboard_orchestration::{Agent, RunEventKind};
//!
//! let mut run = Agent::new(model).with_tools(tools).ask("What is the balance of customer 42?");
//! while let Some(event) = run.next().await {
//!     if let RunEventKind::TextDelta { text } = event.kind {
//!         print!("{text}");
//!     }
//! }
//! # }
//! ```
#![deny(missing_docs)]

mod driver;
pub mod event;
pub mod observe;
pub mod options;
pub mod persistence;
pub mod policy;
pub mod recipe;
pub mod report;
mod run;
pub mod strategy;
pub mod tools;

pub use driver::{Agent, CancelHandle, Clock, Prices, RunStream, questions};
pub use event::{QuestionAction, RunEvent, RunEventKind, RunPhase};
pub use options::{ResponseRetries, RunOptions};
pub use persistence::RunParameters;
pub use policy::{
    approval::{ApprovalPolicy, SharedDecisions},
    limits::Limits,
};
pub use report::{
    AnswerItem, Outcome, RecordedResult, RunError, RunErrorKind, RunReport, ToolCallRecord,
};
pub use run::{
    ModelCall, ModelCallPurpose, MonotonicClock, MonotonicTime, PlannedCall, RestoreError, Run,
    RunStep, SnapshotPosition, ToolCallOutcome, UnexpectedInput, UnsupportedFormat,
};
pub use tools::ToolFailure;
