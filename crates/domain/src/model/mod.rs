//! Requests to models, their responses and errors, and the events of a stream.

mod accumulator;
mod answer_meter;
mod error;
mod event;
mod event_order;
mod finish_reason;
mod request;
mod response;
mod usage;

pub use accumulator::{DEFAULT_MAX_TOOL_INPUT_BYTES, ResponseAccumulator};
pub use answer_meter::{AnswerSizeMeter, DEFAULT_MAX_ANSWER_BYTES};
pub use error::{ModelError, ModelErrorKind, TimeoutPhase};
pub use event::{ModelEvent, ModelRetry, PartStart};
pub use event_order::{EventOrderChecker, GrammarViolation};
pub use finish_reason::FinishReason;
pub use request::{ChatRequest, Delivery, ReasoningEffort, ResponseFormat, Sampling};
pub use response::{ChatResponse, Warning, WarningKind};
pub use usage::Usage;
