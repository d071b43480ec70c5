//! The tool loop: what happens between a question and its answer.
//!
//! [`Run`] is the loop as a value: a serializable state machine that never awaits. It says what to
//! do next ([`Step`]), takes the result back, and keeps the laws: every tool use gets exactly one
//! result, malformed input is never executed, limits hold. [`Agent`] drives a run with the ports of
//! the domain (a model, a tool host, somebody who approves) and tells everything that happens as one
//! numbered stream of [`RunEvent`]s, of which every surface is a projection. A [`journal`] keeps runs: what is
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

mod answered;
mod begun;
pub mod checkpoint;
mod decisions;
mod driver;
pub mod event;
pub mod failure;
pub mod history;
pub mod journal;
pub mod observe;
pub mod options;
pub mod pattern;
mod per_definition;
pub mod policy;
pub mod questions;
pub mod recipe;
pub mod report;
mod run;
mod seconds;
mod steady_clock;
pub mod strategy;
pub mod tokens;
pub mod tools;

pub use begun::BegunWith;
pub use decisions::SharedDecisions;
pub use driver::{Agent, CancelHandle, Clock, Prices, RunStream};
pub use event::{QuestionAction, RunEvent, RunEventKind, RunPhase};
pub use failure::ToolFailure;
pub use options::{Recovery, RunOptions};
pub use policy::{approval::ApprovalPolicy, limits::Limits};
pub use report::{
    AnswerItem, Outcome, RecordedResult, RunError, RunErrorKind, RunReport, ToolCallRecord,
};
pub use run::{
    CallPurpose, ModelCall, PlannedCall, RestoreError, Run, SnapshotMark, Step, ToolAnswer,
    UnexpectedInput, UnknownVersion,
};
pub use steady_clock::{SteadyClock, SteadyTime};
