//! Observation of runs: audit records, metrics and traces.
//!
//! One fold over the run events feeds the audit and the metrics.

pub mod audit;
pub mod metrics;
pub mod trace;
