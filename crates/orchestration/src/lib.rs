//! The tool loop: what happens between a question and its answer.
//!
//! [`Run`] is the loop as a value: a serializable state machine that never awaits. It says what to
//! do next ([`Step`]), takes the result back, and keeps the laws: every tool use gets exactly one
//! result, malformed input is never executed, limits hold. [`Agent`] drives a run with the ports of
//! the domain (a model, a tool host, somebody who approves) and tells everything that happens as one
//! numbered stream of [`RunEvent`]s, of which every surface is a projection. A [journal](persistence) keeps runs: what is
//! told of them is stored before anybody sees it, and they go on after the end of their process.
//!
//! ```no_run
//! # async fn example(model: std::sync::Arc<dyn switchboard_domain::ChatModel>,
//! #     tools: std::sync::Arc<dyn switchboard_domain::ToolHost>) {
//! use futures_util::StreamExt;
//! use switchboard_orchestration::{Agent, RunEventKind};
//!
//! let mut run = Agent::new(model).with_tools(tools).ask("What is the account value of customer 42?");
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
pub use options::{Recovery, RunOptions};
pub use persistence::BegunWith;
pub use policy::{
    approval::{ApprovalPolicy, SharedDecisions},
    limits::Limits,
};
pub use report::{
    AnswerItem, Outcome, RecordedResult, RunError, RunErrorKind, RunReport, ToolCallRecord,
};
pub use run::{
    CallPurpose, ModelCall, PlannedCall, RestoreError, Run, SnapshotMark, SteadyClock, SteadyTime,
    Step, ToolCallOutcome, UnexpectedInput, UnsupportedFormat,
};
pub use tools::ToolFailure;
