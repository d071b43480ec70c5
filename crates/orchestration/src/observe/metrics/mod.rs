//! What is counted of runs: how often tools and models were called, how well, how fast, at what cost.
//!
//! [`Metrics`] takes the events of any number of runs at once, [`RecordedMetrics`] the audit records of runs
//! that are over; [`Snapshot`] is what they add up to, as JSON, as a table for people and in Prometheus'
//! text form.
//!
//! A tool call ends in exactly one of four ways: it is **successful**, it **failed** (the tool or its
//! server said so, or did not answer), it was **hallucinated** (the model asked for a tool that does not
//! exist, or with arguments that do not fit), or it was **not executed** (denied, skipped, over a
//! limit, cancelled before it began). Beside that it may be **unnecessary**: the same tool was called
//! with the same input in the same run before, and its result was there already. The **accuracy** of a
//! tool or model is the share of its calls that were successful and necessary.

mod collect;
mod histogram;
mod prometheus;
mod recorded;
mod snapshot;
mod table;

pub use collect::{KnownModel, Metrics};
pub use histogram::{BOUNDS_MS, Histogram};
pub use recorded::RecordedMetrics;
pub use snapshot::{CallCounts, ModelMetrics, RequestCounts, Snapshot, TokenCounts, ToolMetrics};
