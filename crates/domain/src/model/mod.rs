//! Requests to models, their responses and errors, and the events of a stream.

mod accumulator;
mod answer_meter;
mod error;
mod event;
mod finish;
mod grammar;
mod request;
mod response;
mod usage;

pub use accumulator::{DEFAULT_MAX_TOOL_INPUT_BYTES, ResponseAccumulator};
pub use answer_meter::{AnswerMeter, DEFAULT_MAX_ANSWER_BYTES};
pub use error::{ModelError, ModelErrorKind, TimeoutPhase};
pub use event::{ModelEvent, ModelRetry, PartStart};
pub use finish::FinishReason;
pub use grammar::{EventGrammar, GrammarViolation};
pub use request::{ChatRequest, Delivery, ReasoningEffort, ResponseFormat, Sampling};
pub use response::{ChatResponse, Warning, WarningKind};
pub use usage::Usage;
