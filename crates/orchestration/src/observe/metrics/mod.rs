//! Metrics of runs: number, quality, duration and cost of tool calls and model calls.
//!
//! [`Metrics`] counts the events of any number of runs, or the audit records of earlier runs.
//! [`MetricsSnapshot`] is the result: JSON, a table, or metrics for a Prometheus registry (feature
//! `prometheus`).
//!
//! A tool call ends in exactly one of four ways. It is **successful**, it **failed** (an error from
//! the tool or its server, or no answer), it was **hallucinated** (the tool does not exist, or the
//! arguments are invalid), or it was **not executed** (denied, skipped, over a limit, cancelled
//! before its start). It is also **unnecessary** if the same run already had a result for the same
//! tool and input. The **accuracy** of a tool or model is the share of its calls that were
//! successful and necessary.

mod event_counts;
mod histogram;
#[cfg(feature = "prometheus")]
mod prometheus;
mod snapshot;
mod text_table;

pub use event_counts::{KnownModelPredicate, Metrics};
pub use histogram::{BOUNDS_MS, Histogram};
#[cfg(feature = "prometheus")]
pub use prometheus::MetricsCollector;
pub use snapshot::{
    MetricsSnapshot, ModelMetrics, RequestCounts, TokenCounts, ToolCallCounts, ToolMetrics,
};
