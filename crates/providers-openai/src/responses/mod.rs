//! The Responses API: `POST {base}/responses`, which accepts a model's earlier reasoning as input.
//!
//! | module | purpose |
//! |---|---|
//! | [`wire`] | the serde types of the API |
//! | [`request`] | converts a request of the domain |
//! | [`stream`] | converts streamed events, as a state machine without I/O |
//! | [`response`] | converts a whole body, with the same state machine |
//!
//! The provider stores nothing by default. Each request contains the whole conversation with the
//! model's items unchanged. The [`ProviderState`](switchboard_domain::ProviderState) of a part
//! contains the fields of its item that the part does not have:
//!
//! | part | `data` |
//! |---|---|
//! | reasoning | the item |
//! | text | `{"item": {id, status, phase}, "content": {type, annotations}, "after"}` |
//! | tool use | `{"item": {id, status, caller, namespace}, "after"}` |
//! | opaque | `{"item": <the item>, "after"}` |
//!
//! `after` is the id of the reasoning item before it. The API refuses an item with its id but
//! without its reasoning ("was provided without its required 'reasoning' item"), so the id is sent
//! only together with the reasoning.
//!
//! [`ResponsesOptions::server_tools`] declares tools that the provider runs. A list `tools` in
//! [`ChatRequest::extra`](switchboard_domain::ChatRequest::extra) declares tools as the API's JSON.
//! A [`ToolChoice`](switchboard_domain::ToolChoice) names them by the label of an MCP server, the
//! name of a custom tool, or the type of another tool. Their items become opaque parts. The results
//! of a web search, a file search and the code interpreter are requested with `include`.
//!
//! When the API refuses earlier reasoning, for example after a change of the key, the request is
//! sent once more without that reasoning.
//!
//! Sources: the types of the official SDK, `openai` 3.52.0, and error messages of the API in public
//! issue threads.

mod content;
mod json_fields;
mod output_items;
pub(crate) mod reasoning_removal;
pub mod request;
pub mod response;
mod state;
pub mod stream;
#[allow(missing_docs, reason = "the fields have the names of the API")]
pub mod wire;

pub use request::{ReasoningSummary, ResponsesOptions, WireRequest, to_wire_request};
pub use response::events_from_body;
pub use stream::ResponsesDecoder;

pub use switchboard_providers_common::ToolUseIds;

#[cfg(test)]
#[path = "replay_laws_tests.rs"]
mod replay_laws;
