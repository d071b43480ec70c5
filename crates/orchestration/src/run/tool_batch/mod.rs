//! The tool calls of one model response: planning, approval, execution and results.

mod approval;
pub(in crate::run) mod batch;
mod plan;
mod results;
