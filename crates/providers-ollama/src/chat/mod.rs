//! The chat API: `POST {base}/api/chat`.
//!
//! | module | purpose |
//! |---|---|
//! | [`wire`] | the serde types of the API |
//! | [`request`] | converts a domain request, without I/O |
//! | [`tool_choice_emulation`] | forces tool calls with `format`: the API has no tool choice |
//! | [`stream`] | converts streamed lines to domain events, as a state machine without I/O |
//! | [`response`] | converts a whole body, with the same state machine |
//!
//! Sources: the server's source (`api/types.go`, `server/routes.go`, `llm/llama_server.go` of
//! August 2026), the official Python SDK 0.6.3, and the public issue threads in the comments.

mod constrained_answer;
mod content;
mod options;
pub mod request;
pub mod response;
mod schema;
pub mod stream;
pub mod tool_choice_emulation;
mod tools;
#[allow(missing_docs, reason = "the fields have the names of the API")]
pub mod wire;

pub(crate) use tools::{find_required_tools, sends_tools_in_format_field};

pub use options::ThinkForm;
pub use request::{WireRequest, to_wire_request};
pub use response::events_from_body;
pub use stream::ChatDecoder;
pub use switchboard_providers_common::ToolUseIds;
pub use tool_choice_emulation::AnswerForm;
