//! Policies of a run: approval of tool calls, guards and limits.

pub mod approval;
pub mod guard;
pub mod limits;
