//! Observation of runs: audit records, metrics and traces.
//!
//! One fold over the run events feeds the audit and the metrics.

pub mod audit;
mod fold;
pub mod metrics;
pub mod trace;

pub use fold::CostFunction;
