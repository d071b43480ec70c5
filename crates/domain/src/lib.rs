//! The domain model of Switchboard: messages, tool use, finish reasons, streamed events, errors,
//! and the traits (ports) through which the program uses models, tools, stores and people.
//!
//! This crate does not depend on HTTP, MCP, an async runtime or the file system. Every other crate
//! of the workspace uses its types. They contain nothing that is specific to one provider, except
//! the opaque [`ProviderState`].
//!
//! - messages: [`Message`], [`Role`], [`Part`], [`Media`], [`ToolUse`], [`ToolInput`],
//!   [`ToolResult`], [`ProviderState`];
//! - tools: [`ToolDefinition`], [`ToolAnnotations`], [`ToolChoice`], [`ToolChoiceOutcome`];
//! - models: [`ModelId`], [`ModelCapabilities`], [`ChatRequest`], [`ChatResponse`], [`Warning`],
//!   [`ModelError`];
//! - streams: [`ModelEvent`], [`EventOrderChecker`], [`ResponseAccumulator`], [`AnswerSizeMeter`],
//!   [`FinishReason`], [`Usage`];
//! - ports: [`ChatModel`], [`ToolHost`], [`SessionStore`], [`RunStore`], [`AuditStore`],
//!   [`CallRateCounter`], [`Approver`], [`Elicitor`], [`Sampler`];
//! - limits: [`json_depth`]; `json_schema` (feature `json-schema`);
//! - secrets: `redact` (feature `redact`).
//!
//! ```
//! use switchboard_domain::{ChatRequest, Message, ToolChoice};
//!
//! let request = ChatRequest::new([Message::system("Be brief."), Message::user("Hello?")])
//!     .with_tool_choice(ToolChoice::Auto);
//! assert_eq!(request.messages[1].text(), "Hello?");
//! ```
#![deny(missing_docs)]

pub mod child_environment;
pub mod json_depth;
#[cfg(feature = "json-schema")]
pub mod json_schema;
mod message;
mod model;
mod model_id;
pub mod port;
#[cfg(feature = "redact")]
pub mod redact;
pub mod similar_names;
mod tool;

pub use json_depth::{
    MAX_DOCUMENT_DEPTH, MAX_JSON_DEPTH, TooDeep, check_depth, check_document_depth,
};
pub use message::{
    Document, JsonObject, Media, MediaSource, Message, Opaque, Part, ProviderState, Reasoning,
    Role, SharedObject, Text, ToolContent, ToolInput, ToolResult, ToolUse,
};
pub use model::{
    AnswerSizeMeter, ChatRequest, ChatResponse, DEFAULT_MAX_ANSWER_BYTES,
    DEFAULT_MAX_TOOL_INPUT_BYTES, Delivery, EventOrderChecker, FinishReason, GrammarViolation,
    ModelError, ModelErrorKind, ModelEvent, ModelRetry, PartStart, ReasoningEffort,
    ResponseAccumulator, ResponseFormat, Sampling, TimeoutPhase, Usage, Warning, WarningKind,
};
pub use model_id::{InvalidModelId, ModelCapabilities, ModelId};
pub use port::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, Approver, AuditStore, CallRateCounter,
    CallRateLimits, CandidateToolCalls, ChatModel, Elicitation, ElicitationAnswer, ElicitationForm,
    Elicitor, IdKey, MAX_AUDIT_RECORD_BYTES, MAX_RUN_PARAMETERS_BYTES, ModelStream, Principal,
    ProgressSink, ReachedCallRate, RunRecord, RunSnapshot, RunState, RunStore, SampleError,
    SampleRequest, Sampler, ServerProblem, Session, SessionId, SessionStore, SessionStoreError,
    StoredAuditRecord, StoredEvent, ToolCall, ToolCallError, ToolCatalog, ToolHost, ToolHostChange,
    ToolHostChanges, ToolOutput, ToolProgress, ToolRetry,
};
#[cfg(feature = "mock")]
pub use port::{
    MockApprover, MockAuditStore, MockCallRateCounter, MockChatModel, MockElicitor, MockRunStore,
    MockSampler, MockSessionStore, MockToolHost,
};
pub use tool::{ToolAnnotations, ToolChoice, ToolChoiceOutcome, ToolDefinition, ToolOrigin};
