//! Policies of a run: approval of tool calls, guards, limits and the length of the conversation.

pub mod approval;
pub mod guard;
pub mod history;
pub mod limits;
pub(crate) mod seconds;
