//! Chat Completions: `POST {base}/chat/completions`, the API that most servers support.
//!
//! | module | purpose |
//! |---|---|
//! | [`wire`] | the serde types of the API |
//! | [`request`] | converts a request of the domain |
//! | [`stream`] | converts streamed chunks, as a state machine without I/O |
//! | [`response`] | converts a whole body, with the same state machine |

mod content;
mod options;
mod reasoning;
pub mod request;
pub mod response;
pub mod stream;
mod tool_calls;
#[allow(missing_docs, reason = "the fields have the names of the API")]
pub mod wire;

pub use options::ChatOptions;
pub use request::{WireRequest, to_wire_request};
pub use response::events_from_body;
pub use stream::ChatDecoder;

pub use switchboard_providers_common::ToolUseIds;
