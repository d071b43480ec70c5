//! Observation of runs: audit records, metrics and traces.
//!
//! One fold over the run events feeds the audit, the metrics and the log.

pub mod audit;
pub mod metrics;
pub mod trace;
