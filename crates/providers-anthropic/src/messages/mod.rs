//! The Messages API: `POST {base}/v1/messages`.
//!
//! | module | purpose |
//! |---|---|
//! | [`wire`] | the serde types of the API |
//! | [`request`] | converts a request of the domain |
//! | [`stream`] | converts streamed events, as a state machine without I/O |
//! | [`response`] | converts a whole body, with the same state machine |

mod betas;
mod blocks;
mod cache;
mod content;
pub mod request;
pub mod response;
pub mod stream;
mod thinking;
mod tools;
#[allow(missing_docs, reason = "the fields have the names of the API")]
pub mod wire;

pub use request::{WireRequest, to_wire_request};
pub use response::events_from_body;
pub use stream::MessagesDecoder;
pub use switchboard_providers_common::{ToolMapping, ToolUseIds};
