//! Responses: `POST {base}/responses`, OpenAI's newer wire, which takes a model's reasoning back.
//!
//! | module | does |
//! |---|---|
//! | [`wire`] | the serde types of the API |
//! | [`request`] | domain → wire, pure |
//! | [`stream`] | wire events → domain events, a state machine without I/O |
//! | [`response`] | a whole body → a whole answer, by the same state machine |
//!
//! Nothing is stored at the provider unless asked for: the whole conversation is sent each time, with
//! the items that the model wrote as they were. What of an item a part has no place for rides on it as
//! [`ProviderState`](switchboard_domain::ProviderState):
//!
//! | part | `data` |
//! |---|---|
//! | reasoning | the item |
//! | text | `{"item": {id, status, phase}, "content": {type, annotations}, "after"}` |
//! | tool use | `{"item": {id, status, caller, namespace}, "after"}` |
//! | opaque | `{"item": <the item>, "after"}` |
//!
//! `after` is the id of the reasoning item before it. The API refuses an item under its id without its
//! reasoning ("was provided without its required 'reasoning' item"), so the id is sent only where the
//! reasoning is sent as well.
//!
//! Tools that the provider runs itself are declared by [`ResponsesOptions::server_tools`], or under the
//! API's own names in a list `tools` of [`ChatRequest::extra`](switchboard_domain::ChatRequest::extra). A
//! [`ToolChoice`](switchboard_domain::ToolChoice) means them too: by the label of an MCP server, the name of
//! a custom tool, and the type of any other, such as `web_search`. What they did comes as opaque parts, with
//! what was found: of a web search, a file search and the code interpreter the API tells it only if
//! `include` asks for it, which is done for each of them that is declared.
//!
//! Reasoning that the API no longer reads, as after a change of the key, is left out and the request sent
//! once more.
//!
//! Facts are those of the types of the official SDK, `openai` 3.52.0; what the API refuses is as its own
//! messages say in public issue threads.

pub(crate) mod again;
mod input;
mod items;
mod members;
mod parts;
pub mod request;
pub mod response;
mod shown;
mod state;
pub mod stream;
pub mod wire;

pub use request::{ReasoningSummary, ResponsesOptions, WireRequest, to_wire};
pub use response::{events_from_body, from_body};
pub use stream::ResponsesDecoder;

pub use switchboard_providers_common::LocalIds;

#[cfg(test)]
#[path = "replay_laws_tests.rs"]
mod replay_laws;
