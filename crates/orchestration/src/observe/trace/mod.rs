//! Spans and log lines of a run, made with `tracing`. Who reads them, and where they go, is decided by
//! whoever sets a subscriber up; with none, they cost a look at a flag.
//!
//! The spans carry the names of OpenTelemetry's semantic conventions for generative AI, as of their
//! development version after 1.41 (<https://github.com/open-telemetry/semantic-conventions-genai>):
//! `invoke_agent` around a run, and in it `chat` for each call of a model and `execute_tool` for each
//! execution of a tool. `otel.name`, `otel.kind` and `otel.status_code` are what bridges from `tracing`
//! to OpenTelemetry take a span's name, kind and status from, since a span of `tracing` is called the
//! same every time. What the conventions do not name begins with `switchboard.`.
//!
//! No span and no log line holds what was said. Inputs and outputs are told as events of the target
//! [`CONTENT`] at level `TRACE`, within their span, and not even made if nobody listens to that.
//!
//! | target | what |
//! |---|---|
//! | [`SPANS`] | the spans, at level `INFO` |
//! | [`LOG`] | what happens in runs, at level `DEBUG`: see [`RunLog`] |
//! | [`CONTENT`] | what models and tools were given and gave, at level `TRACE` |

#[cfg(test)]
mod capture;
mod content;
mod log;
mod spans;

pub use log::RunLog;
pub use spans::{AgentTrace, ChatTrace, ToolTrace};

/// The target of the spans.
pub const SPANS: &str = "switchboard::genai";
/// The target of the log lines.
pub const LOG: &str = "switchboard::run";
/// The target of events that hold what was said.
pub const CONTENT: &str = "switchboard::content";

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
