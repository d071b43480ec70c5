//! Observation of runs: audit records, metrics and traces.
//!
//! The audit, the metrics and the log share one reducer of run events.

pub mod audit;
#[cfg(test)]
#[path = "events_tests.rs"]
mod events;
pub mod metrics;
pub mod trace;
