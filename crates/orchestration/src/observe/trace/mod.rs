//! Spans and log lines of runs, emitted with `tracing`. The program installs the subscriber.
//!
//! The spans use the names of OpenTelemetry's semantic conventions for generative AI, development
//! version after 1.41 (<https://github.com/open-telemetry/semantic-conventions-genai>):
//! `invoke_agent` for a run, with a `chat` span per model call and an `execute_tool` span per
//! executed tool call. The fields `otel.name`, `otel.kind` and `otel.status_code` set the span
//! name, kind and status of OpenTelemetry, because the names of `tracing` spans are constant.
//! Fields outside of the conventions start with `switchboard.`.
//!
//! Spans and log lines contain no text of the conversation. Inputs and outputs are separate events
//! inside their span. These events are built only if a subscriber enables them.
//!
//! | target | level | content |
//! |---|---|---|
//! | [`SPANS`] | `INFO` | spans |
//! | [`LOG`] | `DEBUG` | log lines of runs, see [`RunLog`] |
//! | [`CONTENT`] | `TRACE` | inputs and outputs of models and tools |

#[cfg(test)]
#[path = "capture_tests.rs"]
mod capture;
mod content_events;
mod log;
mod spans;

pub use log::RunLog;
pub use spans::{AgentTrace, ChatTrace, ToolTrace};

/// Tracing target of the spans.
pub const SPANS: &str = "switchboard::genai";
/// Tracing target of the log lines.
pub const LOG: &str = "switchboard::run";
/// Tracing target of the events with inputs and outputs of models and tools.
pub const CONTENT: &str = "switchboard::content";
