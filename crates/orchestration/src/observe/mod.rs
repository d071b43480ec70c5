//! Observation of runs: audit records, metrics and traces made from run events.

pub mod audit;
pub mod metrics;
pub mod trace;
