//! Policies of a run: approval of tool calls, guards, limits and the length of the conversation.

pub mod approval;
pub(crate) mod duration_serde;
pub mod history;
pub mod limits;
pub mod tool_guard;
