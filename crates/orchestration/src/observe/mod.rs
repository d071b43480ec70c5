//! Observation of runs: audit records, metrics and traces.
//!
//! One fold over the run events feeds the audit, the metrics and the log.

pub mod audit;
#[cfg(test)]
#[path = "events_tests.rs"]
mod events;
pub mod metrics;
pub mod trace;
