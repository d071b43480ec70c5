//! The language of Switchboard: messages, tool use, finish reasons, streamed events, errors, and
//! the ports through which the core sees the outside.
//!
//! This crate knows no HTTP, no MCP, no runtime and no file system. Every other crate of the
//! workspace speaks it, and nothing of a provider's wire leaks into it: what a provider needs back
//! unchanged travels as opaque [`ProviderState`].
//!
//! | module | holds |
//! |---|---|
//! | [`message`] | [`Role`], [`Message`], [`Part`] and the plain parts |
//! | [`media`] | images, audio and documents |
//! | [`provider_state`] | what only its minter may read again |
//! | [`tool`] | [`ToolDefinition`], [`ToolAnnotations`], [`ToolChoice`], [`ToolChoiceOutcome`] |
//! | [`schema_dialect`] | which schemas of tools mean the same in each dialect |
//! | [`tool_use`], [`shared_object`] | [`ToolUse`], [`ToolInput`], [`SharedObject`] |
//! | [`tool_result`] | [`ToolResult`], [`ToolContent`] |
//! | [`finish`] | [`FinishReason`] |
//! | [`usage`] | [`Usage`] |
//! | [`model`] | [`ModelId`], [`ModelCapabilities`] |
//! | [`request`], [`response`] | [`ChatRequest`], [`ChatResponse`], [`Warning`] |
//! | [`event`], [`grammar`], [`accumulator`] | [`ModelEvent`], the order they come in, and the one place that assembles them |
//! | [`answer_meter`] | [`AnswerMeter`], the size of an answer |
//! | [`error`] | [`ModelError`] |
//! | [`json_depth`] | limits on the nesting of JSON |
//! | [`redact`] | removal of secrets (feature `redact`) |
//! | [`port`] | [`ChatModel`], [`ToolHost`], [`SessionStore`], [`RunStore`], [`Approver`] |
//!
//! ```
//! use switchboard_domain::{ChatRequest, Message, ToolChoice};
//!
//! let request = ChatRequest::new([Message::system("Be brief."), Message::user("Hello?")])
//!     .with_tool_choice(ToolChoice::Auto);
//! assert_eq!(request.messages[1].text(), "Hello?");
//! ```
#![deny(missing_docs)]

pub mod accumulator;
pub mod answer_meter;
pub mod error;
pub mod event;
pub mod finish;
pub mod grammar;
pub mod json_depth;
#[cfg(feature = "json-schema")]
pub mod json_schema;
pub mod media;
pub mod message;
pub mod model;
pub mod nearest;
pub mod port;
pub mod provider_state;
#[cfg(feature = "redact")]
pub mod redact;
pub mod request;
pub mod response;
pub mod schema_dialect;
pub mod shared_object;
pub mod tool;
mod tool_identity;
pub mod tool_result;
pub mod tool_use;
pub mod usage;

pub use accumulator::ResponseAccumulator;
pub use answer_meter::{AnswerMeter, DEFAULT_MAX_ANSWER_BYTES};
pub use error::{ModelError, ModelErrorKind, TimeoutPhase};
pub use event::{ModelEvent, ModelRetry, PartStart};
pub use finish::FinishReason;
pub use grammar::{EventGrammar, GrammarViolation};
pub use json_depth::{
    MAX_DOCUMENT_DEPTH, MAX_JSON_DEPTH, TooDeep, check_depth, check_document_depth,
};
pub use media::{Document, Media, MediaSource};
pub use message::{Message, Opaque, Part, Reasoning, Role, Text};
pub use model::{InvalidModelId, ModelCapabilities, ModelId};
pub use port::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, Approver, AuditEntry, Candidates, ChatModel,
    Elicitation, ElicitationAnswer, ElicitationForm, Elicitor, IdKey, MOST_WISH_BYTES, ModelStream,
    Principal, ProgressSink, RunRecord, RunSnapshot, RunState, RunStore, SampleError,
    SampleRequest, Sampler, ServerProblem, Session, SessionId, SessionStore, SessionStoreError,
    StoredEvent, ToolCall, ToolCallError, ToolCatalog, ToolHost, ToolHostChange, ToolHostChanges,
    ToolOutput, ToolProgress, ToolRetry,
};
#[cfg(feature = "mock")]
pub use port::{
    MockApprover, MockChatModel, MockElicitor, MockRunStore, MockSampler, MockSessionStore,
    MockToolHost,
};
pub use provider_state::ProviderState;
pub use request::{ChatRequest, Delivery, ReasoningEffort, ResponseFormat, Sampling};
pub use response::{ChatResponse, Warning, WarningKind};
pub use shared_object::SharedObject;
pub use tool::{ToolAnnotations, ToolChoice, ToolChoiceOutcome, ToolDefinition, ToolOrigin};
pub use tool_result::{ToolContent, ToolResult};
pub use tool_use::{JsonObject, ToolInput, ToolUse};
pub use usage::Usage;
