//! The tool calls of one model response: planned, executed and brought to their results.

pub(in crate::run) mod batch;
mod plan;
mod results;
